"""Templates from TOML files: the built-in ones, and those of `CODEHUB_TEMPLATES_DIR`, which go before them.

Read once by `wiring` and by the coordinator. A file that is wrong stops the start with one line that names the file and
the key. A template whose program is not installed is listed with that reason instead of failing at its first start.
"""

import dataclasses
import enum
import importlib.resources
import pathlib
import tomllib
import types
import typing
from collections.abc import Mapping
from typing import Any

from codehub import ids
from codehub.errors import InvalidRequestError, SettingsError
from codehub.templates import programs
from codehub.templates.model import Template


class Templates:
    def __init__(self, templates: Mapping[str, Template], data_dir: pathlib.Path) -> None:
        self._templates = templates
        self._data_dir = data_dir

    @classmethod
    def load(cls, folder: pathlib.Path | None, data_dir: pathlib.Path) -> "Templates":
        builtin = pathlib.Path(str(importlib.resources.files("codehub.templates") / "builtin"))
        found: dict[str, Template] = {}
        for place in [builtin, *([folder] if folder else [])]:
            if not place.is_dir():
                raise SettingsError(f"CODEHUB_TEMPLATES_DIR={folder}: there is no such folder")
            found |= {path.stem: read(path) for path in sorted(place.glob("*.toml"))}
        return cls(found, data_dir)

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

    def unavailable(self, name: str) -> str | None:
        """Why a template cannot be started here; None when it can."""
        process = self._templates[name].process
        if process is None:
            return f"{name} has no [process] section"
        if "{" not in process.command[0] and programs.find(process.command[0], self._data_dir) is None:
            return f"{process.command[0]} is not installed: `codehub ide install {name}` may help"
        return None


def read(path: pathlib.Path) -> Template:
    if not ids.is_label(path.stem):
        raise SettingsError(f"{path}: a template's file is named with a–z, 0–9 and -")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise SettingsError(f"{path}: {e}") from e
    template: Template = _build(Template, {"name": path.stem, **content}, str(path), "")
    if template.process and not template.process.command:
        raise SettingsError(f"{path}: process.command must not be empty")
    return template


def _build(model: Any, content: Any, path: str, prefix: str) -> Any:
    """A dataclass from a table, with every key known and of its type."""
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: {prefix.rstrip('.')} must be a table")
    hints = typing.get_type_hints(model)
    if unknown := set(content) - set(hints):
        raise SettingsError(f"{path}: unknown key {prefix}{min(unknown)}")
    values = {name: _convert(hints[name], value, path, prefix + name) for name, value in content.items()}
    required = {f.name for f in dataclasses.fields(model) if f.default is f.default_factory is dataclasses.MISSING}
    if missing := required - set(values):
        raise SettingsError(f"{path}: {prefix}{min(missing)} is missing")
    return model(**values)


def _convert(hint: Any, value: Any, path: str, key: str) -> Any:
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not types.NoneType)
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, path, key + ".")
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        words = [member.value for member in hint]
        if value not in words:
            raise SettingsError(f"{path}: {key} must be one of {', '.join(words)}")
        return hint(value)
    origin = typing.get_origin(hint)
    if origin is tuple and isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(value)
    if origin is Mapping and isinstance(value, dict) and all(isinstance(word, str) for word in value.values()):
        return value
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if origin is None and isinstance(hint, type) and type(value) is hint:
        return value
    raise SettingsError(f"{path}: {key} has the wrong type")
