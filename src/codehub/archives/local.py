"""The object store on a file system. Listing and deleting are obstore's; writing is ours, because obstore does not
bring it to disk, and so is reading what is large (`direct`).

An object appears whole, under its name, when its bytes are on disk, or not at all; and never over another one. What a
crash leaves is a `….partial` file, which is listed like everything else and goes with the archive it belongs to.
"""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path, PurePosixPath
from typing import TypeVar

from obstore.store import LocalStore

from codehub import ids
from codehub.archives import direct
from codehub.archives.model import ObjectStoreError, Step, no_step
from codehub.archives.objects import Limits, ObjectStore, Piece, mapped

PARTIAL = ".partial"
Value = TypeVar("Value")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileStore(ObjectStore):
    """Objects as files, readable by the platform's own user only: they are people's homes."""

    def __init__(self, root: Path, limits: Limits, step: Step = no_step) -> None:
        with mapped(str(root), writing=True):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(LocalStore(prefix=root, automatic_cleanup=True), limits)
        self._root = root
        self._step = step

    async def put(self, key: str, content: bytes) -> None:
        async def once() -> AsyncIterator[Piece]:
            yield content

        await self.put_stream(key, once())

    async def put_stream(self, key: str, chunks: AsyncIterator[Piece]) -> None:
        path = self._path(key)
        writing = _Writing(self._root, path)
        try:
            with mapped(key, writing=True):
                await _in_thread(writing.create)
            async for chunk in chunks:
                with mapped(key, writing=True):
                    await _in_thread(writing.write, chunk)
                self._step(f"wrote some of {path.name}")
            with mapped(key, writing=True):
                await _in_thread(writing.settle)
                self._step(f"synced {path.name}")
                path.hardlink_to(writing.partial)  # unlike a rename, this does not replace what is there
                self._step(f"named {path.name}")
        finally:
            writing.discard()
        with mapped(key, writing=True):
            await _in_thread(_sync_directory, path.parent)

    async def stream(self, key: str) -> AsyncGenerator[memoryview, None]:
        size = await self._size(key)
        with mapped(key):
            reading = await _in_thread(direct.Reading, str(self._path(key)))
        ahead: deque[asyncio.Task[memoryview]] = deque()
        try:
            for start in range(0, size + direct.BLOCK, direct.BLOCK):
                if start < size:
                    ahead.append(asyncio.create_task(_in_thread(reading.read, start, min(direct.BLOCK, size - start))))
                if start:
                    with mapped(key):
                        piece = await ahead[0]
                    if not piece:
                        raise ObjectStoreError(f"{key} came short")
                    yield piece
                    ahead.popleft()
        finally:
            await asyncio.gather(*ahead, return_exceptions=True)
            reading.close()

    def _path(self, key: str) -> Path:
        if not key or any(part in {"", ".", ".."} for part in key.split("/")):
            raise ValueError(f"not a key: {key!r}")
        return self._root / PurePosixPath(key)


class _Writing:
    """A file on its way to its name. The name it has meanwhile is random: two writers do not meet before the end."""

    def __init__(self, root: Path, path: Path) -> None:
        self.partial = path.with_name(f"{path.name}.{ids.new()}{PARTIAL}")
        self._root = root
        self._fd = -1

    def create(self) -> None:
        """Make the file, and make sure that the directories above it survive a power cut."""
        while self._fd < 0:
            above = [folder for folder in self.partial.parents if folder.is_relative_to(self._root)]
            missing = [folder for folder in above if not folder.exists()]
            self.partial.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in missing:
                _sync_directory(folder.parent)
            # A deletion beside us may take a directory that is still empty; then once more.
            with contextlib.suppress(FileNotFoundError):
                self._fd = os.open(self.partial, _CREATE, 0o600)
        self._content = direct.Writing(self._fd)

    def write(self, chunk: Piece) -> None:
        self._content.write(chunk)

    def settle(self) -> None:
        self._content.settle()

    def discard(self) -> None:
        """Take the other name away; when the file has got its own by now, that stays."""
        if self._fd >= 0:
            os.close(self._fd)
            self.partial.unlink(missing_ok=True)


async def _in_thread(work: Callable[..., Value], *arguments: object) -> Value:
    """Run something that blocks; when we are cancelled, it is over before we say so.

    Otherwise it would go on writing to a descriptor that has been closed, and may by then be another file's.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    finally:
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        running.exception()  # looked at, so that asyncio does not complain of what a cancellation hid


def _sync_directory(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
