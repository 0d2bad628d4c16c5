"""How a command of ours is typed on this machine. Asked by every hint that names one: messages, errors, pages.

`make serve` puts no `codehub` on the PATH, and a command about another data directory than the usual one has to
say so. Found when this is loaded, by the process that a person started; roles that are forked from it keep it.
"""

import os
import pathlib
import shlex
import shutil
import sys
from collections.abc import Mapping

PLAIN = "codehub"  # for readers who are not at this machine, and who need not know its folders
# What decides which data a command is about, when it came from the shell that we were started in.
KEPT = ("CODEHUB_SETTINGS", "CODEHUB_DATA_DIR")


def find(executable: pathlib.Path, folder: pathlib.Path, environ: Mapping[str, str]) -> str:
    """What to type in `folder`: the name where the PATH has it, else a path, as short as it can be."""
    script = executable.parent / PLAIN
    on_path = shutil.which(PLAIN, path=environ.get("PATH", os.defpath))
    if on_path and pathlib.Path(on_path).resolve() == script.resolve():
        typed = PLAIN
    elif script.exists():
        typed = shlex.quote(str(script.relative_to(folder) if script.is_relative_to(folder) else script))
    else:
        typed = f"{shlex.quote(str(executable))} -m {PLAIN}"
    given = [f"{name}={shlex.quote(environ[name])}" for name in KEPT if environ.get(name)]
    return " ".join([*given, typed])


def _folder() -> pathlib.Path:
    try:
        return pathlib.Path.cwd()
    except OSError:  # it is gone
        return pathlib.Path("/")


CODEHUB = find(pathlib.Path(sys.executable), _folder(), os.environ)


def command(words: str) -> str:
    return f"{CODEHUB} {words}"
