"""SQL about events and places; rows become frozen dataclasses here. Called by `service`, `epochs`, `pump` and `lab`."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.db import Connection, Queries, Row, one
from codehub.waiting_room.model import LAB, Activity, Event, Order, Place, State
from codehub.waiting_room.tokens import EVENT_ID
from codehub.workspaces import admission

sql = Queries("codehub.waiting_room")
CHANNEL = "codehub_waiting"
LATELY, MINUTE = timedelta(minutes=10), timedelta(minutes=1)


@dataclass(frozen=True)
class Watched:
    """An event as the pump finds it."""

    event: Event
    offered: int
    placed: int


@dataclass(frozen=True)
class Used:
    """Places of an event that are not free."""

    offered: int
    reserved: int
    held: int


def event_of(record: Row) -> Event:
    fields = {name: record[name] for name in Event.__dataclass_fields__}
    return Event(**{**fields, "order": Order(record["order"]), "activity": Activity(record["activity"])})


def place_of(record: Row) -> Place:
    return Place(**{**dict(record), "state": State(record["state"])})


def is_event_id(text: str) -> bool:
    return EVENT_ID.fullmatch(text) is not None


async def find_event(c: Connection, id_: str) -> Event | None:
    found = await c.fetchrow(sql.find_event, id_)
    return event_of(found) if found else None


async def lock_event(c: Connection, id_: str) -> Event | None:
    """From here to the end of the transaction no other changes a place of it. `lab`: nor starts a workspace."""
    if id_ == LAB:
        await admission.serialize(c)
    found = await c.fetchrow(sql.lock_event, id_)
    return event_of(found) if found else None


async def page_events(c: Connection, owner: str | None, after: str, limit: int) -> list[Event]:
    return [event_of(record) for record in await c.fetch(sql.page_events, owner, after, limit)]


async def watched(c: Connection, after: str, limit: int) -> list[Watched]:
    found = await c.fetch(sql.watched, after, limit)
    return [Watched(event_of(record), record["offered"], record["placed"]) for record in found]


async def watch(c: Connection, id_: str, now: datetime) -> None:
    """A person is in line, and the pump has to know; of `lab`, admission as well."""
    if id_ == LAB:
        await c.execute(sql.watch_lab, id_, now)
    else:
        await c.execute(sql.watch, id_)


async def reopen(c: Connection, event: Event, gone_since: datetime) -> None:
    await c.execute(sql.reopen, event.id, event.epoch, event.opened_at, event.lost_line)
    await c.execute(sql.forget_noted, event.id, gone_since)


async def find_place(c: Connection, event_id: str, pid: str) -> Place | None:
    found = await c.fetchrow(sql.find_place, event_id, pid)
    return place_of(found) if found else None


async def find_places(c: Connection, event_id: str, pids: Collection[str]) -> dict[str, Place]:
    return {record["pid"]: place_of(record) for record in await c.fetch(sql.find_places, event_id, list(pids))}


async def place_of_person(c: Connection, event_id: str, person: str) -> Place | None:
    found = await c.fetchrow(sql.place_of_person, event_id, person)
    return place_of(found) if found else None


async def save(c: Connection, place: Place) -> Place:
    """Under the event's lock. Returns the row with its new version."""
    found = await c.fetchrow(
        sql.save_place,
        *(place.event_id, place.pid, place.person, place.name, place.state, place.seq, place.offer_id, place.gone_seq),
        *(place.noted, place.offered_at, place.expires_at, place.workspace_id, place.run_id, place.changed_at),
    )
    assert found  # noqa: S101 (an insert that returns)
    return place_of(found)


async def note(c: Connection, event_id: str, epoch: int, told: Iterable[Place]) -> None:
    """Redis has heard of these, as they were read, in this epoch."""
    heard = list(told)
    if heard:
        await c.execute(sql.note, event_id, [p.pid for p in heard], [p.version for p in heard], epoch)


async def query_places(c: Connection, statement: str, *args: object) -> list[Place]:
    return [place_of(record) for record in await c.fetch(statement, *args)]


async def bound(c: Connection, after: tuple[str, str], limit: int) -> list[tuple[Place, int]]:
    """Places that something holds, each with the seconds of its lease."""
    found = [dict(record) for record in await c.fetch(sql.bound, *after, limit)]
    return [(place_of(record), seconds) for record in found for seconds in (record.pop("place_lease_seconds"),)]


async def taken(c: Connection, event_id: str) -> list[datetime]:
    """Since when each place is offered, reserved or held. Of `lab`, also since when each workspace runs."""
    found = [record["offered_at"] for record in await c.fetch(sql.taken, event_id)]
    return found + (await admission.running_since(c) if event_id == LAB else [])


async def count_places(c: Connection, event_id: str) -> Used:
    found = one(Used, await c.fetchrow(sql.count_places, event_id))
    assert found  # noqa: S101 (an aggregate always returns a row)
    return found


async def used(c: Connection, event_id: str) -> int:
    """Offered, reserved and held. Of `lab`, also what runs."""
    found = await count_places(c, event_id)
    running = await admission.running(c) if event_id == LAB else 0
    return running + found.offered + found.reserved + found.held


async def accounts(c: Connection, names: Sequence[str]) -> dict[str, str]:
    """Names → ids, of those that are accounts."""
    return {record["name"]: record["id"] for record in await c.fetch(sql.accounts, list(names))} if names else {}


async def prune(c: Connection, before: datetime, limit: int) -> int:
    """Remove what only says that it is over; called by housekeeping, a bounded number at a time."""
    return int((await c.execute(sql.prune, before, limit)).rsplit(" ", 1)[-1])


async def measured_rate(c: Connection, event_id: str, now: datetime) -> float | None:
    """People a minute who entered, over the last minutes in which any did."""
    found = await c.fetchrow(sql.entered_lately, event_id, now - LATELY)
    if not found or not found["people"]:
        return None
    return float(found["people"] / max(1.0, (now - found["since"]) / MINUTE))
