"""What happened in events lately, as this process has read it: asked by streams and pages for each of their people.

A whole log takes Redis a hundred milliseconds, in which it answers no poll; and how far back a client asks is the
client's choice. So it is read once, for all who ask, and from then on only what is new.
"""

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from codehub.waiting_room.model import LogEntry, Loss

KEPT_ENTRIES = 10_000  # of the log of an event: as many as Redis keeps
KEPT_EVENTS = 16  # that were asked for last: 2 MB each
OLDEST = -1  # in the place of a number: all that Redis keeps
ReadLog = Callable[[str, int], Awaitable[Sequence[LogEntry] | Loss | None]]


class Entries:
    """The part of an event's log that was read. Numbers are consecutive within an epoch."""

    def __init__(self) -> None:
        self._kept: list[LogEntry] = []
        self.read_to: int | None = None

    def add(self, found: Sequence[LogEntry], after: int) -> None:
        self._kept += found
        if len(self._kept) > 2 * KEPT_ENTRIES:
            del self._kept[:-KEPT_ENTRIES]
        self.read_to = found[-1].number if found else after

    def forget(self, read_to: int | None) -> None:
        self._kept.clear()
        self.read_to = read_to

    def since(self, after: int) -> Sequence[LogEntry] | None:
        """None: not all of them are at hand."""
        if self.read_to is None or after > self.read_to:
            return None
        if after == self.read_to:
            return ()
        if not self._kept or self._kept[0].number > after + 1:
            return None
        return self._kept[bisect_right(self._kept, after, key=lambda entry: entry.number) :]


class _Event:
    __slots__ = ("entries", "reading")

    def __init__(self) -> None:
        self.entries = Entries()
        self.reading = asyncio.Lock()


class RecentLogs:
    def __init__(self, read: ReadLog) -> None:
        self._read = read
        self._events: OrderedDict[str, _Event] = OrderedDict()

    async def since(self, event: str, after: int) -> Sequence[LogEntry] | None:
        """None: that is not known any more."""
        known = self._events.setdefault(event, _Event())
        self._events.move_to_end(event)
        if len(self._events) > KEPT_EVENTS:
            self._events.popitem(last=False)
        async with known.reading:
            await self._catch_up(event, known.entries)
            return known.entries.since(after)

    async def _catch_up(self, event: str, entries: Entries) -> None:
        """What is new; all of it, where it does not continue what was read."""
        for after in (OLDEST,) if entries.read_to is None else (entries.read_to, OLDEST):
            found = await self._read(event, after)
            if isinstance(found, Loss):
                entries.forget(None)
                return
            if found is not None:
                if after == OLDEST:
                    entries.forget(None)
                entries.add(found, after)
                return
        entries.forget(None)
