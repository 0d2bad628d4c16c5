"""The object store that keeps archives: `file:///…` or `s3://bucket/prefix`, both through obstore. `service` calls it.

S3 takes its endpoint and credentials from the usual AWS_* variables. Every request is bounded in time, so nothing
hangs for ever on a server that does not answer; what may work in a moment is an `ObjectStoreError`.
"""

import asyncio
import contextlib
import itertools
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, S3Store

from codehub.archives import obstore_workarounds
from codehub.archives.model import ArchiveNotFoundError, ObjectStoreError, Step, no_step

# A part of an upload, held in memory. S3 takes 10,000 of them: a home may have 160 GB, compressed.
PART = 16 * 1024 * 1024
PARTS_AT_ONCE = 3
# Read by ranges, each a request with an end in sight, instead of one that lasts as long as the object is large.
RANGE = 2 * 1024 * 1024
RANGES_AHEAD = 4
SMALL = 1024 * 1024
Piece = bytes | memoryview


@dataclass(frozen=True)
class Limits:
    """How long to wait, in seconds."""

    connect: float = 5.0
    request: float = 120.0  # one part in or one range out: slower than 140 KB/s is as good as away
    retry: float = 60.0  # no request is tried again after this
    retries: int = 4
    abort: float = 10.0  # to end an upload in good order when it is given up


@dataclass(frozen=True)
class Stored:
    key: str
    size: int
    modified: datetime


class AlreadyStoredError(ObjectStoreError):
    """Something has this key already, and nothing was written."""


def open_store(url: str, limits: Limits | None = None, step: Step = no_step) -> "ObjectStore":
    obstore_workarounds.delay_exit()
    obstore_workarounds.return_freed_memory()
    parts = urlsplit(url)
    if parts.scheme == "file":
        from codehub.archives.local import FileStore  # noqa: PLC0415 - a kind of ObjectStore, so it imports us

        return FileStore(Path(unquote(parts.path)), limits or Limits(), step)
    return ObjectStore(_s3(url, limits or Limits()), limits or Limits())


def _s3(url: str, limits: Limits) -> S3Store:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    return S3Store.from_url(
        url,
        client_options={
            "connect_timeout": timedelta(seconds=limits.connect),
            "timeout": timedelta(seconds=limits.request),
            # Who names a plain endpoint means it.
            "allow_http": endpoint.startswith("http://"),
        },
        retry_config={"max_retries": limits.retries, "retry_timeout": timedelta(seconds=limits.retry)},
    )


