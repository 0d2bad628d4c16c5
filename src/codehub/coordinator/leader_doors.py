"""The leader's doors: where the API asks for what only the coordinator may read, homes as files and logs of engines.

On one machine each is a Unix socket in the data directory that only the API's account may use. With roles on different
machines all are one port (CODEHUB_PEER_LISTEN), which the leader writes into its lease; both sides prove that they are
of this platform (`peers`), and the first line says which door is meant. What is said after that is each door's own.
"""

import asyncio
import contextlib
import os
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol

from codehub import peers
from codehub.coordinator.leader import LEASE_NAME
from codehub.coordinator.store import sql
from codehub.db import Database
from codehub.embedded.datadir import DataDir
from codehub.errors import UnavailableError
from codehub.peers import Peers
from codehub.settings.roles import address_of
from codehub.system.privileges import Account

DOWNLOADS, LOGS = "downloads", "logs"
ADDRESS = "doors"  # in the lease's status
CONNECT_SECONDS, NAME_SECONDS = 5.0, 5.0
LONGEST_LINE = 4096
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Doors(Protocol):
    """The API's end."""

    async def open(self, name: str, *, buffer: int = 65536) -> Stream:
        """A connection to that door; `UnavailableError` while no coordinator answers."""
        ...


class LocalDoors:
    def __init__(self, data: DataDir) -> None:
        self._data = data

    async def open(self, name: str, *, buffer: int = 65536) -> Stream:
        try:
            return await asyncio.open_unix_connection(str(socket_of(self._data, name)), limit=buffer)
        except OSError as e:
            raise UnavailableError("no coordinator answers on this machine: try again in a moment") from e


class RemoteDoors:
    def __init__(self, database: Database, ours: Peers) -> None:
        self._database = database
        self._peers = ours

    async def open(self, name: str, *, buffer: int = 65536) -> Stream:
        async with self._database.connection() as c:
            row = await c.fetchrow(sql.status, LEASE_NAME)
        listen = row["status"].get(ADDRESS) if row and row["held"] else None
        if listen is None:
            raise UnavailableError("no coordinator leads: try again in a moment")
        host, port = address_of(listen)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(host, port, ssl=self._peers.client, limit=buffer)
        except (OSError, TimeoutError) as e:
            raise UnavailableError("the coordinator does not answer: try again in a moment") from e
        writer.write(name.encode() + b"\n")
        return reader, writer


def socket_of(data: DataDir, name: str) -> pathlib.Path:
    return {DOWNLOADS: data.downloads_socket, LOGS: data.logs_socket}[name]


@contextlib.asynccontextmanager
async def at_socket(serve: Serve, path: pathlib.Path, account: Account | None) -> AsyncIterator[None]:
    """The leader listens; a former leader's socket is replaced."""
    async with _ending(serve) as served:
        await asyncio.to_thread(_make_folder, path.parent, account)
        server = await asyncio.start_unix_server(served, path, limit=LONGEST_LINE)
        await asyncio.to_thread(_give, path, account, 0o600)
        try:
            yield
        finally:
            server.close()


@contextlib.asynccontextmanager
async def at_address(doors: Mapping[str, Serve], listen: str, ours: Peers) -> AsyncIterator[None]:
    """The same for APIs elsewhere. Whoever cannot prove to be one does not get as far as the first line."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(NAME_SECONDS):
            name = (await reader.readline()).decode("latin-1").strip()
        if name in doors:
            await doors[name](reader, writer)

    async with _ending(serve) as served:
        host, port = address_of(listen)
        server = await asyncio.start_server(
            served, host, port, ssl=ours.server, ssl_handshake_timeout=peers.HANDSHAKE_SECONDS, limit=LONGEST_LINE
        )
        try:
            yield
        finally:
            server.close()


@contextlib.asynccontextmanager
async def _ending(serve: Serve) -> AsyncIterator[Serve]:
    """What is under way ends with the leadership."""
    under_way: set[asyncio.Task[None]] = set()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        working = asyncio.ensure_future(serve(reader, writer))
        under_way.add(working)
        try:
            with contextlib.suppress(asyncio.CancelledError, OSError, ValueError):  # it broke off
                await working
        finally:
            under_way.discard(working)
            writer.close()

    try:
        yield served
    finally:
        for task in list(under_way):
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


def _make_folder(folder: pathlib.Path, account: Account | None) -> None:
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _give(folder, account, 0o700)


def _give(path: pathlib.Path, account: Account | None, mode: int) -> None:
    path.chmod(mode)
    if account:
        os.chown(path, account.uid, account.gid)
