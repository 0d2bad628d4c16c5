"""The use cases about events themselves: make one, change it, look at it and at its line. Called by the API.

An event belongs to who made it; `lab`, which guards the platform, and what the operator made, to the admins.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import InvalidRequestError
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Kind, Principal, Resource
from codehub.settings import LimitsConfig, QueueConfig
from codehub.waiting_room import rules, store
from codehub.waiting_room.epochs import Epochs
from codehub.waiting_room.errors import EventBusyError, EventExistsError, EventLimitError, EventNotFoundError
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import LAB, Activity, Event, LineCounts, Member, Order
from codehub.waiting_room.store import Used, sql
from codehub.workspaces import admission

LARGEST = 1_000_000  # places, and people a minute
LOOKED_AT = 500  # people of the lab's line, for those who look at a class
SLOWEST = 0.01  # people a minute: what takes longer than two hours is a pause


class Unset:
    """Not mentioned, as opposed to null."""


UNSET = Unset()


@dataclass(frozen=True)
class EventChange:
    """What may be set of an event; what is not mentioned stays as it is."""

    capacity: int | Unset = UNSET
    admission_rate: float | Unset | None = UNSET  # people a minute; None: unlimited
    opens_at: datetime | Unset | None = UNSET
    order: Order | Unset = UNSET
    place_lease_seconds: int | Unset = UNSET
    paused: bool | Unset = UNSET
    draining: bool | Unset = UNSET

    def given(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if not isinstance(value, Unset)}


@dataclass(frozen=True)
class EventView:
    event: Event
    capacity: int | None  # as it is now; None: no limit
    used: Used
    running: int  # of `lab`: workspaces that count as running
    line: LineCounts | None  # None: nobody waits, or nothing is known of the line
    measured_rate: float | None  # people a minute who were let in lately; None: none was


class Events:
    def __init__(
        self, database: Database, clock: Clock, config: QueueConfig, limits: LimitsConfig, line: Line, epochs: Epochs
    ) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._limits = limits
        self._line = line
        self._epochs = epochs

    async def put(
        self, caller: Principal, id_: str, change: EventChange, *, as_new: bool = False
    ) -> tuple[EventView, bool]:
        """Make it, or change what is mentioned. Was it made? As new: what is there is not changed."""
        given = change.given()
        _check(id_, given)
        async with self._database.transaction() as c:
            event = await store.lock_event(c, id_)
            made = event is None
            if event and as_new and not _is_repeated(caller, event, given):
                raise EventExistsError(f"there is an event {id_} already: choose another name")
            event = await (self._change(c, caller, event, given) if event else self._make(c, caller, id_, given))
            await c.execute(sql.nudge)
        return await self._view(event), made

    async def _make(self, c: Connection, caller: Principal, id_: str, given: dict[str, Any]) -> Event:
        policy.require(caller, Action.EVENT_CREATE)
        if "capacity" not in given:
            raise EventNotFoundError(f"there is no event {id_}: to make it, say its `capacity`")
        await self._check_count(c, caller)
        now = self._clock.now()
        asked = {"admission_rate": None, "opens_at": None, "order": Order.FIFO, "place_lease_seconds": 3600}
        asked |= {"paused": False, "draining": False} | given
        made = await c.fetchrow(
            sql.add_event,
            *(
                id_,
                caller.name if caller.kind is Kind.PERSON else None,
                asked["capacity"],
                asked["admission_rate"],
                asked["opens_at"],
                asked["order"],
            ),
            *(asked["place_lease_seconds"], asked["paused"], asked["draining"], secrets.token_bytes(32), now),
        )
        if made is None:  # another one made it this moment
            raise EventBusyError(f"{id_} was made by another person this moment: choose another name")
        await audit.record(c, now, caller.origin, Code.EVENT_CREATE, id_, capacity=asked["capacity"])
        return store.event_of(made)

    async def _change(self, c: Connection, caller: Principal, event: Event, given: dict[str, Any]) -> Event:
        _authorize(caller, Action.EVENT_CHANGE, event)
        if event.id == LAB and "capacity" in given:
            raise InvalidRequestError("`lab` has CODEHUB_MAX_RUNNING_GLOBAL places: it is a setting", field="capacity")
        now = self._clock.now()
        changed = {name: value for name, value in given.items() if getattr(event, name) != value}
        if not changed:
            return event
        if rules.would_reorder(event, changed.get("order", event.order)):
            raise EventBusyError("people are in line already: the order can be changed when the line is empty")
        wanted = rules.changed(event, replace(event, **changed), now)
        updated = await c.fetchrow(
            sql.change_event,
            *(event.id, wanted.capacity, wanted.admission_rate, wanted.opens_at, wanted.order),
            *(wanted.place_lease_seconds, wanted.paused, wanted.draining, wanted.drawn, wanted.next_grant_at, now),
        )
        assert updated  # noqa: S101 (the row is locked)
        await audit.record(c, now, caller.origin, Code.EVENT_CHANGE, event.id, fields=", ".join(sorted(changed)))
        return store.event_of(updated)

    async def _check_count(self, c: Connection, caller: Principal) -> None:
        """Exact: events of one person are made one after the other."""
        most = policy.allowance(caller, self._config.max_events_per_user)
        if most is None:
            return
        await c.execute(sql.one_at_a_time, caller.name)
        made = await c.fetchval(sql.count_events, caller.name)
        if made >= most:
            hint = "change one of them, or ask an admin to raise QUEUE_MAX_EVENTS_PER_USER"
            raise EventLimitError(f"{caller.name} has made {made} events; {most} is the most: {hint}", events=made)

    # --- looking

    async def get(self, caller: Principal, id_: str) -> EventView:
        return await self._view(await self._event(caller, id_, Action.EVENT_SEE))

    async def page(self, caller: Principal, *, after: str, limit: int) -> list[Event]:
        """One's own; an admin sees all."""
        policy.require(caller, Action.EVENT_LIST)
        if after and not store.is_event_id(after):
            raise InvalidRequestError("must be an event's id", field="cursor")
        whose = None if policy.allows(caller, Action.EVENT_CHANGE, Resource()) else caller.name
        async with self._database.connection() as c:
            return await store.page_events(c, whose, after, limit)

    async def line(self, caller: Principal, id_: str, *, start: int, limit: int) -> list[Member]:
        """Who waits, in order, with names: for the event's owner and admins."""
        event = await self._event(caller, id_, Action.EVENT_LINE)
        if event.activity is Activity.IDLE:
            return []
        return await self._epochs.guarded(id_, lambda: self._line.page(id_, start, limit))

    async def places_of(self, caller: Principal, names: Sequence[str]) -> dict[str, int]:
        """At which place of the lab's line these people wait, of those whose things the caller may see.

        The beginning of a long line is looked at: who is farther back waits, too, and is not told of here.
        """
        seen = {name for name in names if policy.allows(caller, Action.WORKSPACE_SEE, Resource(owner=name))}
        async with self._database.connection() as c:
            lab = await store.find_event(c, LAB) if seen else None
        if lab is None or lab.activity is Activity.IDLE:
            return {}
        members = await self._epochs.guarded(LAB, lambda: self._line.page(LAB, 0, LOOKED_AT))
        return {member.name: member.position for member in members if member.name in seen}

    async def _event(self, caller: Principal, id_: str, action: Action) -> Event:
        async with self._database.connection() as c:
            found = await store.find_event(c, id_) if store.is_event_id(id_) else None
        if found is None:
            raise EventNotFoundError(f"there is no event {id_[:64]}")
        _authorize(caller, action, found)
        return found

    async def _view(self, event: Event) -> EventView:
        async with self._database.connection() as c:
            used = await store.count_places(c, event.id)
            running = await admission.running(c) if event.id == LAB else 0
            rate = await store.measured_rate(c, event.id, self._clock.now())
        capacity = (self._limits.max_running_global or None) if event.id == LAB else event.capacity
        line = None
        if event.activity is not Activity.IDLE:
            line = await self._epochs.guarded(event.id, lambda: self._line.counts(event.id))
        return EventView(event, capacity, used, running, line, rate)


