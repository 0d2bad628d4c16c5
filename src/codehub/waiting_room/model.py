"""Frozen dataclasses: events and places as PostgreSQL has them, and what the line in Redis answers.

Rows are made by `store`, judged by `rules`; the answers of `line` are read by `service`, `pump` and `stream`.
"""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

LAB = "lab"  # the event that guards the platform itself
EPOCH = 2**32  # sequences of one epoch: a sequence is epoch · EPOCH + n

# What PostgreSQL has.


class Order(enum.StrEnum):
    FIFO = "fifo"
    LOTTERY = "lottery"  # those who join before it opens are shuffled; later ones go behind


class Activity(enum.StrEnum):
    IDLE = "idle"  # no person can be in line: the pump does not look
    CLOSING = "closing"  # the pump saw none; a join would take this back before it becomes idle
    BUSY = "busy"


class State(enum.StrEnum):
    """Of a place. All but `NONE` count against the capacity."""

    NONE = "none"
    OFFERED = "offered"
    RESERVED = "reserved"  # entered, and not used yet
    HELD = "held"  # by a workspace or a run


@dataclass(frozen=True)
class Event:
    id: str
    owner: str | None  # by name; None: the platform's
    capacity: int | None  # None: of `lab`, whose capacity is a setting
    admission_rate: float | None  # people a minute
    next_grant_at: datetime | None
    opens_at: datetime | None
    order: Order
    drawn: bool  # the lottery is over
    place_lease_seconds: int
    paused: bool
    draining: bool
    secret: bytes
    epoch: int  # 0: never opened
    opened_at: datetime | None  # this epoch
    lost_line: bool  # this epoch began with a loss: people of the one before may come back
    activity: Activity
    has_live_waiters: bool
    waiters_version: int
    waiters_seen_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class Place:
    """What one person has at one event. Stays after its end: `gone_seq` says which sequences are over."""

    event_id: str
    pid: str
    changed_at: datetime
    person: str | None = None  # None: not known yet
    name: str | None = None
    state: State = State.NONE
    seq: int = 0
    offer_id: int | None = None
    gone_seq: int = 0
    noted: bool = False  # Redis has heard of it
    version: int = 0  # as it was read
    offered_at: datetime | None = None
    expires_at: datetime | None = None
    workspace_id: str | None = None
    run_id: str | None = None


# What `line` answers.


class Loss(enum.Enum):
    """Redis has lost the line, or is another one than it was: a new epoch has to be opened."""

    LOSS = "loss"


LOSS: Final = Loss.LOSS


class Expired(enum.Enum):
    """This token stands for no place in line: silent for too long, left, entered, or never there."""

    EXPIRED = "expired"


EXPIRED: Final = Expired.EXPIRED


@dataclass(frozen=True)
class Check:
    """The token is from before a loss. PostgreSQL says whether it may return: then `confirm`, else `drop`."""

    expected: int  # the sequence that this person has in line now; goes to `confirm`


class Joined(NamedTuple):
    seq: int
    joined_ms: int
    name: str
    new: bool


class Standing(NamedTuple):
    """Where a waiting person stands. A tuple, because one is made for every poll."""

    position: int | None  # None: before a lottery opens
    live_ahead: int  # of those ahead, how many may be offered a place
    ready: bool
    paused: bool
    lottery: bool  # it has not opened yet
    offer_deadline_ms: int | None
    passed: bool  # an offer was not taken: behind those who were not offered one yet
    eta: str  # as `configure` was told
    logn: int  # the newest entry of the event's log
    opens_ms: int | None = None
    stands: Joined | None = None  # another token of this person is the one that counts


class Why(enum.StrEnum):
    ENTERED = "entered"
    LEFT = "left"
    STALE = "stale"  # has a place already, or this sequence is over


class Marked(enum.StrEnum):
    OK = "ok"
    ABSENT = "absent"  # not in line with this sequence: the offer is closed, and has to lapse
    RETURNING = "returning"  # not in line, but people are still returning after a loss: ask again
    CLOSED = "closed"  # this offer, or a later one, was closed before: it has to lapse
    OTHER_EPOCH = "other epoch"  # read PostgreSQL again


class Overdue(NamedTuple):
    """An offer that was not taken in time. It is shown to its person no more, and waits for PostgreSQL to lapse it."""

    pid: str
    offer_id: int


class Pick(NamedTuple):
    pid: str
    seq: int


@dataclass(frozen=True)
class Swept:
    overdue: list[Overdue]
    expired: list[Pick]
    silenced: int
    more: bool  # there was more to do than the limit


@dataclass(frozen=True)
class LineCounts:
    waiting: int
    live: int
    silent: int
    passed: int
    offered: int
    entered: int  # these three since the line was last emptied
    left: int
    expired: int
    logn: int
    epoch: int
    paused: bool
    lottery: bool
    holding: bool  # nothing is offered for a while after a loss
    returning: bool  # tokens from before a loss may still return


class LogKind(enum.StrEnum):
    ENTERED = "entered"
    LEFT = "left"
    EXPIRED = "expired"
    READY = "ready"
    PASSED = "passed"
    OPENED = "opened"
    SCHEDULED = "scheduled"  # it opens at another time
    PAUSED = "paused"
    RESUMED = "resumed"
    RESET = "reset"


class LogEntry(NamedTuple):
    number: int
    kind: LogKind
    seq: int  # 0: of the whole event


class MemberState(enum.StrEnum):
    UNCHECKED = "unchecked"
    LIVE = "live"
    SILENT = "silent"
    OFFERED = "offered"
    PASSED = "passed"


class Member(NamedTuple):
    """One line of the view of a line that its owner sees."""

    position: int
    pid: str
    seq: int
    state: MemberState
    seen_ms: int
    name: str | None  # None: Redis has lost it, until the next poll
    joined_ms: int | None
