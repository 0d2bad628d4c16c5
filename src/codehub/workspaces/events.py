"""The event relay of an API process: database notifications become Server-Sent Events for whoever listens.

One reader for all subscribers: a change is read, and shown as JSON, once. Order and completeness come from the table
`workspace_events`; a notification only says that there is something to read.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from codehub import logs
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import UnavailableError
from codehub.workspaces import routing, store
from codehub.workspaces.model import Phase, Position
from codehub.workspaces.store import sql
from codehub.workspaces.ttl_policy import Timetable

log = logs.get()
CHANNEL = "codehub_workspaces"
REMEMBER = 10_000  # events kept for subscribers that are slower than the news
LOOK_SECONDS = 5.0  # how long a lost notification can delay an event
TURN_SECONDS = 5.0  # how long a subscriber sleeps before it may send a heartbeat


@dataclass(frozen=True)
class Event:
    id: str
    owner: str
    kind: str
    data: str

    def as_sse(self) -> bytes:
        return f"id: {self.id}\nevent: {self.kind}\ndata: {self.data}\n\n".encode()


def parse_position(last_event_id: str | None) -> Position | None:
    """Where to resume, from `transaction-number`; None when it is not one of ours."""
    transaction, _, number = (last_event_id or "").partition("-")
    if transaction.isdigit() and number.isdigit() and len(transaction) < 19 and len(number) < 19:
        return transaction, int(number)
    return None


class Relay:
    def __init__(self, database: Database, clock: Clock, timetable: Timetable) -> None:
        self._database = database
        self._timetable = timetable
        self._clock = clock
        self._news = asyncio.Event()
        self._arrived = asyncio.Condition()
        self._ring: deque[Event] = deque(maxlen=REMEMBER)
        self._count = 0  # events ever put into the ring
        self._position: Position | None = None
        self._task: asyncio.Task[None] | None = None
        self.stopping = False

    def wake(self) -> None:
        """For the listener: something changed."""
        self._news.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="event-relay")

    async def stop(self) -> None:
        """Ends every open stream, too: clients come back to whoever serves next."""
        self.stopping = True
        async with self._arrived:
            self._arrived.notify_all()
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            self._news.clear()
            try:
                while await self._read():
                    pass
            except UnavailableError as e:
                log.warning("Events wait for the database", error=e.detail)
                await self._clock.sleep(1.0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._news.wait()

    async def _read(self) -> bool:
        """Read on from where we are; True when there may be more."""
        async with self._database.connection() as c:
            if self._position is None:
                self._position = await routing.newest(c)
            events, position = await read_events(c, self._position, self._timetable)
        more, self._position = position != self._position, position
        if events:
            async with self._arrived:
                self._ring.extend(events)
                self._count += len(events)
                self._arrived.notify_all()
        return more

    async def subscribe(self, owner: str | None, since: Position | None) -> AsyncIterator[Event | None]:
        """Events of one owner (None: everybody's). None in between is a moment to look up."""
        next_ = self._count
        if since is not None:
            async for event in self._missed(owner, since):
                yield event
        while not self.stopping:
            for event in self._from(next_):
                if owner is None or event.owner == owner:
                    yield event
            next_ = self._count
            if not await self._wait_beyond(next_):
                yield None

    def _from(self, number: int) -> list[Event]:
        """What arrived since; a subscriber that fell too far behind gets what is still remembered."""
        missing = min(self._count - number, len(self._ring))
        return list(self._ring)[len(self._ring) - missing :] if missing else []

    async def _wait_beyond(self, number: int) -> bool:
        async with self._arrived:
            try:
                async with asyncio.timeout(TURN_SECONDS):
                    await self._arrived.wait_for(lambda: self._count > number or self.stopping)
            except TimeoutError:
                return False
        return True

    async def _missed(self, owner: str | None, since: Position) -> AsyncIterator[Event]:
        while True:
            async with self._database.connection() as c:
                events, position = await read_events(c, since, self._timetable)
            for event in events:
                if owner is None or event.owner == owner:
                    yield event
            if position == since:
                return
            since = position


async def read_events(c: Connection, after: Position, timetable: Timetable) -> tuple[list[Event], Position]:
    """The next events and where they end. A workspace that changed several times is shown once, as it is now."""
    from codehub.workspaces.view import show  # noqa: PLC0415 (brings pydantic, which no command needs)

    found = await store.events_after(c, after)
    if not found:
        return [], after
    last = {record["workspace_id"]: f"{record['xact']}-{record['event_id']}" for record in found}
    rows = await store.query(c, sql.find_many, list(last))
    events = [
        Event(
            last[w.id],
            w.owner,
            "workspace_deleted" if w.phase is Phase.DELETED else "workspace_updated",
            show(w, timetable.sleeps_at(w)).model_dump_json(),
        )
        for w in rows
    ]
    events.sort(key=lambda e: tuple(int(part) for part in e.id.split("-")))
    return events, (found[-1]["xact"], found[-1]["event_id"])
