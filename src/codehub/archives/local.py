"""The object store on a file system. Reading is obstore's; writing is ours, because obstore does not bring it to disk.

An object appears whole, under its name, when its bytes are on disk, or not at all; and never over another one. What a
crash leaves is a `….partial` file, which is listed like everything else and goes with the archive it belongs to.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

from obstore.store import LocalStore

from codehub.archives.model import Step, no_step
from codehub.archives.objects import Limits, ObjectStore, mapped

PARTIAL = ".partial"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class FileStore(ObjectStore):
    """Objects as files, readable by the platform's own user only: they are people's homes."""

    def __init__(self, root: Path, limits: Limits, step: Step = no_step) -> None:
        with mapped(str(root), writing=True):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(LocalStore(prefix=root, automatic_cleanup=True), limits)
        self._root = root
        self._step = step

    async def put(self, key: str, content: bytes) -> None:
        async def once() -> AsyncIterator[bytes]:
            yield content

        await self.put_stream(key, once())

    async def put_stream(self, key: str, chunks: AsyncIterator[bytes]) -> None:
        path = self._path(key)
        partial = path.with_name(path.name + PARTIAL)
        with mapped(key, writing=True):
            fd = await asyncio.to_thread(_create, self._root, partial)
        try:
            async for chunk in chunks:
                with mapped(key, writing=True):
                    await asyncio.to_thread(_write, fd, chunk)
                self._step(f"wrote some of {path.name}")
            with mapped(key, writing=True):
                await asyncio.to_thread(_settle, fd)
                self._step(f"synced {path.name}")
                path.hardlink_to(partial)  # unlike a rename, this does not replace what is there
                self._step(f"named {path.name}")
        finally:
            os.close(fd)
            partial.unlink(missing_ok=True)
        with mapped(key, writing=True):
            await asyncio.to_thread(_sync_directory, path.parent)

    def _path(self, key: str) -> Path:
        if not key or any(part in {"", ".", ".."} for part in key.split("/")):
            raise ValueError(f"not a key: {key!r}")
        return self._root / PurePosixPath(key)


def _create(root: Path, partial: Path) -> int:
    """Open a new file, and make sure that the directories above it survive a power cut."""
    while True:
        missing = [folder for folder in partial.parents if folder.is_relative_to(root) and not folder.exists()]
        partial.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in missing:
            _sync_directory(folder.parent)
        try:
            return os.open(partial, _CREATE, 0o600)
        except FileNotFoundError:
            # A deletion beside us took a directory that was still empty. It can do so only once a deletion.
            continue


def _write(fd: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _settle(fd: int) -> None:
    os.fsync(fd)
    # Forget what memory knows of it: reading back shall read the disk.
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def _sync_directory(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
