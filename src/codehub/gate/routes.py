"""The routing table of a worker: which workspaces there are, who may enter, where they listen. In memory.

Filled from the database and kept true by what changes there: a notification wakes the reader, and it looks every few
seconds in any case, so a lost one delays and never breaks. What sleeps is read when somebody asks for it. The director
asks on every request and waits for nothing.
"""

import asyncio
import contextlib
from collections.abc import Callable

from codehub import logs
from codehub.activity.model import Watched
from codehub.clock import Clock
from codehub.db import Database
from codehub.errors import UnavailableError
from codehub.gate.rules import Outcome
from codehub.proxy.model import Forward
from codehub.workspaces import routing
from codehub.workspaces.model import Position
from codehub.workspaces.routing import Entry

log = logs.get()
LOOK_SECONDS = 5.0
RETRY_SECONDS = 1.0
REMEMBER = 10_000  # workspaces that do not run


class Route:
    """One workspace and what hangs on it."""

    __slots__ = ("entry", "forwards", "outcome", "waiting", "watched")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.forwards: dict[str, Forward] = {}  # by whoever entered: a session or a token
        self.waiting: set[asyncio.Future[None]] = set()
        # What follows from the entry, until it changes.
        self.watched: Watched | None = None  # as activity is told of it
        self.outcome: Outcome | None = None  # what a request gets

    async def change(self) -> None:
        """Until the next one."""
        future = asyncio.get_running_loop().create_future()
        self.waiting.add(future)
        try:
            await future
        finally:
            self.waiting.discard(future)

    def become(self, entry: Entry) -> None:
        self.entry = entry
        self.watched = self.outcome = None
        for future in self.waiting:
            if not future.done():
                future.set_result(None)


class Routes:
    """`changed` is called with a route whose entry was replaced, before whoever waits for it goes on."""

    def __init__(self, database: Database, clock: Clock, changed: Callable[[Route, Entry], None]) -> None:
        self._database = database
        self._clock = clock
        self._changed = changed
        self._table: dict[str, Route] = {}
        self._position: Position | None = None
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def get(self, id_: str) -> Route | None:
        return self._table.get(id_)

    def all(self) -> list[Route]:
        return list(self._table.values())

    async def find(self, id_: str) -> Route | None:
        """Also one that is not in use; None: there is none."""
        async with self._database.connection() as c:
            found = await routing.of(c, [id_])
        for entry in found:
            self._put(entry)
        self._trim()
        return self._table.get(id_)

    def wake(self) -> None:
        """For the listener: something changed."""
        self._news.set()

    async def start(self) -> None:
        await self._load()
        self._task = asyncio.create_task(self._follow(), name="routes")

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _load(self) -> None:
        async with self._database.connection() as c:
            self._position = await routing.newest(c)
            for entry in await routing.in_use(c):
                self._put(entry)

    async def _follow(self) -> None:
        while True:
            self._news.clear()
            try:
                while await self._read():
                    pass
            except UnavailableError as e:
                log.warning("Routes wait for the database", error=e.detail)
                await self._clock.sleep(RETRY_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._news.wait()

    async def _read(self) -> bool:
        """Read on from where we are; True when there may be more."""
        assert self._position is not None  # noqa: S101 (loaded first)
        async with self._database.connection() as c:
            ids, position = await routing.changed_since(c, self._position)
            found = await routing.of(c, ids) if ids else []
        for entry in found:
            self._put(entry)
        for gone in ids - {entry.id for entry in found}:
            self._table.pop(gone, None)
        more, self._position = position != self._position, position
        return more

    def _put(self, entry: Entry) -> None:
        route = self._table.get(entry.id)
        if route is None:
            self._table[entry.id] = Route(entry)
        elif route.entry != entry:
            before = route.entry
            route.entry = entry
            self._changed(route, before)
            route.become(entry)

    def _trim(self) -> None:
        """Forget those longest known of which nothing is in use."""
        idle = [id_ for id_, r in self._table.items() if not r.forwards and not r.waiting and r.entry.address is None]
        for id_ in idle[: max(0, len(idle) - REMEMBER)]:
            del self._table[id_]
