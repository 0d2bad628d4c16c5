"""What the store returns and the service hands out."""

from dataclasses import dataclass, field
from datetime import datetime

from codehub.policy.model import Role


@dataclass(frozen=True)
class Person:
    id: str
    name: str
    display_name: str  # empty: the name is shown
    role: Role
    language: str | None  # None: what the browser prefers
    time_zone: str | None
    created_at: datetime
    last_login_at: datetime | None
    deactivated_at: datetime | None
    removed_at: datetime | None

    @property
    def active(self) -> bool:
        return self.deactivated_at is None

    @property
    def called(self) -> str:
        """For people to read."""
        return self.display_name or self.name


@dataclass(frozen=True)
class BrowserSession:
    id: str
    user_id: str
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
    user_id: str
    label: str
    secret_hash: bytes
    scopes: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True)
class Password:
    user_id: str
    hash: str = field(repr=False)
    changed_at: datetime


@dataclass(frozen=True)
class NewPassword:
    """What is stored of one that was taken."""

    hash: str = field(repr=False)


@dataclass(frozen=True)
class WorkingWays:
    """Which ways in the platform has now. Others were taken away by the operator, who may bring them back."""

    issuers: frozenset[str] = frozenset()  # of the providers that are configured
    passkey_name: str | None = None  # that passkeys must belong to; None: there are none at this address


@dataclass(frozen=True)
class WaysIn:
    """What a person can come in by today, again and again; a login link is good once, and is none."""

    has_password: bool
    passkeys: int
    identities: int

    @property
    def count(self) -> int:
        return self.has_password + self.passkeys + self.identities
