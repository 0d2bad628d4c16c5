"""What the store returns and the service hands out."""

from dataclasses import dataclass
from datetime import datetime

from codehub.policy.model import Role


@dataclass(frozen=True)
class Person:
    id: str
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
