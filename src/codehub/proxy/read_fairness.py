"""Connections that read much take turns, so that one that reads little never waits for more than a few of them.

The event loop serves all connections that are ready in one round, and takes a quarter of a megabyte or more of each:
with hundreds of downloads a round lasts for half a second, and all wait for its end. `connection`, `upstream` and
`tunnel` read as `Reader`s; the engine has one `Turns`. Requests sent ahead of their answers take turns as
well: thousands of them fit into one read, and `Pipelines` has a few of them answered in a round.
"""

import asyncio
from collections import deque
from typing import Protocol

LARGE = 32 * 1024  # bytes of a piece that counts
ROUND = 2 * 1024 * 1024  # bytes of such pieces in one round of the loop
AT_ONCE = 8  # readers whose turn it is: the loop takes up to 256 KB of each
REQUESTS = 4  # of those that came before the one before them was answered, in one round of the loop


class Reader(asyncio.Protocol):
    """The reading of a connection, which stops for two reasons: what comes finds no room, or it is others' turn."""

    __slots__ = ("_paused", "_waits", "transport")

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._paused = False  # there is no room
        self._waits = False  # for its turn

    def pause_reading(self) -> None:
        if not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            if not self._waits:
                self.transport.resume_reading()

    def wait(self) -> None:
        self._waits = True
        self.transport.pause_reading()

    def go_on(self) -> None:
        self._waits = False
        if not self._paused and self.transport.get_protocol() is self:
            self.transport.resume_reading()


class Turns:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._left = ROUND
        self._under_way = False
        self._waiting: deque[Reader] = deque()

    def took(self, reader: Reader, size: int) -> None:
        """A large piece. When this round had enough of them, the reader waits for its turn."""
        self._left -= size
        if self._left <= 0 and not reader._waits:  # noqa: SLF001 (the other half of this)
            reader.wait()
            self._waiting.append(reader)
        if not self._under_way:
            self._under_way = True
            self._loop.call_soon(self._next_round)

    def _next_round(self) -> None:
        self._left = ROUND
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._waiting.popleft().go_on()
        self._under_way = bool(self._waiting)
        if self._under_way:
            self._loop.call_soon(self._next_round)


class Pipelining(Protocol):
    """A client whose next request has come already."""

    holder: str

    def take_turn(self) -> None: ...


class Pipelines:
    """Who sends requests ahead gets one answered at a time, the holders in turn, however many connections each has."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._under_way = False
        self._waiting: dict[str, dict[Pipelining, None]] = {}  # by holder: in the order of their turns

    def add(self, client: Pipelining) -> None:
        self._waiting.setdefault(client.holder, {})[client] = None
        if not self._under_way:
            self._under_way = True
            self._loop.call_soon(self._next_round)

    def _next_round(self) -> None:
        for _ in range(REQUESTS):
            if not self._waiting:
                break
            holder = next(iter(self._waiting))
            clients = self._waiting.pop(holder)
            client = next(iter(clients))
            del clients[client]
            if clients:
                self._waiting[holder] = clients
            client.take_turn()
        self._under_way = bool(self._waiting)
        if self._under_way:
            self._loop.call_soon(self._next_round)
