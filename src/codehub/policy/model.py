"""Principals, and what a decision about them is made from: made by `auth` and by services, read by `policy.rules`."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
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


class Kind(Enum):
    """What a principal is."""

    PERSON = "a person"
    SYSTEM = "a part of the platform"
    OPERATOR = "a person with a shell on the machine"


class System(StrEnum):
    """The parts of the platform that act by themselves, as history names them."""

    TTL = "ttl"
    WAKE = "wake"
    SESSIONS = "sessions"
    WAITING_ROOM = "waiting-room"
    CONTROLLER = "controller"
    OPENID = "openid"
    SCHEDULES = "schedules"


@dataclass(frozen=True)
class Origin:
    """Where an act came from: part of every audited call."""

    actor: str
    request_id: str | None = None
    address: str | None = None


@dataclass(frozen=True)
class Principal:
    """Who asks for something: what they are, what their credentials allow, and where the call came from."""

    name: str
    role: Role  # of a person
    scopes: frozenset[Scope]
    id: str = ""  # a person's; the operator and the system have none
    session_id: str | None = None
    token_id: str | None = None
    request_id: str | None = None
    address: str | None = None
    expires_at: datetime | None = None  # of the token; a session goes on while it is used
    kind: Kind = Kind.PERSON
    workspace_id: str | None = None  # by a pass, which is good for this workspace and nothing else
    visit_told: bool | None = None  # by a pass: was the owner told of this visit?
    teaches: frozenset[str] = frozenset()  # names of the learners of their classes
    manages: frozenset[str] = frozenset()  # of these, those whose accounts were made in a class of theirs, or joined it
    attends: bool = False  # a class, or several
    display_name: str = ""  # what others call them; no decision depends on it, nor on the two below
    language: str | None = None  # of the pages that they read; None: what their browser prefers
    time_zone: str | None = None

    @property
    def called(self) -> str:
        """For people to read."""
        return self.display_name or self.name

    @property
    def origin(self) -> Origin:
        return Origin(self.name, self.request_id, self.address)


def system(name: System) -> Principal:
    return Principal(name, Role.LEARNER, frozenset(), kind=Kind.SYSTEM)


OPERATOR_KEY = "operator"  # in place of a token's id: what the operator opens stays open as long as the process


def operator(name: str) -> Principal:
    """A person with a shell on the machine: may do everything but learn for others; history and audit name them."""
    return Principal(f"cli:{name}", Role.ADMIN, ALL_SCOPES, token_id=OPERATOR_KEY, kind=Kind.OPERATOR)


class CookieLogin(NamedTuple):
    caller: Principal
    new_cookie: str | None  # to be set on the answer


class Relation(StrEnum):
    """What a principal is to a resource. Where several are true, the first that allows an action is its reason."""

    OWNER = "owner"  # of an account: the person themselves
    GUEST = "guest"
    MEMBER = "member"  # of the class, as a learner
    TEACHER = "teacher"  # of a class that the owner attends
    MANAGER = "manager"  # a teacher of the class in which the owner's account was made, or which it joined
    ADMIN = "admin"
    STAFF = "staff"  # teachers and admins, of whatever class
    PERSON = "person"  # logged in
    OPERATOR = "operator"
    SYSTEM = "system"


@dataclass(frozen=True)
class Resource:
    """What an action is about, as far as a decision needs to know it."""

    id: str | None = None
    owner: str | None = None  # None: it is the platform's
    is_guest: bool = False  # the owner lets this principal in
    is_taught: bool = False  # this principal teaches a class that the owner attends; of a class: teaches it
    is_member: bool = False  # of a class: this principal attends it
    is_isolated: bool = True  # it has an origin of its own, whose scripts cannot act on the dashboard


PLATFORM = Resource()


class Effect(Enum):
    ALLOW = "allow"
    HIDE = "hide"  # for this principal it does not exist
    FORBID = "forbid"


@dataclass(frozen=True)
class Decision:
    effect: Effect
    reason: str  # for the person, where it is not allowed
    relation: Relation | None = None  # by which it is allowed
    tells_owner: bool = False

    @property
    def allowed(self) -> bool:
        return self.effect is Effect.ALLOW
