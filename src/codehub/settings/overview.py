"""The settings in force, each with where it came from, and no secret in it. Pure; shown by the page `/settings`."""

import dataclasses
import json
import pathlib
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from codehub.settings import openid
from codehub.settings.groups import Settings
from codehub.settings.openid import OpenIdConfig

HIDDEN = "••••••"
SOURCES = "CODEHUB_SETTING_SOURCES"  # in the environment of our own processes, whose settings all come that way
PASSWORD = re.compile(r"(?<=://)[^/?#\s]*@")  # of a URL: who, and by which password
QUERY_SECRET = re.compile(r"([?&][^=&#\s]*(?:secret|key|password|token|signature)[^=&#\s]*=)[^&#\s]*", re.IGNORECASE)


class Source(StrEnum):
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"
    ITSELF = "itself"  # CodeHub chose it: the servers and the keys that come with it


@dataclasses.dataclass(frozen=True)
class Setting:
    name: str
    value: str | None  # None: not set
    default: str
    meaning: str  # in English; `meanings` has other languages, by `described_as`
    source: Source
    described_as: str

    @property
    def changed(self) -> bool:
        return self.source in {Source.ENVIRONMENT, Source.FILE}


@dataclasses.dataclass(frozen=True)
class Group:
    name: str
    settings: tuple[Setting, ...]


def sources(environ: Mapping[str, str], from_file: Mapping[str, Any]) -> dict[str, Source]:
    """Of each setting that was given. The process that read the file says so to those that it starts."""
    if told := environ.get(SOURCES):
        return {name: Source(word) for name, word in json.loads(told).items()}
    found = {name: Source.FILE for name in from_file if name.startswith("CODEHUB_")}
    for provider, values in _tables(from_file).items():
        found |= {f"{openid.PREFIX}{provider.upper().replace('-', '_')}_{key.upper()}": Source.FILE for key in values}
    given = {name: Source.ENVIRONMENT for name, value in environ.items() if name.startswith("CODEHUB_") and value}
    return {**found, **given}


def _tables(from_file: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    tables = from_file.get(openid.TABLE)
    named = tables.items() if isinstance(tables, Mapping) else ()
    return {name: values for name, values in named if isinstance(values, Mapping)}


def in_force(settings: Settings, known: Mapping[str, Source]) -> list[Group]:
    groups = []
    for group in dataclasses.fields(settings):
        values = getattr(settings, group.name)
        if isinstance(values, OpenIdConfig):
            if values.providers:
                groups.append(Group(group.name, tuple(_providers(values, known))))
            continue
        fields = dataclasses.fields(values)
        groups.append(Group(group.name, tuple(_setting(f, getattr(values, f.name), known) for f in fields)))
    return groups


def _setting(field: "dataclasses.Field[Any]", value: Any, known: Mapping[str, Source]) -> Setting:
    name, secret = field.metadata["env"], field.metadata["secret"]
    default = None if field.default is dataclasses.MISSING else field.default
    unset = Source.DEFAULT if value == default else Source.ITSELF
    shown = HIDDEN if secret and value is not None else shown_value(value)
    return Setting(name, shown, shown_value(default) or "", field.metadata["help"], known.get(name, unset), name)


def _providers(config: OpenIdConfig, known: Mapping[str, Source]) -> list[Setting]:
    meanings = {key: meaning for key, (_, _, meaning) in zip(openid.HELP, openid.described(), strict=True)}
    found = []
    for name, text in config.to_environ().items():
        key = next(key for key in sorted(openid.HELP, key=len, reverse=True) if name.endswith(f"_{key}"))
        shown = HIDDEN if key == "CLIENT_SECRET" else shown_value(text)
        found.append(
            Setting(name, shown, "", meanings[key], known.get(name, Source.DEFAULT), f"{openid.PREFIX}NAME_{key}")
        )
    return found


def shown_value(value: Any) -> str | None:
    """Without what a URL has of a password."""
    if value is None or value == ():
        return None
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    if isinstance(value, pathlib.Path):
        return text
    return QUERY_SECRET.sub(rf"\1{HIDDEN}", PASSWORD.sub(f"{HIDDEN}@", text))
