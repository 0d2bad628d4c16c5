"""Serves homes and backups as files to the API, at a door of the leader's (`coordinator.leader_doors`).

The API has no right to read them; the coordinator has. Who may have which home is decided by the API before it asks.
A request is one line of JSON, the answer one line of JSON and then frames: a length of four bytes and as many bytes; a
length of nothing is the good end, and a connection that ends without it is a download that failed. One connection is
one download: when it is closed, or the client does not read on, the work stops.

Packing is mostly CPU, so only a few downloads pack at a time, and they take turns: each has a place for a few seconds,
gives it up at once when its reader is slow, and lines up again. No slow or stalled reader holds a place.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from codehub import ids, logs
from codehub.archives import download
from codehub.archives.objects import ObjectStore
from codehub.clock import Clock
from codehub.errors import CodeHubError, NotFoundError, UnavailableError
from codehub.runtimes.base import Runtime

log = logs.get()
REQUEST_SECONDS = 10.0
FORMS = ("tar.gz", "tar.zst")
TURN_SECONDS = 2.0
PATIENCE_SECONDS = 0.5  # with a reader, while holding a place
OPEN_PER_PLACE = 8  # downloads under way: each is a process that waits for its turn, or for its reader
STALLED_SECONDS = 60.0  # without a byte taken: then it is ended when others have no room
LOOK_SECONDS = 1.0


class DownloadLimitError(CodeHubError):
    code = "DOWNLOAD_LIMIT"
    status = 429
    title = "Too many downloads at once"


@dataclass(frozen=True)
class Order:
    workspace_id: str
    archive_key: str | None  # None: the home itself
    form: str
    person: str  # who wants it
    at_most: int | None = None  # downloads of theirs at a time; None: any number
    backup: str | None = None  # instead of a home: a backup's id

    @classmethod
    def parse(cls, line: bytes) -> "Order":
        try:
            order = cls(**json.loads(line))
        except (ValueError, TypeError) as e:
            raise NotFoundError("this is not an order for a download") from e
        wanted = order.workspace_id if order.backup is None else order.backup
        ours = order.archive_key is None or str(order.archive_key).startswith(f"{order.workspace_id}/")
        if not ids.is_label(str(wanted)) or not ours or order.form not in FORMS:
            raise NotFoundError("there is no such download")
        return order


Backups = Callable[[str], AsyncGenerator[bytes, None]]


class Downloads:
    def __init__(
        self, runtime: Runtime, objects: ObjectStore, clock: Clock, at_once: int, backups: Backups | None = None
    ) -> None:
        """`backups`: a backup's bytes by its id."""
        self._backups = backups
        self._runtime = runtime
        self._objects = objects
        self._clock = clock
        self._places = asyncio.Semaphore(at_once)
        self._room = asyncio.Semaphore(at_once * OPEN_PER_PLACE)
        self._wanting_room = 0
        self._of_person: Counter[str] = Counter()

    async def pieces(self, order: Order) -> AsyncGenerator[bytes, None]:
        gzip = order.form == "tar.gz"
        if order.backup is not None:
            if self._backups is None:
                raise NotFoundError("there are no backups here")
            source = self._backups(order.backup)
        elif order.archive_key is not None:
            source = download.of_archive(self._objects, order.archive_key, gzip=gzip)
        else:
            volume = (await self._runtime.volumes([order.workspace_id])).get(order.workspace_id)
            if volume is None or volume.parked:
                raise UnavailableError("its files are on their way somewhere else: try again in a moment")
            source = download.of_home(self._runtime.pack(order.workspace_id, volume.generation, gzip=gzip))
        async with contextlib.aclosing(source) as chunks:
            async for chunk in chunks:
                yield chunk

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until the work is done or the other side has gone, whichever comes first."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                order = Order.parse(await reader.readline())
            with self._counted(order):
                await self._while_there(self._send_when_there_is_room(order, writer), reader)
        except CodeHubError as e:
            writer.write(_line(error=e.code, status=e.status, detail=e.detail))
        except (TimeoutError, ValueError):
            log.warning("An order for a download did not arrive")

    @contextlib.contextmanager
    def _counted(self, order: Order) -> Iterator[None]:
        if order.at_most is not None and self._of_person[order.person] >= order.at_most:
            raise DownloadLimitError(f"{order.at_most} at a time is the most: wait until one is through, or end it")
        self._of_person[order.person] += 1
        try:
            yield
        finally:
            self._of_person[order.person] -= 1
            self._of_person += Counter()  # forgets the people who have none left

    async def _while_there(self, work: Coroutine[Any, Any, None], reader: asyncio.StreamReader) -> None:
        """The other side says nothing more; an end of its stream means that it has gone."""
        sending, leaving = asyncio.create_task(work), asyncio.create_task(reader.read())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send_when_there_is_room(self, order: Order, writer: asyncio.StreamWriter) -> None:
        self._wanting_room += 1
        try:
            await self._room.acquire()
        finally:
            self._wanting_room -= 1
        try:
            await self._send(order, writer)
        finally:
            self._room.release()

    async def _send(self, order: Order, writer: asyncio.StreamWriter) -> None:
        begun = more = False
        async with contextlib.aclosing(self.pieces(order)) as pieces:
            try:
                async with self._places:
                    first = await anext(pieces, None)
                    writer.write(_line(ok=True))
                    begun, more = True, first is not None
                    _frame(writer, first or b"")
                while more:
                    await self._until_taken(writer)
                    async with self._places:
                        more = await self._turn(pieces, writer)
            except CodeHubError as e:
                if not begun:
                    raise
                log.warning("A download failed in the middle", workspace=order.workspace_id, error=e.detail)
                raise ConnectionAbortedError from e
        await writer.drain()

    async def _turn(self, pieces: AsyncGenerator[bytes, None], writer: asyncio.StreamWriter) -> bool:
        """Pack and send for a while; False: that was all."""
        end = self._clock.monotonic() + TURN_SECONDS
        while self._clock.monotonic() < end:
            piece = await anext(pieces, None)
            _frame(writer, piece or b"")
            if piece is None:
                return False
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await writer.drain()
            except TimeoutError:
                return True
        return True

    async def _until_taken(self, writer: asyncio.StreamWriter) -> None:
        """What was sent; without a place, for as long as that takes, unless others need the room."""
        left, since = writer.transport.get_write_buffer_size(), self._clock.monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await writer.drain()
                    return
            now, before = self._clock.monotonic(), left
            left = writer.transport.get_write_buffer_size()
            if left < before:
                since = now
            elif self._wanting_room and now - since >= STALLED_SECONDS:
                log.warning("A download that its client does not read was ended: others wait")
                raise ConnectionAbortedError


def _frame(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """An empty one is the good end."""
    writer.write(len(piece).to_bytes(4, "big"))
    writer.write(piece)


def _line(**values: object) -> bytes:
    return json.dumps(values).encode() + b"\n"
