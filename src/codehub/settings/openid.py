"""Logins of a school or a company: OpenID providers, any number. A group of the settings; used by `openid`.

Each is a table `[openid.NAME]` of the settings file, or names CODEHUB_OPENID_NAME_… in the environment, which win.
Other groups have a fixed set of names; this one finds its own, so that `codehub.settings` asks it to read itself.
"""

import json
import pathlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from codehub import ids, names
from codehub.hostnames import is_loopback

PREFIX = "CODEHUB_OPENID_"
TABLE = "openid"  # in the settings file
LONGEST_NAME = 32
LONGEST_TITLE = 60
ROLES = ("learner", "teacher", "admin")
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Provider:
    """One of them. `name` is in addresses and in the settings; what people read is the title."""

    name: str
    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    title: str = ""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    create: bool = False
    role: str = "learner"
    trust_email: bool = False
    groups_claim: str = "groups"
    roles: Pairs = ()
    classes: Pairs = ()
    logout: bool = True

    @property
    def shown(self) -> str:
        return self.title or self.name


HELP = {
    "ISSUER": "Its address as it says it itself, https://… (http:// only on this machine). Required.",
    "CLIENT_ID": "What it calls this CodeHub. Required.",
    "CLIENT_SECRET": "What it gave this CodeHub to prove who it is; unset where it asks for PKCE alone.",
    "TITLE": "What the button on the sign-in page says; unset: the name.",
    "SCOPES": "What it is asked for, separated by commas; `openid` always.",
    "CREATE": "true: a person who comes from there for the first time gets an account; else only linked ones get in.",
    "ROLE": "The role of such a new account: learner or teacher.",
    "TRUST_EMAIL": "true: a new login whose verified e-mail is that of another such provider's login, or of an earlier "
    "one of this provider, is the same person. Only where addresses are never given to another person.",
    "GROUPS_CLAIM": "The claim that has a person's groups.",
    "ROLES": "Which groups give which role, as JSON: an object of group and role. Read at each login.",
    "CLASSES": "Which groups belong to which class, as JSON: an object of group and a class's id. Read at each login.",
    "LOGOUT": "false: who logs out here stays logged in there.",
}
_BY_LENGTH = sorted(HELP, key=len, reverse=True)
REQUIRED = ("issuer", "client_id")


@dataclass(frozen=True)
class OpenIdConfig:
    providers: tuple[Provider, ...] = ()

    def find(self, name: str) -> Provider | None:
        return next((p for p in self.providers if p.name == name), None)

    def to_environ(self) -> dict[str, str]:
        return {
            f"{PREFIX}{_upper(provider.name)}_{key}": text
            for provider in self.providers
            for key in HELP
            if (text := _as_text(getattr(provider, key.lower()))) is not None
        }


def described() -> list[tuple[str, str, str]]:
    """(name, default, meaning), with NAME in place of a provider's."""
    defaults = {f.name: "" if f.default in (None, ()) else _as_text(f.default) or "" for f in fields(Provider)}
    defaults |= dict.fromkeys(REQUIRED, "")
    return [
        (f"{PREFIX}NAME_{key}", defaults[key.lower()], f"Of the provider NAME. {text}") for key, text in HELP.items()
    ]


def is_known(name: str) -> bool:
    """Is this an environment name of a provider's?"""
    return _split(name) is not None


def read(
    env: Mapping[str, str], from_file: Mapping[str, Any], path: pathlib.Path | None, problems: list[str]
) -> OpenIdConfig:
    """All that are as they should be; a line in `problems` about each that is not."""
    found: dict[str, dict[str, tuple[str, Any]]] = {}  # by name and field: where it is said, and what
    for name, table in _tables(from_file, path, problems).items():
        said = {key: (f"[{TABLE}.{name}] {key}", value) for key, value in table.items()}
        unknown = [key for key in said if key.upper() not in HELP]
        problems += [
            f"{path}: unknown setting {said[key][0]}; there are {', '.join(map(str.lower, HELP))}" for key in unknown
        ]
        found[name] = {key: value for key, value in said.items() if key not in unknown}
    for variable in env:  # in their order, which is that of the buttons: `to_environ` keeps it
        if env[variable] and (split := _split(variable)):
            found.setdefault(split[0], {})[split[1]] = (variable, env[variable])
    made = [_provider(name, given, problems) for name, given in found.items()]
    return OpenIdConfig(_distinct([p for p in made if p], problems))


def _tables(from_file: Mapping[str, Any], path: pathlib.Path | None, problems: list[str]) -> dict[str, dict[str, Any]]:
    tables = from_file.get(TABLE, {})
    if isinstance(tables, dict) and all(isinstance(table, dict) for table in tables.values()):
        return tables
    problems.append(f"{path}: {TABLE} must be tables such as [{TABLE}.school]")
    return {}


