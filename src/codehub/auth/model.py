"""What the store returns and the service hands out."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from codehub.audit.model import Origin


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
class Person:
    name: str
    role: Role
    created_at: datetime
    last_login_at: datetime | None
    deactivated_at: datetime | None

    @property
    def active(self) -> bool:
        return self.deactivated_at is None


@dataclass(frozen=True)
class BrowserSession:
    id: str
    user_name: str
    generation: int
    confirmed: int
    created_at: datetime
    rotated_at: datetime
    confirmed_at: datetime
    seen_at: datetime
    expires_at: datetime
    user_agent: str
    revoked_at: datetime | None


@dataclass(frozen=True)
class AccessToken:
    id: str
    user_name: str
    label: str
    secret_hash: bytes
    scopes: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True)
class Caller:
    """Somebody who asks for something: the person, what their credentials allow, and where the call came from."""

    name: str
    role: Role
    scopes: frozenset[Scope]
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
