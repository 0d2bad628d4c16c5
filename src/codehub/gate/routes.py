"""The routing table of a worker: which workspaces there are, who may enter, where they listen. In memory.

Filled from the database and kept true by the events of its outbox (`events.follower`). What sleeps is read when a
request asks for it. The director asks on every request and waits for nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache

from codehub.activity.model import Watched
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.events.follower import Follower
from codehub.events.model import Stored
from codehub.gate.rules import Outcome
from codehub.proxy import headers
from codehub.proxy.model import Forward, Hygiene
from codehub.workspaces import changes, routing
from codehub.workspaces.routing import Entry

REMEMBER = 10_000  # workspaces that do not run


@lru_cache(maxsize=64)
def _framed(hygiene: Hygiene, origin: str) -> Hygiene:
    return headers.in_frame_of(hygiene, origin)


class Forwards:
    """Of one login: how its requests go on, from a tab of the workspace's own and from frames of our pages."""

    __slots__ = ("_framed", "_plain")

    def __init__(self, plain: Forward) -> None:
        self._plain = plain
        self._framed: dict[str, Forward] = {}

    def of(self, frame: str) -> Forward:
        """`frame`: the origin of the page around it; empty: none."""
        if not frame:
            return self._plain
        found = self._framed.get(frame)
        if found is None:
            found = self._framed[frame] = replace(self._plain, hygiene=_framed(self._plain.hygiene, frame))
        return found


class Route:
    """One workspace and what hangs on it."""

    __slots__ = ("authorized", "entry", "forwards", "outcome", "told", "waiting", "watched")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.forwards: dict[str, Forwards] = {}  # by the login that entered: a session or a token
        self.authorized: set[str] = set()  # the same of those who may enter, as the entry stands
        self.told: set[str] = set()  # the same of those of whose visit the owner was told
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
        self.authorized.clear()
        for future in self.waiting:
            if not future.done():
                future.set_result(None)


class Routes:
    """`changed` is called with a route whose entry was replaced, before the requests that wait for it go on."""

    def __init__(self, database: Database, clock: Clock, changed: Callable[[Route, Entry], None]) -> None:
        self._database = database
        self._changed = changed
        self._table: dict[str, Route] = {}
        self._finding: Counter[str] = Counter()  # ids that are being read
        self._follower = Follower("routes", database, clock, self._take, self._reload)
        self.wake = self._follower.wake
        self.stop = self._follower.stop

    def get(self, id_: str) -> Route | None:
        return self._table.get(id_)

    def all(self) -> list[Route]:
        return list(self._table.values())

    async def find(self, id_: str) -> Route | None:
        """Also one that is not in use; None: there is none."""
        self._finding[id_] += 1
        try:
            async with self._database.connection() as c:
                found = await routing.of(c, [id_])
            for entry in found:
                self._put(entry)
        finally:
            self._finding -= Counter([id_])
        self._trim()
        return self._table.get(id_)

    async def start(self) -> None:
        await self._follower.begin()
        async with self._database.connection() as c:
            await self._reload(c)
        self._follower.start()

    async def _reload(self, c: Connection) -> None:
        """All that is in use, and all that is known."""
        for entry in await routing.in_use(c):
            self._put(entry)
        await self._read(c, set(self._table))

    async def _take(self, c: Connection, events: Sequence[Stored]) -> None:
        await self._read(c, {e.subject for e in events if e.audience.startswith(f"{changes.CLASS}:")})

    async def _read(self, c: Connection, ids: Collection[str]) -> None:
        found = await routing.of(c, ids) if ids else []
        for entry in found:
            self._put(entry)
        for gone in set(ids) - {entry.id for entry in found}:
            self._table.pop(gone, None)

    def _put(self, entry: Entry) -> None:
        """Unless something newer is known: two readings may arrive in the wrong order."""
        route = self._table.get(entry.id)
        if route is None:
            self._table[entry.id] = Route(entry)
        elif entry.as_of >= route.entry.as_of:
            before = route.entry
            route.entry = entry
            if entry != before:
                self._changed(route, before)
                route.become(entry)

    def _trim(self) -> None:
        """Forget those longest known of which nothing is in use; not while an older reading may be under way."""
        idle = [id_ for id_, r in self._table.items() if self._is_idle(r) and id_ not in self._finding]
        for id_ in idle[: max(0, len(idle) - REMEMBER)]:
            del self._table[id_]

    @staticmethod
    def _is_idle(route: Route) -> bool:
        return not route.forwards and not route.waiting and route.entry.address is None
