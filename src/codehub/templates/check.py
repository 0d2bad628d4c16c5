"""From the values of a TOML file to a template: every key known, every value of its kind. Pure; called by `loader`."""

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from codehub import allowlist, names
from codehub.i18n.texts import DEFAULT, LANGUAGES
from codehub.templates import expand
from codehub.templates.model import ContainerSpec, Network, ProcessSpec, ResourceLimits, Template, Words

OTHER_LANGUAGES = tuple(code for code in LANGUAGES if code != DEFAULT)
TABLES = {
    "process": ProcessSpec,
    "container": ContainerSpec,
    "limits": ResourceLimits,
    **dict.fromkeys(OTHER_LANGUAGES, Words),
}
NOT_IN_FILES = {"name", "starter_files", "translations"}
LONGEST_DESCRIPTION = 300  # characters: a sentence or two
FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
NUMBER = re.compile(r"[1-9][0-9]{0,8}")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WrongKeyError(Exception):
    """Names the key; the loader adds the file."""


def template(name: str, values: Mapping[str, Any]) -> Template:
    plain = {key: value for key, value in values.items() if key not in TABLES}
    given = _group(Template, plain, "", {*NOT_IN_FILES, *TABLES})
    if "title" not in given:
        raise WrongKeyError("title: is missing")
    for table, kind in TABLES.items():
        if table in values:
            if not isinstance(values[table], Mapping):
                raise WrongKeyError(f"{table}: must be a table, [{table}]")
            given[table] = _build(kind, values[table], table)
    for key, verdict in RULES.items():
        if complaint := verdict(given.get(key)):
            raise WrongKeyError(f"{key}: {complaint}")
    given["translations"] = {code: given.pop(code) for code in OTHER_LANGUAGES if code in given}
    for code, words in given["translations"].items():
        _check_words(code, words)
    if "process" not in given and "container" not in given:
        raise WrongKeyError("process: is missing, and so is container; nothing says how to start it")
    return Template(name=name, **given)


def _check_words(code: str, words: Words) -> None:
    if complaint := names.complaint(words.title):
        raise WrongKeyError(f"{code}.title: {complaint}")
    if complaint := _description(words.description):
        raise WrongKeyError(f"{code}.description: {complaint}")


def _build(kind: type, values: Mapping[str, Any], table: str) -> Any:
    given = _group(kind, values, f"{table}.", set())
    for field in dataclasses.fields(kind):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and not given.get(field.name):
            raise WrongKeyError(f"{table}.{field.name}: is missing")
    return kind(**given)


def _group(kind: type, values: Mapping[str, Any], prefix: str, not_here: set[str]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind) if field.name not in not_here]
    result = {}
    for key, value in values.items():
        if key not in names:
            close = difflib.get_close_matches(key, [*names, *TABLES] if not prefix else names, n=1)
            raise WrongKeyError(f"{prefix}{key}: is not a known key{f'; did you mean {close[0]}?' if close else ''}")
        try:
            result[key] = _convert(value, hints[key])
        except ValueError as e:
            raise WrongKeyError(f"{prefix}{key}: {e}") from e
    return result


def _convert(value: Any, hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        hint = typing.get_args(hint)[0]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        words = [str(word) for word in hint]
        if value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return hint(value)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise ValueError("must be a list of words in quotes")
        return tuple(value)
    if typing.get_origin(hint) is not None:
        return _environment(value)
    return _plain(value, hint)


def _plain(value: Any, hint: type) -> Any:
    if hint in {int, float}:
        if isinstance(value, bool) or not isinstance(value, int if hint is int else (int, float)):
            raise ValueError("must be a whole number" if hint is int else "must be a number")
        if value < 0:
            raise ValueError("must not be negative")
        return hint(value)
    if not isinstance(value, hint):
        raise ValueError("must be true or false" if hint is bool else "must be text in quotes")  # noqa: TRY004
    return value


def _environment(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("must be a table of names and texts in quotes")
    for name in value:
        if not ENV_NAME.fullmatch(name):
            raise ValueError(f"{name} cannot be the name of an environment variable")
    return dict(value)


def _process(spec: ProcessSpec | None) -> str | None:
    if spec is None:
        return None
    if wrong := next((path for path in spec.paths if not path.startswith("/")), None):
        return f"paths must be absolute, and {wrong} is not"
    for key, modules in (("preload", spec.preload), ("kernels", spec.kernels)):
        if wrong := next((name for name in modules if not MODULE.fullmatch(name)), None):
            return f"{key} must name Python modules, and {wrong} is none"
        if modules and not spec.warm:
            return f"{key} goes with warm = true"
    if spec.allow and spec.network is not Network.ALLOWLIST:
        return 'allow goes with network = "allowlist"'
    return allowlist.complaint(spec.allow)


def _container(spec: ContainerSpec | None) -> str | None:
    if spec is None:
        return None
    if not IMAGE.fullmatch(spec.image):
        return f"image must be a name as `docker pull` takes it, and {spec.image} is none"
    if spec.port > 65535:
        return "port must be between 1 and 65535"
    if spec.user and not NUMBER.fullmatch(spec.user):
        return "user must be a number of the image's user, as 1000: the home becomes theirs, and it cannot be root"
    if spec.network in {Network.HOST, Network.ALLOWLIST}:
        return "network can be internet or none"
    listens = spec.port or expand.names_in((*spec.command, *spec.env.values())) & {"socket", "port"}
    return None if listens else "port is missing, and the command has neither {socket} nor {port}"


def _description(text: str | None) -> str | None:
    if text is None:
        return None
    if len(text) > LONGEST_DESCRIPTION:
        return f"must have at most {LONGEST_DESCRIPTION} characters"
    return names.complaint(text)


def _starter(folder: str | None) -> str | None:
    if folder is None or FOLDER.fullmatch(folder):
        return None
    return "must be the name of a folder beside this file: letters, digits, -, _ and ."


RULES: dict[str, Callable[[Any], str | None]] = {
    "ready": lambda path: None if path is None or path.startswith("/") else "must begin with /",
    "process": _process,
    "description": _description,
    "starter": _starter,
    "title": lambda title: names.complaint(title) if title.strip() else "must not be empty",
    "container": _container,
}
