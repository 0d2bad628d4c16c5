"""May one more run? Asked by `service` for every request that could raise the number of running workspaces.

The decision is pure and an outcome, not an exception: the API makes 429 of it, a page offers to put another one to
sleep, and the waiting room is where those go who find no place. How many may be *started* at the same time is another
question, and the reconciler's.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Protocol, TypeVar

from codehub.db import Connection
from codehub.settings import LimitsConfig
from codehub.workspaces.errors import RunningLimitError
from codehub.workspaces.store import sql

T = TypeVar("T")
JOIN_URL = "/wait/lab"  # where those wait who find no place


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
class OwnLimit:
    limit: int
    running: tuple[Running, ...]  # the owner's: putting one of these to sleep makes room


@dataclass(frozen=True)
class NoPlace:
    limit: int
    waiting: bool  # do people wait for a place already?
    running: tuple[Running, ...]  # the owner's, as above


Refused = OwnLimit | NoPlace


@dataclass(frozen=True)
class Reservation:
    """A place that the waiting room holds for one person. What its fields mean, the waiting room knows."""

    event_id: str
    pid: str
    seq: int
    lifts_limit: bool  # it is one of those that the limit for all counts


@dataclass(frozen=True)
class Admitted:
    uses: tuple[Reservation, ...] = ()  # to be redeemed for what is started


@dataclass(frozen=True)
class LineState:
    """What the waiting room says to the question whether one more may run."""

    reserved: int  # places that are offered or reserved, besides the owner's own
    waiting: bool  # live people wait
    mine: Reservation | None  # of the owner, and not used yet


class Line(Protocol):
    """The waiting room, as far as admission needs it. Asked under admission's lock; it asks no other server."""

    async def state(self, c: Connection, owner: str) -> LineState: ...

    async def named(self, c: Connection, owner: str, token: str) -> Reservation:
        """The reservation that a token stands for; raises `ReservationExpiredError` where it is over, or another's."""
        ...

    async def redeem(self, c: Connection, reservation: Reservation, workspace_id: str) -> None: ...


def decide(counts: Counts, limits: Limits, *, reservation: bool, line: bool) -> Admitted | Refused:
    """`reservation`: a place is held for exactly this request; `line`: live people wait.

    One's own limit goes first: no reservation lifts it. No request overtakes the line, and none in it is overtaken.
    """
    if limits.per_user and counts.of_owner >= limits.per_user:
        return OwnLimit(limits.per_user, counts.named)
    if not limits.everywhere or reservation:
        return Admitted()
    if line or counts.everywhere + counts.reserved >= limits.everywhere:
        return NoPlace(limits.everywhere, line, counts.named)
    return Admitted()


async def serialize(c: Connection) -> None:
    """Who asks whether one more may run goes one after the other, from here to the end of their transaction."""
    await c.execute(sql.serialize_starts)


async def running(c: Connection) -> int:
    """How many count against the limit for all. Exact after `serialize`."""
    return int(await c.fetchval(sql.count_all_running))


async def running_since(c: Connection) -> list[datetime]:
    """Of each that counts against the limit for all, since when it is asked for."""
    return [record["desired_at"] for record in await c.fetch(sql.running_since)]


async def counted(c: Connection, ids: Collection[str]) -> set[str]:
    """Which of these count as running."""
    return {record["id"] for record in await c.fetch(sql.counted, list(ids))} if ids else set()


async def admit(
    c: Connection, limits: LimitsConfig, line: Line, owner: str, besides: str, token: str | None = None
) -> Admitted | Refused:
    """Exact: who asks goes one after the other. It names the owner's reservation, and the one that `token` stands for:
    whoever asks has these redeemed in the same transaction.
    """
    await serialize(c)
    return await expected(c, limits, line, owner, besides, token)


async def expected(
    c: Connection, limits: LimitsConfig, line: Line, owner: str, besides: str, token: str | None = None
) -> Admitted | Refused:
    """What `admit` would say. Without its lock it is a guess: for pages that tell people before they ask."""
    found = await c.fetchrow(sql.count_running, owner, besides)
    assert found  # noqa: S101 (an aggregate always returns a row)
    state = await line.state(c, owner)
    named = await line.named(c, owner, token) if token is not None else None
    used = named if named and named.lifts_limit else (None if found["has_swap"] else state.mine)
    counts = Counts(found["everywhere"], found["of_owner"], reserved=state.reserved)
    bounds = Limits(limits.max_running_per_user, limits.max_running_global)
    promised = used is not None or found["has_swap"]
    outcome = decide(counts, bounds, reservation=promised, line=state.waiting)
    if isinstance(outcome, Admitted):
        return Admitted(tuple(dict.fromkeys(one for one in (used, named) if one)))
    return replace(outcome, running=await _running_of(c, owner))


async def admit_swap(c: Connection, limits: LimitsConfig, owner: str, besides: str) -> Admitted | Refused:
    """One that runs makes room for another one of its owner. As many run as before; their own limit may be lower."""
    await serialize(c)
    found = await c.fetchrow(sql.count_running, owner, besides)
    assert found  # noqa: S101 (an aggregate always returns a row)
    bounds = Limits(limits.max_running_per_user, 0)
    counts = Counts(found["everywhere"], found["of_owner"] - 1, await _running_of(c, owner))
    return decide(counts, bounds, reservation=False, line=False)


async def _running_of(c: Connection, owner: str) -> tuple[Running, ...]:
    return tuple(Running(row["id"], row["name"]) for row in await c.fetch(sql.running_of, owner))


def admitted(outcome: T | Refused) -> T:
    """For callers that have no other answer to a refusal than the API's: 429, with what runs and where to wait."""
    more: dict[str, Any] = {}
    match outcome:
        case OwnLimit(limit, running):
            detail = f"{limit} may run at a time: stop one first"
        case NoPlace(limit, waiting, running):
            detail = f"all {limit} places are taken" if not waiting else "others wait for a place already"
            detail += f": wait in line at {JOIN_URL}"
            more = {"join_url": JOIN_URL}
        case _:
            return outcome
    raise RunningLimitError(detail, running=[asdict(other) for other in running], limit=limit, **more)
