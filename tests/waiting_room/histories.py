"""What happened in a waiting room, as clients and database saw it: written by `recording`, judged by `verdicts`.

Two clocks. `begin`, `end` and `moment` are real seconds: which came before which. `at` and `until` are the platform's
own time, which a test may drive: how long something took.
"""

import enum
import math
from dataclasses import dataclass, field

NEVER = math.inf


class Kind(enum.StrEnum):
    JOIN = "join"
    POLL = "poll"
    ENTER = "enter"
    LEAVE = "leave"
    PUMP = "pump"


class Answer(enum.StrEnum):
    OK = "ok"
    EXPIRED = "TOKEN_EXPIRED"
    NOT_YET = "NOT_YOUR_TURN"
    ADMITTED = "ALREADY_ADMITTED"
    CLOSED = "EVENT_CLOSED"
    AWAY = "unavailable"  # may have been done
    LOST = "lost"  # cancelled, or its process was killed: may have been done, may still be done


UNKNOWN = frozenset({Answer.AWAY, Answer.LOST})


@dataclass(frozen=True)
class Op:
    """A call. `seq` is the sequence of the token it came with; of a join, the one it was answered."""

    kind: Kind
    begin: float
    end: float  # NEVER: no answer came
    at: float
    until: float
    person: str = ""
    seq: int = 0
    answer: Answer = Answer.OK
    new: bool = False  # of a join: a new place in line
    stands: int = 0  # the sequence that counts, if another token of this person does
    position: int | None = None
    ready: bool = False
    passed: bool = False
    deadline: float | None = None  # what the person was told, in the platform's time
    reservation: str = ""

    @property
    def counts(self) -> int:
        return self.stands or self.seq

    @property
    def waits(self) -> bool:
        """Was the person answered that they are in line?"""
        return self.kind in {Kind.JOIN, Kind.POLL} and self.answer is Answer.OK


class State(enum.StrEnum):
    NONE = "none"
    OFFERED = "offered"
    RESERVED = "reserved"
    HELD = "held"


PLACED = frozenset({State.RESERVED, State.HELD})


@dataclass(frozen=True)
class Change:
    """Of a place, in the order of the commits."""

    moment: float
    at: float
    person: str
    before: State
    after: State
    seq: int
    gone_seq: int = 0
    offer_id: int = 0

    @property
    def grants(self) -> bool:
        return self.after is State.OFFERED and self.before is State.NONE


@dataclass(frozen=True)
class Setting:
    """What the event's row said from here on."""

    moment: float
    at: float
    capacity: int
    paused: bool = False
    epoch: int = 1
    open: bool = True  # `opens_at` is over


class How(enum.StrEnum):
    EMPTIED = "emptied"
    FAILED_OVER = "failed over"
    RESTARTED = "restarted"
    AWAY = "away"  # answered nothing for a while, and lost nothing


@dataclass(frozen=True)
class Loss:
    """From `moment` to `over` Redis was away, or what it had was gone."""

    how: How
    moment: float
    over: float
    at: float
    until: float
    idle: bool = False  # nobody was known to wait: only joins that were not answered yet could be lost


@dataclass(frozen=True)
class Opening:
    """Redis was opened with an epoch."""

    moment: float
    at: float


@dataclass(frozen=True)
class Times:
    """The settings in force, in seconds."""

    silent: float = 90.0
    heartbeat: float = 300.0
    offer: float = 60.0
    survived_hold: float = 10.0
    unseen: float = 0.0  # how long a row that was written may not be committed yet, where processes compete


@dataclass
class History:
    times: Times = field(default_factory=Times)
    ops: list[Op] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    openings: list[Opening] = field(default_factory=list)  # where they were seen; else the rows tell it nearly
    lottery: bool = False  # of those who joined before it opened, the order is not that of their joins

    def of(self, person: str, *kinds: Kind) -> list[Op]:
        return [op for op in self.ops if op.person == person and (not kinds or op.kind in kinds)]

    def people(self) -> list[str]:
        return sorted({op.person for op in self.ops} - {""})

    def setting_at(self, moment: float) -> Setting:
        return [s for s in self.settings if s.moment <= moment][-1]

    def unsettled(self, since_at: float, end: float) -> bool:
        """Does a loss, or the time in which people come back after it, reach into the time between these two?"""
        return any(loss.moment <= end and since_at <= self.window_end(loss) for loss in self.real_losses())

    def real_losses(self) -> list[Loss]:
        return [loss for loss in self.losses if loss.how is not How.AWAY]

    def window_end(self, loss: Loss) -> float:
        """In the platform's time. The window begins with the epoch that answers the loss."""
        if self.openings:
            opened = [o.at for o in self.openings if o.moment >= loss.moment]
        else:
            opened = [s.at for s in self.settings if s.moment >= loss.moment and s.epoch > self._epoch_before(loss)]
        return (min(opened) if opened else math.inf) + self.times.heartbeat

    def _epoch_before(self, loss: Loss) -> int:
        return max((s.epoch for s in self.settings if s.moment < loss.moment), default=0)


@dataclass(frozen=True)
class Violation:
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


def timeline(h: History) -> str:
    """What happened, in order, for a person who looks for the reason of a violation."""
    begun = min((s.moment for s in h.settings), default=0.0)
    since = min((s.at for s in h.settings), default=0.0)
    lines: list[tuple[float, str]] = [(s.moment, f"{s.at - since:8.1f} event: {s}") for s in h.settings]
    lines += [(x.moment, f"{x.at - since:8.1f} Redis: {x.how}") for x in h.losses]
    lines += [
        (
            c.moment,
            f"{c.at - since:8.1f} row: {c.person} {c.before} → {c.after}, {short(c.seq)}, gone {short(c.gone_seq)}",
        )
        for c in h.changes
    ]
    for op in h.ops:
        asked = f"{op.kind} {op.person} {short(op.seq) if op.seq else ''}"
        shown = {"position": op.position, "ready": op.ready, "passed": op.passed, "stands": short(op.stands)}
        told = ", ".join(f"{name} {value}" for name, value in shown.items() if value and value != "0/0")
        lines.append((op.begin, f"{op.at - since:8.1f} {asked} begins"))
        if op.end != NEVER:
            lines.append((op.end, f"{op.until - since:8.1f} {asked} is answered {op.answer} {told}"))
        else:
            lines.append((op.begin, f"{op.at - since:8.1f} {asked} is never answered"))
    return "\n".join(f"{moment - begun:9.4f} {text}" for moment, text in sorted(lines, key=lambda line: line[0]))


def short(seq: int) -> str:
    """Epoch and number."""
    return f"{seq >> 32}/{seq & (2**32 - 1)}"
