"""`make bench`: runs every benchmark, or those named: `make bench ARGS=http_stack`."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def main() -> int:
    found = sorted(path.stem for path in HERE.glob("*.py") if not path.name.startswith("_"))
    wanted = sys.argv[1:] or found
    if unknown := [name for name in wanted if name not in found]:
        print(f"There is no benchmark {unknown[0]}; there are: {', '.join(found)}")
        return 2
    failed = 0
    for name in wanted:
        print(f"== {name}", flush=True)
        failed |= subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=False).returncode
    return failed


sys.exit(main())
