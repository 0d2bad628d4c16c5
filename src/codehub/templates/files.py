"""The files of templates as they are now, with what is wrong in each, by line: the page `/templates` shows it.

What runs was read at the start; a file that was changed since takes effect with the next one.
"""

import pathlib
import re
from dataclasses import dataclass

from codehub.errors import SettingsError
from codehub.templates.loader import BUILTIN, Templates, read

AT_LINE = re.compile(r"\(at line (\d+),")
WRONG_KEY = re.compile(r"([a-z_]+)(?:\.([A-Za-z0-9_]+))?: ")


@dataclass(frozen=True)
class File:
    name: str
    path: pathlib.Path
    builtin: bool
    overridden: bool  # another file of the same name wins
    changed: bool  # since the start
    problem: str | None
    line: int | None  # of the problem, where it can be said


def look(folder: pathlib.Path | None, loaded: Templates) -> list[File]:
    """The operator's first."""
    mine = sorted(folder.glob("*.toml")) if folder and folder.is_dir() else []
    theirs = sorted(BUILTIN.glob("*.toml"))
    won = {path.stem for path in mine}
    return [_file(path, loaded, overridden=False, builtin=False) for path in mine] + [
        _file(path, loaded, overridden=path.stem in won, builtin=True) for path in theirs
    ]


def _file(path: pathlib.Path, loaded: Templates, *, overridden: bool, builtin: bool) -> File:
    try:
        found = read(path)
    except SettingsError as e:
        said = e.detail.removeprefix(f"{path}: ")
        return File(path.stem, path, builtin, overridden, changed=True, problem=said, line=line_of(path, said))
    changed = not overridden and found != loaded.find(path.stem)
    return File(path.stem, path, builtin, overridden, changed, None, None)


def line_of(path: pathlib.Path, problem: str) -> int | None:
    """Where TOML itself is wrong, it says so; a key is looked for, in its table."""
    if told := AT_LINE.search(problem):
        return int(told[1])
    named = WRONG_KEY.match(problem)
    if named is None:
        return None
    table, key = (named[1], named[2]) if named[2] else ("", named[1])
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    inside = ""
    for number, line in enumerate(lines, 1):
        if header := re.match(r"\s*\[+\s*([A-Za-z0-9_.]+)", line):
            inside = header[1]
            if not table and inside == key:
                return number
        elif inside == table and re.match(rf"\s*\"?{re.escape(key)}\"?\s*[=.]", line):
            return number
    return None