def _authorize(caller: Principal, action: Action, event: Event) -> None:
    policy.enforce(policy.decide(caller, action, Resource(owner=event.owner)))


def _is_repeated(caller: Principal, event: Event, given: dict[str, Any]) -> bool:
    """The same request once more, by a double click: nothing would change."""
    theirs = policy.allows(caller, Action.EVENT_CHANGE, Resource(id=event.id, owner=event.owner))
    return theirs and all(getattr(event, name) == value for name, value in given.items())


def _check(id_: str, given: dict[str, Any]) -> None:
    if not store.is_event_id(id_):
        raise InvalidRequestError("must be 1 to 64 of A-Z, a-z, 0-9, - and _", field="id")
    capacity, rate, lease = given.get("capacity"), given.get("admission_rate"), given.get("place_lease_seconds")
    if capacity is not None and not 0 <= capacity <= LARGEST:
        raise InvalidRequestError(f"must be between 0 and {LARGEST}", field="capacity")
    if rate is not None and not SLOWEST <= rate <= LARGEST:
        raise InvalidRequestError(f"must be between {SLOWEST} and {LARGEST} people a minute", field="admission_rate")
    if lease is not None and not 1 <= lease <= 30 * 86400:
        raise InvalidRequestError("must be between 1 second and 30 days", field="place_lease_seconds")
    opens_at = given.get("opens_at")
    if opens_at is not None and opens_at.tzinfo is None:
        raise InvalidRequestError("must say its time zone", field="opens_at")
