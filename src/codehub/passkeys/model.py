"""What the store returns, and what the rules decide with."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True)
class Passkey:
    id: str
    user_id: str
    credential_id: bytes
    public_key: bytes
    sign_count: int
    label: str
    transports: list[str]
    belongs_to: str  # the name of the platform when it was made: at another one no browser offers it
    created_at: datetime
    last_used_at: datetime | None
    blocked_at: datetime | None  # it may have been copied: refused until its person removes it


@dataclass(frozen=True)
class NewCredential:
    """What an authenticator has made, verified."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: list[str]


class Purpose(StrEnum):
    """What a question to a passkey was asked for: an answer to the one is worth nothing for the other."""

    REGISTRATION = "registration"
    LOGIN = "login"
    JOIN = "join"  # the first one of a person who has no account yet


class Obstacle(StrEnum):
    """Why no passkey works where a client is."""

    ADDRESS = "address"  # CODEHUB_PUBLIC_URL is a bare address, and passkeys belong to a name
    INSECURE = "insecure"  # plain HTTP to another machine, where browsers have no passkeys


@dataclass(frozen=True)
class Place:
    """Where passkeys work: the name that they belong to, and the only origin that may use them."""

    name: str
    origin: str