class ObjectStore:
    """Objects by key. Nothing here overwrites what is there."""

    def __init__(self, inner: S3Store | LocalStore, limits: Limits) -> None:
        self._inner = inner
        self._limits = limits
        # More than the client's own bounds together: only met when those fail us.
        self._timeout = limits.request + limits.retry + limits.connect

    async def put(self, key: str, content: bytes) -> None:
        """Create a small object, or raise `AlreadyStoredError`: of two writers, one succeeds."""
        with mapped(key, writing=True):
            async with asyncio.timeout(self._timeout):
                await obstore.put_async(self._inner, key, content, mode="create", use_multipart=False)

    async def put_stream(self, key: str, chunks: AsyncIterator[Piece]) -> None:
        """Create an object of any size; when `chunks` raises, or we are cancelled, there is none.

        A chunk is done with when the next is asked for.

        S3 through obstore has no create-only for uploads in parts, so what fits into one part is created only where
        nothing is, and beyond that the key must be the caller's alone. Ours hold `op_id` and epoch: they are.
        """
        first, ended = await _first_part(chunks)
        if ended:
            await self.put(key, first)
            return
        if await self.head(key) is not None:
            raise AlreadyStoredError(f"{key} is stored already")
        await self._put_parts(key, _Feed(first, chunks))

    async def _put_parts(self, key: str, feed: "_Feed") -> None:
        upload = asyncio.ensure_future(
            obstore.put_async(self._inner, key, feed, chunk_size=PART, max_concurrency=PARTS_AT_ONCE)
        )
        try:
            with mapped(key, writing=True):
                await asyncio.shield(upload)
        finally:
            complete = upload.done() and not upload.cancelled() and upload.exception() is None and feed.error is None
            if not complete:
                await asyncio.shield(asyncio.ensure_future(self._give_up(key, upload, feed)))
        if feed.error is not None:
            raise feed.error

    async def _give_up(self, key: str, upload: "asyncio.Future[Any]", feed: "_Feed") -> None:
        """End an upload that is given up.

        Parts of an upload that is simply dropped stay in the bucket, not listed and paid for. So it is brought to
        its end early, which makes an object without meta, and that is deleted. If the store does not answer, a
        lifecycle rule of the bucket for incomplete uploads has to do.
        """
        feed.stop()
        await asyncio.wait([upload], timeout=self._limits.abort)
        upload.cancel()
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await upload
        with contextlib.suppress(Exception):
            async with asyncio.timeout(self._limits.abort):
                await self.delete(key)

    async def head(self, key: str) -> int | None:
        """An object's size; None when there is no such object."""
        try:
            with mapped(key):
                async with asyncio.timeout(self._timeout):
                    return (await obstore.head_async(self._inner, key))["size"]
        except ArchiveNotFoundError:
            return None

    async def _size(self, key: str) -> int:
        size = await self.head(key)
        if size is None:
            # A bucket that is not there says the same of each of its objects, and only a listing tells them apart.
            # An archive that is missing is final; a bucket whose name is misspelt is not.
            async for _ in self.list(key.rsplit("/", 1)[0]):
                break
            raise ArchiveNotFoundError(f"there is no {key}")
        return size

    async def get(self, key: str) -> bytes:
        """A small object."""
        size = await self._size(key)
        return bytes(await self._range(key, 0, min(size, SMALL))) if size else b""

    async def stream(self, key: str) -> AsyncGenerator[memoryview, None]:
        """An object from its beginning to its end; the next ranges are on their way while one is worked on.

        A piece is good until the next is asked for.
        """
        size = await self._size(key)
        starts = iter(range(0, size, RANGE))
        ahead: deque[asyncio.Task[memoryview]] = deque()
        try:
            while True:
                for start in itertools.islice(starts, RANGES_AHEAD - len(ahead)):
                    ahead.append(asyncio.create_task(self._range(key, start, min(start + RANGE, size))))
                if not ahead:
                    return
                yield await ahead[0]
                ahead.popleft()
        finally:
            for task in ahead:
                task.cancel()
            await asyncio.gather(*ahead, return_exceptions=True)

    async def _range(self, key: str, start: int, end: int) -> memoryview:
        with mapped(key):
            async with asyncio.timeout(self._timeout):
                content = memoryview(await obstore.get_range_async(self._inner, key, start=start, end=end))
        if len(content) != end - start:
            raise ObjectStoreError(f"{key} came short: {len(content)} of {end - start} bytes")
        return content

    async def list(self, prefix: str) -> AsyncIterator[Stored]:
        """Everything below a prefix (whole components), in no order."""
        pages = obstore.list(self._inner, prefix, chunk_size=1000).__aiter__()
        while True:
            with mapped(prefix):
                async with asyncio.timeout(self._timeout):
                    page = await anext(pages, None)
            if page is None:
                return
            for item in page:
                yield Stored(item["path"], item["size"], item["last_modified"])

    async def delete(self, key: str) -> None:
        """Gone already is fine."""
        with contextlib.suppress(ArchiveNotFoundError), mapped(key):
            async with asyncio.timeout(self._timeout):
                await obstore.delete_async(self._inner, key)


class _Feed:
    """Chunks for obstore. What goes wrong ends the stream quietly and is kept for later.

    obstore would turn it into an error of its own, and leave the parts behind.
    """

    def __init__(self, first: bytes, chunks: AsyncIterator[Piece]) -> None:
        self.error: Exception | None = None
        self._first: bytes | None = first
        self._chunks = chunks
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self._stopped.set()

    def __aiter__(self) -> "_Feed":
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self._stopped.is_set() or self.error is not None:
            raise StopAsyncIteration
        following = asyncio.ensure_future(anext(self._chunks, b""))
        stopped = asyncio.ensure_future(self._stopped.wait())
        await asyncio.wait([following, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not following.done():
            following.cancel()
        try:
            chunk = await following
        except (Exception, asyncio.CancelledError) as e:
            self.error = e if isinstance(e, Exception) else None
            raise StopAsyncIteration from e
        if not chunk:
            raise StopAsyncIteration
        return bytes(chunk)  # several are under way at a time, and what we were given is good until the next


async def _first_part(chunks: AsyncIterator[Piece]) -> tuple[bytes, bool]:
    """Up to one part of a stream, and whether that was all."""
    gathered = bytearray()
    async for chunk in chunks:
        gathered += chunk
        if len(gathered) > PART:
            return bytes(gathered), False
    return bytes(gathered), True


@contextlib.contextmanager
def mapped(key: str, *, writing: bool = False) -> Iterator[None]:
    """The one place where obstore's and the system's errors become ours."""
    try:
        yield
    except (AlreadyExistsError, FileExistsError) as e:
        raise AlreadyStoredError(f"{key} is stored already") from e
    except FileNotFoundError as e:
        if writing or "NoSuchBucket" in str(e):
            raise ObjectStoreError(f"the object store has no place for {key}: {_short(e)}") from e
        raise ArchiveNotFoundError(f"there is no {key}") from e
    except TimeoutError as e:
        raise ObjectStoreError(f"the object store did not answer in time ({key})") from e
    except (BaseError, OSError) as e:
        raise ObjectStoreError(f"the object store failed ({key}): {_short(e)}") from e


def _short(e: Exception) -> str:
    """The first line, bounded: obstore's messages end with a dump of themselves."""
    return (str(e).strip() or type(e).__name__).splitlines()[0][:300]
