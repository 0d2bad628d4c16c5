"""Steps of many requests on real servers, one at a time, in an order that a seed decides. Used by `campaign`.

Every question to Redis and every transaction waits at a gate. When all that is under way waits there, one is let
through. So a seed replays a history step by step, and a request can be ended between any two of its steps.
"""

import asyncio
import contextlib
import contextvars
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from codehub.db import Connection, Database
from codehub.waiting_room.line import Line

_request: contextvars.ContextVar["Request | None"] = contextvars.ContextVar("request", default=None)


class Request:
    """One that is under way: its task, and where it waits to be let through."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.task: asyncio.Task[Any] | None = None
        self.waits: asyncio.Future[None] | None = None


class Gate:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.under_way: list[Request] = []
        self.exclusive: set[tuple[int, str]] = set()  # what one of them has for itself
        self._failures: list[BaseException] = []
        self._still = asyncio.Event()

    async def step(self) -> None:
        """Called by a request before each of its steps, also from tasks of its own."""
        request = _request.get()
        if request is None:
            return  # beside the requests: what sets the stage
        assert request.waits is None, "one step at a time"
        request.waits = asyncio.get_running_loop().create_future()
        self._check()
        try:
            await request.waits
        finally:
            request.waits = None

    async def begin(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        request = Request(name)
        token = _request.set(request)
        request.task = asyncio.create_task(work)
        _request.reset(token)
        self.under_way.append(request)
        request.task.add_done_callback(lambda _: self._ended(request))
        await self._settle()

    async def advance(self) -> None:
        """One step of one of them."""
        if self.under_way:
            chosen = self._chance.choice(self.under_way)
            assert chosen.waits
            chosen.waits.set_result(None)
            await self._settle()

    async def crash(self) -> None:
        """One of them ends where it is."""
        if self.under_way:
            task = self._chance.choice(self.under_way).task
            assert task
            task.cancel()
            await self._settle()

    async def finish(self) -> None:
        while self.under_way:
            await self.advance()
        if self._failures:
            raise self._failures[0]

    def _ended(self, request: Request) -> None:
        self.under_way.remove(request)
        task = request.task
        if task and not task.cancelled() and (failure := task.exception()):
            self._failures.append(failure)
        self._check()

    def _check(self) -> None:
        if all(request.waits and not request.waits.done() for request in self.under_way):
            self._still.set()

    async def _settle(self) -> None:
        """Until each of them waits or is done."""
        self._still.clear()
        await asyncio.wait_for(self._still.wait(), 30)


class GatedLine:
    def __init__(self, line: Line, gate: Gate, opened: Callable[[], None] | None = None) -> None:
        """`opened`: told when Redis was opened with an epoch."""
        self._line = line
        self._gate = gate
        self._opened = opened

    def __getattr__(self, name: str) -> Any:
        step = getattr(self._line, name)

        async def taken(*args: Any, **named: Any) -> Any:
            await self._gate.step()
            answer = await step(*args, **named)
            if name == "open" and answer and self._opened:
                self._opened()
            return answer

        return taken


class GatedDatabase:
    def __init__(self, database: Database, gate: Gate) -> None:
        self._database = database
        self._gate = gate

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        await self._gate.step()
        async with self._database.transaction() as c:
            yield c

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        await self._gate.step()
        async with self._database.connection() as c:
            yield c

    @contextlib.asynccontextmanager
    async def exclusive(self, kind: int, name: str) -> AsyncIterator[None]:
        """Who has to wait asks again with each of its turns, so that all that is under way is always at the gate.

        What sets the stage lets the others go on until it is free.
        """
        await self._gate.step()
        while (kind, name) in self._gate.exclusive:
            await (self._gate.step() if _request.get() else self._gate.advance())
        self._gate.exclusive.add((kind, name))
        try:
            async with self._database.exclusive(kind, name):
                yield
        finally:
            self._gate.exclusive.remove((kind, name))
