"""Where a template's program is looked for: IDEs installed by us, this environment, the system.

Not the operator's PATH, of which a workspace sees only parts. Used by `loader` (is it there?) and by the process
runtime (where is it?).
"""

import pathlib
import shutil
import sys

SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/games")


def folders(data_dir: pathlib.Path) -> list[str]:
    ides = sorted(str(path) for path in (data_dir / "ide").glob("*/bin") if path.is_dir())
    return [*ides, str(pathlib.Path(sys.executable).parent), *SYSTEM]


def find(program: str, data_dir: pathlib.Path) -> str | None:
    """Its absolute path, or None."""
    return shutil.which(program, path=":".join(folders(data_dir)))
