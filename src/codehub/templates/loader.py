"""Reading templates: the built-in ones, and those in CODEHUB_TEMPLATES_DIR, which win by name.

A file that is wrong stops the start with one line that names the file and the key: a lab that silently lacks the IDE
its lesson is about is worse than one that does not start.
"""

import dataclasses
import pathlib
import tomllib
from collections.abc import Mapping
from typing import Any

from codehub import ids
from codehub.errors import InvalidRequestError, SettingsError
from codehub.invocation import command
from codehub.templates import check, programs, starter
from codehub.templates.model import Template

PROCESS = "process"
BUILTIN = pathlib.Path(__file__).parent / "builtin"


class Templates:
    """All of them by name. Made once by `wiring` and by the coordinator."""

    def __init__(self, templates: Mapping[str, Template], data_dir: pathlib.Path, runtime: str = PROCESS) -> None:
        self._templates = templates
        self._data_dir = data_dir
        self._runtime = runtime

    @classmethod
    def load(cls, folder: pathlib.Path | None, data_dir: pathlib.Path, runtime: str = PROCESS) -> "Templates":
        """`runtime`: which one is to start them."""
        if folder is not None and not folder.is_dir():
            raise SettingsError(f"CODEHUB_TEMPLATES_DIR={folder}: there is no such folder")
        found: dict[str, pathlib.Path] = {}
        for place in (BUILTIN, folder):
            found |= {path.stem: path for path in sorted(place.glob("*.toml"))} if place else {}
        return cls({name: read(path) for name, path in found.items()}, data_dir, runtime)

    def all(self) -> list[Template]:
        return list(self._templates.values())

    def find(self, name: str) -> Template | None:
        return self._templates.get(name)

    def require(self, name: str) -> Template:
        """For requests: a template that is known and could be started."""
        template = self.find(name)
        if template is None:
            raise InvalidRequestError(
                f"there is no template {name!r}; there are: {', '.join(self._templates)}", field="template"
            )
        if reason := self.unavailable(name):
            raise InvalidRequestError(reason, field="template")
        return template

    def has_program(self, program: str) -> bool:
        """Is it installed where templates look for it?"""
        return programs.find(program, self._data_dir) is not None

    def unavailable(self, name: str) -> str | None:
        """Why a template cannot be started here; None when it can."""
        template = self._templates[name]
        if self._runtime != PROCESS:
            return None if template.container else f"{name} has no [container] section"
        process = template.process
        if process is None:
            return f"{name} has no [process] section"
        program = process.command[0]
        if programs.find(program, self._data_dir):
            return None
        advice = f": `{command('ide install code-server')}` installs it" if program == "code-server" else ""
        return f"{program} is not installed{advice}"


def read(path: pathlib.Path) -> Template:
    if not ids.is_label(path.stem):
        raise SettingsError(f"{path}: the file's name must be lower-case letters, digits and hyphens")
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise SettingsError(f"{path}: cannot be read: {e.strerror}") from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise SettingsError(f"{path}: is not valid TOML: {e}") from e
    try:
        found = check.template(path.stem, values)
        if not found.starter:
            return found
        return dataclasses.replace(found, starter_files=starter.read(path.parent / found.starter))
    except (check.WrongKeyError, starter.WrongStarterError) as e:
        raise SettingsError(f"{path}: {e}") from e