def _split(variable: str) -> tuple[str, str] | None:
    """A provider's name, and the field."""
    if not variable.startswith(PREFIX):
        return None
    rest = variable.removeprefix(PREFIX)
    key = next((key for key in _BY_LENGTH if rest.endswith(f"_{key}") and len(rest) > len(key) + 1), None)
    return (rest.removesuffix(f"_{key}").lower().replace("_", "-"), key.lower()) if key else None


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


def _provider(name: str, given: Mapping[str, tuple[str, Any]], problems: list[str]) -> Provider | None:
    if not ids.is_label(name) or len(name) > LONGEST_NAME:
        problems.append(f"[{TABLE}.{name}]: the name must be 1 to {LONGEST_NAME} of a–z, 0–9 and -, not at the ends")
        return None
    wrong = [f"[{TABLE}.{name}]: {key} is missing" for key in REQUIRED if key not in given]
    values: dict[str, Any] = {}
    for key, (where, raw) in given.items():
        try:
            values[key] = PARSE[key](raw)
        except ValueError as e:
            shown = "…" if key == "client_secret" else repr(raw)
            wrong.append(f"{where}={shown}: {e}")
    problems += wrong
    return None if wrong else Provider(name, **values)


def _distinct(providers: list[Provider], problems: list[str]) -> tuple[Provider, ...]:
    """A person is known by issuer and subject: two providers of one issuer could not be told apart."""
    first: dict[str, Provider] = {}
    for provider in providers:
        other = first.setdefault(provider.issuer, provider)
        if other is not provider:
            problems.append(f"[{TABLE}.{provider.name}]: has the same issuer as [{TABLE}.{other.name}]")
    return tuple(first.values())


def _as_text(value: Any) -> str | None:
    """As it stands in the environment; None: not set."""
    match value:
        case None | "" | ():
            return None
        case bool():
            return str(value).lower()
        case ((str(), str()), *_):
            return json.dumps(dict(value), ensure_ascii=False)
        case tuple():
            return ",".join(value)
    return str(value)


def _text(raw: Any) -> str:
    if not isinstance(raw, str) or not raw.strip() or not raw.isprintable():
        raise ValueError("must be text in quotes, on one line")
    return raw.strip()


def _issuer(raw: Any) -> str:
    text = _text(raw)
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme == "http" and host and not is_loopback(host):
        raise ValueError("must begin with https://: only a provider on this machine may do without")
    if parts.scheme not in {"http", "https"} or not host or parts.username or parts.query or parts.fragment:
        raise ValueError("must be a URL such as https://login.example.org, without a query")
    return text


def _title(raw: Any) -> str:
    text = _text(raw)
    if len(text) > LONGEST_TITLE:
        raise ValueError(f"has more than {LONGEST_TITLE} characters")
    if complaint := names.complaint(text):
        raise ValueError(complaint)
    return text


def _scopes(raw: Any) -> tuple[str, ...]:
    parts = raw.replace(",", " ").split() if isinstance(raw, str) else raw
    if not isinstance(parts, list) or not all(isinstance(part, str) and SCOPE.fullmatch(part) for part in parts):
        raise ValueError('must be a list such as ["profile", "email"]')
    return tuple(dict.fromkeys(["openid", *parts]))


def _switch(raw: Any) -> bool:
    found = raw if isinstance(raw, bool) else WORDS.get(str(raw).lower())
    if found is None:
        raise ValueError("must be true or false")
    return found


def _new_role(raw: Any) -> str:
    if raw not in ROLES[:2]:
        raise ValueError("must be learner or teacher; which groups are admins, `roles` can say")
    return str(raw)


def _pairs(raw: Any, check: Callable[[str], bool], complaint: str) -> Pairs:
    try:
        found = json.loads(raw) if isinstance(raw, str) else raw
    except ValueError:
        raise ValueError("must be JSON, an object") from None
    if not isinstance(found, dict) or not all(isinstance(v, str) and check(v) for v in found.values()):
        raise ValueError(complaint)
    return tuple(found.items())


def _roles(raw: Any) -> Pairs:
    return _pairs(raw, lambda role: role in ROLES, f"must say for each group one of {', '.join(ROLES)}")


def _classes(raw: Any) -> Pairs:
    return _pairs(raw, ids.is_label, "must say for each group the id of a class")


PARSE: Mapping[str, Callable[[Any], Any]] = {
    "issuer": _issuer,
    "client_id": _text,
    "client_secret": _text,
    "title": _title,
    "scopes": _scopes,
    "create": _switch,
    "role": _new_role,
    "trust_email": _switch,
    "groups_claim": _text,
    "roles": _roles,
    "classes": _classes,
    "logout": _switch,
}
