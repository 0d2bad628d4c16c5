"""May one more run? Asked by `service` for every request that could raise the number of running workspaces.

The decision is pure and an outcome, not an exception: the API makes 429 of it, a page offers to put another one to
sleep, and the waiting room is where those go who find no place. How many may be *started* at the same time is another
question, and the reconciler's.
"""

from dataclasses import asdict, dataclass
from typing import TypeVar

from codehub.db import Connection
from codehub.settings import LimitsConfig
from codehub.workspaces.errors import RunningLimitError
from codehub.workspaces.store import sql

T = TypeVar("T")


@dataclass(frozen=True)
class Running:
    id: str
    name: str


@dataclass(frozen=True)
class Counts:
    """Besides the workspace in question. Of the owner's, the first few are named, for who could make room."""

    everywhere: int
    of_owner: int
    named: tuple[Running, ...] = ()
    reserved: int = 0  # places that are promised to others, and not taken yet


@dataclass(frozen=True)
class Limits:
    """0: none."""

    per_user: int
    everywhere: int


@dataclass(frozen=True)
class Admitted:
    pass


@dataclass(frozen=True)
class OwnLimit:
    limit: int
    running: tuple[Running, ...]  # the owner's: putting one of these to sleep makes room


@dataclass(frozen=True)
class NoPlace:
    limit: int
    waiting: int  # how many wait for a place already
    running: tuple[Running, ...]  # the owner's, as above


Refused = OwnLimit | NoPlace


def decide(counts: Counts, limits: Limits, *, reservation: bool, line: int) -> Admitted | Refused:
    """`reservation`: a place is held for exactly this request; `line`: how many others wait.

    One's own limit goes first: no reservation lifts it. No request overtakes the line, and none in it is overtaken.
    """
    if limits.per_user and counts.of_owner >= limits.per_user:
        return OwnLimit(limits.per_user, counts.named)
    if not limits.everywhere or reservation:
        return Admitted()
    if line or counts.everywhere + counts.reserved >= limits.everywhere:
        return NoPlace(limits.everywhere, line, counts.named)
    return Admitted()


async def admit(c: Connection, limits: LimitsConfig, owner: str, besides: str) -> Admitted | Refused:
    """Exact: who asks goes one after the other, from here to the end of their transaction."""
    await c.execute(sql.serialize_starts)
    found = await c.fetchrow(sql.count_running, owner, besides)
    assert found  # noqa: S101 (an aggregate always returns a row)
    counts = Counts(found["everywhere"], found["of_owner"])
    bounds = Limits(limits.max_running_per_user, limits.max_running_global)
    outcome = decide(counts, bounds, reservation=False, line=0)
    if isinstance(outcome, Admitted):
        return outcome
    named = tuple(Running(row["id"], row["name"]) for row in await c.fetch(sql.running_of, owner))
    return decide(Counts(counts.everywhere, counts.of_owner, named), bounds, reservation=False, line=0)


def admitted(outcome: T | Refused) -> T:
    """For callers that have no other answer to a refusal than the API's: 429, with what runs."""
    match outcome:
        case OwnLimit(limit, running):
            detail = f"{limit} may run at a time: stop one first"
        case NoPlace(limit, _, running):
            detail = f"all {limit} places are taken: try again when another workspace has stopped"
        case _:
            return outcome
    raise RunningLimitError(detail, running=[asdict(other) for other in running], limit=limit)
