"""`make bench`: runs every benchmark, or those named: `make bench ARGS=http_stack`. Options go to each of them."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def main() -> int:
    found = sorted(path.stem for path in HERE.glob("*.py") if not path.name.startswith("_"))
    options = next((n for n, word in enumerate(sys.argv) if n and word.startswith("-")), len(sys.argv))
    wanted = sys.argv[1:options] or found
    if unknown := [name for name in wanted if name not in found]:
        print(f"There is no benchmark {unknown[0]}; there are: {', '.join(found)}")
        return 2
    failed = 0
    for name in wanted:
        print(f"== {name}", flush=True)
        failed |= subprocess.run(
            [sys.executable, str(HERE / f"{name}.py"), *sys.argv[options:]], check=False
        ).returncode
    return failed


sys.exit(main())
