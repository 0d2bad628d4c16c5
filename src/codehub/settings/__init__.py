"""Settings: read once by `cli`, from the environment and `codehub.toml`, into frozen groups that are handed around.

What there is to set is declared in `groups`; `codehub settings` and the docs print it from there. Wrong values end
the start, with a line for each that names it.
"""

import dataclasses
import difflib
import functools
import os
import pathlib
import tomllib
import types
import typing
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from codehub.errors import SettingsError
from codehub.settings import openid, overview
from codehub.settings.groups import (
    ActivityConfig,
    ArchiveConfig,
    AuthConfig,
    CoordinatorConfig,
    LimitsConfig,
    LogConfig,
    Network,
    RuntimeConfig,
    ServerConfig,
    Settings,
    StorageConfig,
    TtlConfig,
)
from codehub.settings.openid import OpenIdConfig
from codehub.settings.queue import QueueConfig
from codehub.settings.roles import RolesConfig
from codehub.settings.schedules import ScheduleConfig
from codehub.settings.sessions import PracticeConfig, SessionConfig
from codehub.settings.shares import ShareConfig

__all__ = [
    "OTHER_NAMES",
    "ActivityConfig",
    "ArchiveConfig",
    "AuthConfig",
    "CoordinatorConfig",
    "LimitsConfig",
    "LogConfig",
    "Network",
    "OpenIdConfig",
    "PracticeConfig",
    "QueueConfig",
    "RolesConfig",
    "RuntimeConfig",
    "ScheduleConfig",
    "ServerConfig",
    "SessionConfig",
    "Settings",
    "ShareConfig",
    "StorageConfig",
    "TtlConfig",
    "default_data_dir",
    "describe",
    "load",
    "load_checked",
    "sources",
    "suggestion",
    "to_environ",
    "unknown_names",
]

# Read by the command line and the supervisor themselves, before or beside the groups.
OTHER_NAMES = {"CODEHUB_SETTINGS": "Path of the settings file; unset: `codehub.toml` in the current directory, if any."}


def load(environ: Mapping[str, str] | None = None, file: pathlib.Path | None = None) -> Settings:
    """Read the settings. The environment wins over the file, the file over the defaults."""
    settings, problems = load_checked(environ, file)
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


def load_checked(
    environ: Mapping[str, str] | None = None, file: pathlib.Path | None = None
) -> tuple[Settings, list[str]]:
    """The settings with every wrong one left at its default, and a line about each wrong one."""
    env = os.environ if environ is None else environ
    path = file or _settings_file(env)
    problems: list[str] = []
    from_file = _read_file(path, problems) if path else {}
    groups = {f.name: _load_group(f.type, env, from_file, path, problems) for f in _groups()}
    return Settings(**groups, openid=openid.read(env, from_file, path, problems)), problems


def _groups() -> list[dataclasses.Field[Any]]:
    """Those with a fixed set of names."""
    return [f for f in dataclasses.fields(Settings) if f.type is not OpenIdConfig]


def to_environ(settings: Settings) -> dict[str, str]:
    """The same settings as environment variables, for child processes that may not read our files."""
    result = settings.openid.to_environ()
    for group in _groups():
        values = getattr(settings, group.name)
        for field in dataclasses.fields(values):
            value = getattr(values, field.name)
            if value not in (None, ()):
                result[field.metadata["env"]] = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return result


def describe() -> list[tuple[str, str, str]]:
    """(name, default, meaning) of every setting, for the docs and `codehub settings`."""
    rows = []
    for group in _groups():
        for field in dataclasses.fields(typing.cast("type", group.type)):
            default = "" if field.default in (None, ()) else str(field.default)
            rows.append((field.metadata["env"], default, field.metadata["help"]))
    return [*rows, *openid.described(), *((name, "", meaning) for name, meaning in OTHER_NAMES.items())]


def sources(environ: Mapping[str, str] | None = None) -> dict[str, overview.Source]:
    """Where each setting came from that was given: of those that are not in it, the default holds."""
    env = os.environ if environ is None else environ
    path = None if overview.SOURCES in env else _settings_file(env)
    return overview.sources(env, _read_file(path, []) if path else {})


def unknown_names(environ: Mapping[str, str]) -> list[str]:
    """CODEHUB_ names in the environment that mean nothing here: most likely spelling mistakes."""
    known = {overview.SOURCES, *(name for name, _, _ in describe())}
    given = (name for name in environ if name.startswith("CODEHUB_") and name not in known)
    return sorted(name for name in given if not openid.is_known(name))


def suggestion(name: str) -> str:
    close = difflib.get_close_matches(name, [known for known, _, _ in describe()], n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _settings_file(env: Mapping[str, str]) -> pathlib.Path | None:
    if named := env.get("CODEHUB_SETTINGS"):
        return pathlib.Path(named)
    here = pathlib.Path("codehub.toml")
    return here if here.is_file() else None


def _read_file(path: pathlib.Path, problems: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        problems.append(f"cannot read the settings file {path}: {e.strerror}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        problems.append(f"{path} is not valid TOML: {e}")
    known = {openid.TABLE, *(name for name, _, _ in describe())}
    problems += [f"{path}: unknown setting {name}{suggestion(name)}" for name in values if name not in known]
    return values


def _load_group(
    group: Any, env: Mapping[str, str], from_file: dict[str, Any], path: pathlib.Path | None, problems: list[str]
) -> Any:
    hints = typing.get_type_hints(group)
    values = {}
    for field in dataclasses.fields(group):
        name = field.metadata["env"]
        if name == "CODEHUB_DATA_DIR":
            values[field.name] = default_data_dir(env)
        if given := env.get(name, ""):
            raw, where = given, ""
        elif name in from_file:
            raw, where = from_file[name], f" in {path}"
        else:
            continue
        try:
            values[field.name] = _parse(name, raw, hints[field.name], field.metadata, where)
        except SettingsError as e:
            problems.append(e.detail)
    made = group(**values)
    wrong = made.complaints() if hasattr(made, "complaints") else []
    problems += wrong
    return group() if wrong else made


def _parse(name: str, raw: Any, hint: Any, metadata: Mapping[str, Any], where: str) -> Any:
    shown = "…" if metadata["secret"] else repr(raw)
    try:
        value = _convert(raw, hint)
    except (ValueError, TypeError) as e:
        raise SettingsError(f"{name}={shown}{where}: {e}") from e
    complaint = metadata["check"](value) if metadata["check"] else None
    if complaint:
        raise SettingsError(f"{name}={shown}{where}: {complaint}")
    return value


def _convert(raw: Any, hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        hint = typing.get_args(hint)[0]
    if hint is pathlib.Path:
        return pathlib.Path(raw).expanduser().absolute()
    if hint in (int, float):
        try:
            return hint(raw)
        except ValueError:
            raise ValueError(f"must be {'a whole number' if hint is int else 'a number'}") from None
    if typing.get_origin(hint) is tuple:
        parts = [part.strip() for part in (raw.split(",") if isinstance(raw, str) else raw)]
        kind = str if typing.get_args(hint)[0] is str else functools.partial(ip_network, strict=False)
        return tuple(kind(part) for part in parts if part)
    if not isinstance(raw, str):
        raise TypeError("must be text in quotes")
    return raw


def default_data_dir(env: Mapping[str, str]) -> pathlib.Path:
    if os.geteuid() == 0:
        return pathlib.Path("/var/lib/codehub")
    base = env.get("XDG_DATA_HOME") or pathlib.Path(env.get("HOME") or "~").expanduser() / ".local" / "share"
    return pathlib.Path(base) / "codehub"
