"""Principals: made by `auth` from credentials, and asked for by every service."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Role(StrEnum):
    ADMIN = "admin"
    TEACHER = "teacher"
    LEARNER = "learner"


class Scope(StrEnum):
    """What a token may be used for, never more than the person may."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


ALL_SCOPES = frozenset(Scope)


@dataclass(frozen=True)
class Origin:
    """Where an act came from: part of every audited call."""

    actor: str
    request_id: str | None = None
    address: str | None = None


@dataclass(frozen=True)
class Principal:
    """Somebody who asks for something: the person, what their credentials allow, and where the call came from."""

    name: str
    role: Role
    scopes: frozenset[Scope]
    id: str = ""  # a person's; the operator and the system have none
    session_id: str | None = None
    token_id: str | None = None
    request_id: str | None = None
    address: str | None = None
    expires_at: datetime | None = None  # of the token; a session goes on while it is used

    @property
    def origin(self) -> Origin:
        return Origin(self.name, self.request_id, self.address)

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN and Scope.ADMIN in self.scopes


class CookieLogin(NamedTuple):
    caller: Principal
    new_cookie: str | None  # to be set on the answer
