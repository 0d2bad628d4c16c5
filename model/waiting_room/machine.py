"""A request, or a piece of the pump, as a value: what it was answered so far, and when.

As in the lifecycle's model, the product's coroutine is run again with the same answers to learn what it asks next. A
transaction is one step; so is a script. What a transaction has read is its answer.
"""

import contextlib
import functools
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from unittest import mock

from codehub.audit import service as audit
from codehub.errors import CodeHubError
from codehub.events import outbox
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.settings import LimitsConfig, QueueConfig
from codehub.waiting_room import epochs, granting, line, pace, pump, service, store, tokens
from codehub.waiting_room.store import sql
from model import doubles
from model.asks import Ask, BrokenError
from model.waiting_room.rows import Rows

EVENT = "e"
SECRET = b"s" * 32
BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CONFIG = QueueConfig()
TOKENS = tokens.Tokens("a-signing-key-for-the-model")


def moment(now: float) -> datetime:
    return BEGAN + timedelta(seconds=now)


class Request(NamedTuple):
    """`seq`: of the token that it comes with."""

    kind: str
    person: str = ""
    seq: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.person}{(self.seq and f' ({short(self.seq)})') or ''}"


def short(seq: int) -> str:
    return f"{seq >> 32}/{seq & (2**32 - 1)}"


class Answered(NamedTuple):
    """When it asked, and what it was answered: a script's reply, or what a transaction has read."""

    now: float
    value: Any


class Step(NamedTuple):
    """Where a request is: what it asks next, or how it ended."""

    asks: Ask | None
    outcome: Any = None  # what it returned, or the error's code
    reads: tuple[Any, ...] = ()  # of the transaction that was just made
    rows: Rows | None = None  # as they are after it
    opens: bool = False  # it has the lock of those who open a line


# --- doubles


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> datetime:
        return moment(self.at)

    def timestamp(self) -> float:
        return self.now().timestamp()

    def monotonic(self) -> float:
        return self.at


class Connection:
    """Of one transaction: on rows, or again with what it has read then."""

    def __init__(self, rows: Rows | None, replayed: Sequence[Any], now: datetime) -> None:
        self._rows = rows
        self._replayed = iter(replayed)
        self._now = now
        self.reads: list[Any] = []

    def _run(self, statement: str, args: tuple[Any, ...]) -> Any:
        if self._rows is None:
            return next(self._replayed)
        found = self._rows.run(statement, tuple(list(a) if isinstance(a, list) else a for a in args), self._now)
        self.reads.append(tuple(tuple(row.items()) for row in found))
        return self.reads[-1]

    async def fetch(self, statement: str, *args: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self._run(statement, args)]

    async def fetchrow(self, statement: str, *args: Any) -> dict[str, Any] | None:
        return next((dict(row) for row in self._run(statement, args)), None)

    async def fetchval(self, statement: str, *args: Any) -> Any:
        return next((row[0][1] for row in self._run(statement, args)), None)

    async def execute(self, statement: str, *args: Any) -> str:
        self._run(statement, args)
        return ""


class Database:
    """Every use of a connection is one step."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.last: Connection | None = None
        self.rows: Rows | None = None
        self.locked = False

    @contextlib.asynccontextmanager
    async def exclusive(self, _kind: int, _name: str) -> AsyncIterator[None]:
        await Ask("lock")
        self.locked = True
        try:
            yield
        finally:
            self.locked = False

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        given = await Ask("transaction")
        live = isinstance(given, Rows)
        before = given.freeze() if live else None
        c = Connection(given if live else None, () if live else given, self._clock.now())
        try:
            yield c
        except Exception:
            if live and before is not None:
                given = Rows.thaw(before)
            raise
        finally:
            self.last, self.rows = c, given if live else None

    connection = transaction


class Client:
    async def mget(self, names: Sequence[str]) -> list[None]:
        """Names of people: only for what they are told elsewhere."""
        return [None] * len(names)


class Direct:
    """In place of the batcher: every poll by itself."""

    def __init__(self, send: Callable[[Any, Sequence[Any]], Awaitable[Sequence[Any]]]) -> None:
        self._send = send

    async def ask(self, key: Any, question: Any) -> Any:
        return (await self._send(key, [question]))[0]


class Scripts:
    def __init__(self, _config: QueueConfig) -> None: ...

    async def run(self, _client: Any, name: str, names: Sequence[str], arguments: Sequence[Any]) -> Any:
        if name == "tell":
            return len(names)
        if name == "bury":
            return [b""] * len(arguments)
        return await Ask("script", name, tuple(names), tuple(arguments))


class Later:
    """A task beside the request that removes what has expired: left out."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        work.close()

    def add_done_callback(self, _callback: Any) -> None: ...


