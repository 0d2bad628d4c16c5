"""Where a template's program is looked for: IDEs installed by us, this environment, the system.

Not the operator's PATH, of which a workspace sees only parts. Used by `loader` (is it there?) and by the process
runtime (where is it?).
"""

import pathlib
import shutil
import sys

# Programs that come with this package, run by its own interpreter.
OURS = {"codehub-terminal": "codehub.runtimes.terminal_app"}
SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/games")


def folders(data_dir: pathlib.Path) -> list[str]:
    ides = sorted(str(path) for path in (data_dir / "ide").glob("*/bin") if path.is_dir())
    return [*ides, str(pathlib.Path(sys.executable).parent), *SYSTEM]


def find(program: str, data_dir: pathlib.Path) -> str | None:
    """Its absolute path, or None."""
    if program in OURS:
        return sys.executable
    return shutil.which(program, path=":".join(folders(data_dir)))


def command(words: list[str], data_dir: pathlib.Path) -> list[str] | None:
    """The same command with its program found; None when it is not there."""
    found = find(words[0], data_dir)
    if found is None:
        return None
    # Isolated: a file called tornado.py in a user's home must not end up in our program.
    return [found, *(["-I", "-m", OURS[words[0]]] if words[0] in OURS else []), *words[1:]]
