"""The pool. Services open a transaction here and hand the connection to their store.

Nothing waits for ever: getting a connection, and every statement, has a bound, so that a database that went away
becomes an `UnavailableError` within seconds, and works again as soon as it is back.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import asyncpg

from codehub.db.connecting import connect
from codehub.errors import StartError, UnavailableError
from codehub.logs import redact_text

T = TypeVar("T")
Row = Mapping[str, Any]

ACQUIRE_SECONDS = 5.0
OPEN_TRIES = 3  # of so many seconds each
STATEMENT_SECONDS = 30.0
EXCLUSIVE_SECONDS = 10
EXCLUSIVE = """
SELECT set_config('idle_in_transaction_session_timeout', $1, true), pg_advisory_xact_lock($2, hashtext($3))
"""
# It was the primary, and is none any more: another one is, or will be.
READ_ONLY = (asyncpg.ReadOnlySQLTransactionError, asyncpg.TargetServerAttributeNotMatched)
# What says "the server is away", as opposed to "the statement is wrong".
AWAY = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server has said that it ends this connection, whose end was not yet read
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    *READ_ONLY,
)


class LockTimeoutError(UnavailableError):
    """Another transaction holds what this one waited for, longer than it was to wait."""


def is_away(error: BaseException) -> bool:
    """Does the error say that the database is away? A wrong argument's is asyncpg's `InterfaceError` too, and ours."""
    return isinstance(error, (UnavailableError, *AWAY)) and not isinstance(error, ValueError)


def is_being_cancelled() -> bool:
    """Of the present task. What the server says then is no failure of its own, and no answer to the cancellation: it
    was asked to end the statement, and may have done so to the next one, the rollback.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Connection(Protocol):
    """The part of an asyncpg connection that stores use."""

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str: ...
    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Row]: ...
    async def fetchrow(self, query: str, *args: Any, timeout: float | None = None) -> Row | None: ...
    async def fetchval(self, query: str, *args: Any, column: int = 0, timeout: float | None = None) -> Any: ...


def rows(model: type[T], records: Iterable[Row]) -> list[T]:
    return [model(**record) for record in records]


def one(model: type[T], record: Row | None) -> T | None:
    return None if record is None else model(**record)


class Database:
    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, url: str, *, size: int = 10, session: Mapping[str, str] | None = None) -> "Database":
        """Connect, or say in one line why not. `session` are server settings for every connection.

        A server that does not answer is asked again: the whole machine may just be starting.
        """
        for tries_left in reversed(range(OPEN_TRIES)):
            try:
                return cls(await cls._open_pool(url, size, session or {}))
            except (*AWAY, asyncpg.PostgresError, ValueError) as e:
                if tries_left and isinstance(e, asyncio.TimeoutError):
                    continue
                raise StartError(f"cannot use the database {redact_text(url)}: {_reason(e)}") from e
        raise AssertionError

    @staticmethod
    async def _open_pool(url: str, size: int, session: Mapping[str, str]) -> Any:
        return await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=size,
            timeout=ACQUIRE_SECONDS,
            command_timeout=STATEMENT_SECONDS,
            connect=connect,
            init=_prepare,
            reset=_keep,
            server_settings={"application_name": "codehub", "timezone": "UTC", **session},
        )

    async def close(self) -> None:
        """Give connections back; a server that does not answer may not hold up the stop."""
        try:
            await asyncio.wait_for(self._pool.close(), timeout=3)
        except (TimeoutError, *AWAY):
            self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        try:
            async with self._pool.acquire(timeout=ACQUIRE_SECONDS) as connection:
                yield connection
        except AWAY as e:
            if not is_away(e):
                raise
            if is_being_cancelled():
                raise asyncio.CancelledError from e
            if isinstance(e, (asyncio.TimeoutError, *READ_ONLY)):
                await self.expire_connections()
            kind = LockTimeoutError if isinstance(e, asyncpg.LockNotAvailableError) else UnavailableError
            raise kind(f"the database does not answer: {_reason(e)}") from e

    async def expire_connections(self) -> None:
        """One did not answer in time, or only reads, so the others may as well: who comes next gets a new connection.

        Making one is bounded more tightly than a statement: while a server hangs, people wait seconds, not half a
        minute for each connection that was open when it began.
        """
        await self._pool.expire_connections()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self.connection() as connection, connection.transaction():  # type: ignore[attr-defined]
            yield connection

    @asynccontextmanager
    async def exclusive(self, kind: int, name: str) -> AsyncIterator[None]:
        """One at a time of all processes, for what takes more than one transaction; each has a connection of its own.

        The server ends it after `EXCLUSIVE_SECONDS`: a process that was stopped does not hold up the others for ever.
        """
        async with self.transaction() as c:
            await c.execute(EXCLUSIVE, f"{EXCLUSIVE_SECONDS}s", kind, name)
            yield


async def _prepare(connection: Any) -> None:
    for kind in ("jsonb", "json"):
        await connection.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")


async def _keep(connection: Any) -> None:
    """Given back as it is, instead of asking the server to forget the session, which is a round trip for every use.

    An open transaction is rolled back all the same. Nothing else is left in one: locks and settings are a transaction's
    own (a test looks at the SQL), and what listens has a connection of its own.
    """


def _reason(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    return str(error).split("\n", 1)[0] or type(error).__name__