async def _one_after_the_other(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    waiting, done = list(work), []
    try:
        while waiting:
            done.append(await waiting.pop(0))
    finally:
        for left in waiting:
            left.close()
    return done


async def _nothing(*_args: Any, **_values: Any) -> None: ...


async def _no_text(*_args: Any, **_values: Any) -> str:
    return ""


class Endings:
    async def end(self) -> int:
        return 0


@contextlib.contextmanager
def driven() -> Iterator[None]:
    """While this holds, the waiting room's modules act on the model."""
    stepped = types.SimpleNamespace(**{**vars(doubles.STEPPED), "create_task": Later})
    replaced: list[tuple[Any, str, Any]] = [
        (line, "Batcher", Direct),
        (line, "Scripts", Scripts),
        (line, "asyncio", stepped),
        (granting, "gather", _one_after_the_other),
        (pace.Pace, "text", _no_text),
        *((module, "log", doubles.Silent()) for module in (line, epochs, service, pump)),
        (outbox, "write", _nothing),
        (audit, "record", _nothing),
    ]
    with contextlib.ExitStack() as stack:
        for module, name, double in replaced:
            stack.enter_context(mock.patch.object(module, name, double))
        yield


# --- requests


@functools.cache
def pid(person: str) -> str:
    return tokens.pid(SECRET, person)


def token(person: str, seq: int) -> str:
    return TOKENS.waiting(tokens.Waiting(EVENT, pid(person), seq, 0, person, person))


class _Run:
    def __init__(self, request: Request) -> None:
        self.clock = Clock()
        self.database: Any = Database(self.clock)
        clock: Any = self.clock
        self._line = line.Line(Client(), clock, CONFIG)  # type: ignore[arg-type]
        self._request = request
        self.coroutine: Any = getattr(self, "_" + request.kind)()

    def _room(self) -> service.WaitingRoom:
        clock: Any = self.clock
        made = epochs.Epochs(self.database, self._line, clock, CONFIG)
        return service.WaitingRoom(self.database, clock, CONFIG, self._line, TOKENS, made)

    def _pump(self) -> pump.Pump:
        clock: Any = self.clock
        endings: Any = Endings()
        return pump.Pump(self.database, clock, CONFIG, LimitsConfig(), self._line, endings)

    def _caller(self) -> Principal:
        return Principal(self._request.person, Role.LEARNER, ALL_SCOPES, id=self._request.person)

    def _token(self) -> str:
        return token(self._request.person, self._request.seq)

    # What people ask for.

    async def _join(self) -> tuple[str, int, Any]:
        ticket = await self._room().join(self._caller(), EVENT)
        return ("joined" if ticket.new else "again", *self._shown(ticket.status))

    async def _poll(self) -> tuple[str, int, Any]:
        return ("waits", *self._shown(await self._room().status(self._token())))

    def _shown(self, status: Any) -> tuple[int, Any]:
        read = TOKENS.read_waiting(status.token)
        assert read
        deadline = status.offer_expires_at
        until = (deadline - BEGAN).total_seconds() if deadline else None
        return read.seq, (until, status.position) if status.ready_for_entry else None

    async def _enter(self) -> tuple[str, str]:
        return ("entered", (await self._room().enter(self._token())).reservation_token)

    async def _leave(self) -> tuple[str]:
        await self._room().leave(self._token())
        return ("left",)

    async def _release(self) -> tuple[str]:
        await self._room().give_back(self._caller(), EVENT)
        return ("released",)

    # What the pump does. Its pieces carry nothing from one to the next but the event as it was read.

    async def _tick(self) -> tuple[str]:
        await self._pump().tick()
        return ("pumped",)

    async def _watched(self) -> store.Watched | None:
        async with self.database.connection() as c:
            return next(iter(await store.watched(c, "", 1)), None)

    async def _sweep(self) -> tuple[str]:
        if watched := await self._watched():
            await self._pump()._sweep(watched.event, pump.Done())
        return ("swept",)

    async def _grant(self) -> tuple[str]:
        if watched := await self._watched():
            await self._pump()._offers.grant(watched.event)
        return ("granted",)

    async def _tell(self) -> tuple[str]:
        if watched := await self._watched():
            async with self.database.connection() as c:
                unheard = await store.query_places(c, sql.unnoted, watched.event.id, 10)
            await self._pump()._offers.tell(watched.event, unheard)
        return ("told",)

    async def _rest(self) -> tuple[str]:
        """Also: an epoch that Redis does not have."""
        if watched := await self._watched():
            going = self._pump()
            counts = await going._counts(watched.event)
            if counts:
                await going._configure(watched.event, counts, granted=0)
                await going._rest(watched.event, watched.offered, counts)
        return ("counted",)


def run(request: Request, answers: Sequence[Answered], now: float, rows: Rows | None = None) -> Step:
    """What it asks next, going on at this time. With rows: it asks for a transaction, which is made on them now."""
    going = _Run(request)
    times = [answered.now for answered in answers] + [now]
    try:
        going.clock.at = times[0]
        asks, outcome = _send(going, None)
        for answered, following in zip(answers, times[1:], strict=True):
            going.clock.at = following
            if asks is None:
                raise BrokenError("it does not do the same when it is answered the same")
            asks, outcome = _send(going, answered.value)
        database: Database = going.database
        if rows is None:
            return Step(asks, outcome, opens=database.locked)
        asks, outcome = _send(going, rows)
        assert database.last
        return Step(asks, outcome, tuple(database.last.reads), database.rows)
    finally:
        Ask.closing = True
        with contextlib.suppress(Exception):
            going.coroutine.close()
        Ask.closing = False


def _send(going: _Run, value: Any) -> tuple[Ask | None, Any]:
    try:
        return going.coroutine.send(value), None
    except StopIteration as e:
        return None, e.value
    except CodeHubError as e:
        return None, (e.code,)
