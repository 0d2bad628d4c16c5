"""The file itself: a tar in a Zstandard frame, followed by a seal. Written by `service.write`, read by `restore`.

The seal is the SHA-256 of everything before it, in a Zstandard "skippable frame", so that `tar --zstd -tf` still reads
the file. A missing or wrong seal means a truncated, damaged or foreign file, known before anything is unpacked.
"""

import asyncio
import contextlib
import hashlib
import io
import os
import pathlib
import struct
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import IO, Any, Protocol, cast

import zstandard

from codehub.backup import rules
from codehub.backup.model import Manifest, Member
from codehub.backup.rules import BadBackupError
from codehub.errors import StartError

MANIFEST = "manifest.json"
MANIFEST_AT_MOST = 16 * 1024 * 1024
FRAME = b"\x28\xb5\x2f\xfd"
SEAL = struct.pack("<II", 0x184D2A50, hashlib.sha256().digest_size)
SEAL_BYTES = len(SEAL) + hashlib.sha256().digest_size
CHUNK = 1024 * 1024
Count = Callable[[int], None]


class Source(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class Hashing(io.RawIOBase):
    """Passes bytes on, and knows their hash and number."""

    def __init__(self, inner: IO[bytes] | Source, count: Count = lambda _: None) -> None:
        super().__init__()
        self._inner = inner
        self._count = count
        self._sha256 = hashlib.sha256()
        self._bytes = 0

    def _note(self, data: bytes) -> None:
        self._sha256.update(data)
        self._bytes += len(data)
        self._count(len(data))

    def read(self, size: int = -1, /) -> bytes:
        data = self._inner.read(size)
        self._note(data)
        return data

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self._note(data)
        self._inner.write(data)  # type: ignore[union-attr]
        return len(data)

    def drain(self) -> "Hashing":
        while self.read(CHUNK):
            pass
        return self

    def digest(self) -> bytes:
        return self._sha256.digest()

    def member(self) -> Member:
        return Member(self._bytes, self._sha256.hexdigest())


class StoppedError(Exception):
    """In the thread that writes: its caller was cancelled."""


async def to_the_end(work: Callable[..., Any], *given: Any, stop: Callable[[], None] = lambda: None) -> None:
    """In a thread; who is cancelled waits for it, once it was told to stop: what it writes to is closed next."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # nobody asks for it any more
        raise


class Writer:
    """Adds members, and remembers what the manifest has to say about them."""

    def __init__(self, tar: tarfile.TarFile, now: datetime, file: IO[bytes]) -> None:
        self._tar = tar
        self._file = file
        self._now = int(now.timestamp())
        self._stopped = False
        self.members: dict[str, Member] = {}

    async def adding(self, name: str, content: IO[bytes]) -> None:
        """Beside the event loop. Cancelled, it stops within a piece."""
        await to_the_end(self.add, name, content, stop=self._stop)

    async def to_disk(self) -> None:
        """Before the end, which is not beside the event loop: of a large file this can take a minute."""
        await to_the_end(os.fsync, self._file.fileno())

    def _stop(self) -> None:
        self._stopped = True

    def _go_on(self, _size: int) -> None:
        if self._stopped:
            raise StoppedError

    def add(self, name: str, content: IO[bytes]) -> None:
        """From the content's start to where it stands."""
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = content.tell(), 0o600, self._now
        content.seek(0)
        hashing = Hashing(content, self._go_on)
        self._tar.addfile(info, hashing)
        self.members[name] = hashing.member()

    def add_bytes(self, name: str, content: bytes) -> None:
        stream = io.BytesIO(content)
        stream.seek(0, io.SEEK_END)
        self.add(name, stream)


@contextlib.contextmanager
def writing(target: pathlib.Path, now: datetime, *, force: bool) -> Iterator[Writer]:
    """Write aside, then rename: the target is a whole backup or what it was before."""
    _refuse_existing(target, force=force)
    try:
        fd, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")  # of mode 0600
        aside = pathlib.Path(name)
        try:
            with os.fdopen(fd, "wb") as file:
                with _sealed(file) as frame, tarfile.open(fileobj=frame, mode="w|") as tar:
                    yield Writer(tar, now, file)
                file.flush()
                os.fsync(file.fileno())
            _refuse_existing(target, force=force)
            aside.rename(target)
        finally:
            aside.unlink(missing_ok=True)
        _sync_folder(target.parent)
    except OSError as e:
        raise StartError(f"cannot write {target}: {e.strerror or e}") from e


@contextlib.contextmanager
def _sealed(file: IO[bytes]) -> Iterator[IO[bytes]]:
    hashing = Hashing(file)
    compressor = zstandard.ZstdCompressor(level=6, write_checksum=True)
    with compressor.stream_writer(cast("IO[bytes]", hashing), closefd=False) as frame:
        yield cast("IO[bytes]", frame)
    file.write(SEAL + hashing.digest())


def _refuse_existing(target: pathlib.Path, *, force: bool) -> None:
    if target.is_dir():
        raise StartError(f"{target} is a folder: name a file in it")
    if target.exists() and not force:
        raise StartError(f"{target} exists: choose another name, or overwrite it with --force")


def _sync_folder(folder: pathlib.Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def members(path: pathlib.Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Each member's name and content, in the file's order; read one before asking for the next."""
    try:
        with (
            path.open("rb") as file,
            zstandard.ZstdDecompressor().stream_reader(file) as frame,
            tarfile.open(fileobj=frame, mode="r|") as tar,
        ):
            for info in tar:
                if content := tar.extractfile(info):
                    yield info.name, content
    except OSError as e:
        raise StartError(f"cannot read {path}: {e.strerror or e}") from e
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as e:
        raise BadBackupError(f"it is not a CodeHub backup: {e}") from None


def verify(path: pathlib.Path, count: Count = lambda _: None) -> Manifest:
    """Read the whole file and check every byte of it; the manifest if all is well. Touches nothing else."""
    _check_seal(path, count)
    found, manifest = {}, None
    for name, content in members(path):
        if name == MANIFEST:
            manifest = content.read(MANIFEST_AT_MOST)
        else:
            found[name] = Hashing(content).drain().member()
    read = rules.read_manifest(manifest)
    rules.check_members(read, found)
    return read


def _check_seal(path: pathlib.Path, count: Count) -> None:
    with path.open("rb") as file:
        if file.read(len(FRAME)) != FRAME:
            raise BadBackupError("it is not a CodeHub backup")
        size = path.stat().st_size - SEAL_BYTES
        file.seek(max(size, 0))
        seal = file.read()
        if not seal.startswith(SEAL):
            raise BadBackupError("its end is missing: it was cut short, or is not a CodeHub backup")
        file.seek(0)
        hashing = Hashing(file, count)
        for start in range(0, size, CHUNK):
            hashing.read(min(CHUNK, size - start))
        if hashing.digest() != seal[len(SEAL) :]:
            raise BadBackupError("it is damaged: its content does not match its seal")
