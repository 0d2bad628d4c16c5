"""People's files as a part of a backup: every home that lies on this machine, and every archive one can go back to.

A home that sleeps is packed as it is. One that runs is packed while it is in use: each file as it was when it was read,
which need not be one moment for all of them. Nothing that people do to their files meanwhile ends a backup: what
changed, vanished or was destroyed is in the manifest. Called by `service` and `restore`.
"""

import asyncio
import contextlib
import pathlib
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from codehub.archives import download, model
from codehub.archives import service as archives
from codehub.archives.model import ArchiveError, Quota
from codehub.archives.objects import AlreadyStoredError, ObjectStore
from codehub.backup import archive, store
from codehub.backup.model import ARCHIVES, HomeRecord, Manifest, Progress, archive_member, home_member
from codehub.errors import CodeHubError, StartError
from codehub.runtimes.base import Runtime, RuntimeFailureError, Source

CHUNK = 1024 * 1024
KEPT_SINCE = 4  # the schema that knows of restore points
PLENTY = Quota(bytes=2**62, inodes=2**62)  # what was on the old machine may be on the new one


@dataclass(frozen=True)
class Files:
    """Where people's files are on this machine."""

    runtime: Runtime
    objects: ObjectStore


@dataclass(frozen=True)
class Wanted:
    """What the rows speak of: archives by key with their size, homes by workspace."""

    archives: dict[str, int]
    homes: dict[str, "WantedHome"]

    @property
    def things(self) -> int:
        return len(self.archives) + len(self.homes)

    @property
    def size(self) -> int:
        """On disk; a home is smaller once it is packed."""
        return sum(self.archives.values()) + sum(home.size for home in self.homes.values())


@dataclass(frozen=True)
class WantedHome:
    generation: str
    size: int  # as it was measured last


async def wanted(c: Any) -> Wanted:
    """In the snapshot's transaction; packing then takes its time without holding that open."""
    archives = {row["key"]: row["size"] for row in await c.fetch(store.sql.archives)}
    found = await c.fetch(store.sql.homes)
    return Wanted(archives, {row["id"]: WantedHome(row["volume_generation"], row["size"]) for row in found})


@dataclass(frozen=True)
class Added:
    homes: tuple[HomeRecord, ...] = ()
    missing_archives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Adding:
    """One backup under way."""

    files: Files
    writer: archive.Writer
    folder: pathlib.Path
    meter: Progress
    ask_again: Callable[[], Awaitable[Wanted]]  # what the rows speak of by now

    async def all(self, what: Wanted) -> Added:
        missing = [key for key, size in what.archives.items() if not await self._archive(key, size)]
        return Added(tuple([await self._home(*home) for home in what.homes.items()]), tuple(missing))

    async def _archive(self, key: str, size: int) -> bool:
        """False: it was destroyed after we had read of it."""
        self.meter.begin(f"archive {key.split('/', maxsplit=1)[0]}", size or None)
        mark = model.meta_key(key)
        try:
            meta = await self.files.objects.get(mark)
            await self._spool(archive_member(key), download.verified(self.files.objects, key))
        except ArchiveError:
            if key in (await self.ask_again()).archives:
                raise
            return False
        await archive.to_the_end(self.writer.add_bytes, archive_member(mark), meta)
        return True

    async def _home(self, id_: str, wanted: WantedHome) -> HomeRecord:
        self.meter.begin(f"home {id_}", wanted.size or None)
        generation = wanted.generation
        runtime, moved = self.files.runtime, _Moved()
        volume = (await runtime.volumes([id_])).get(id_)
        running = id_ in await runtime.containers()
        try:
            if volume is not None:
                packing = runtime.pack(id_, volume.generation)
                await self._spool(home_member(id_), download.of_home(packing, moved.note))
                record = HomeRecord(id_, generation, volume.restored_from, volume.parked, in_use=running)
                return replace(record, moved=moved.count, moved_names=moved.names)
        except (ArchiveError, RuntimeFailureError):
            if (await runtime.volumes([id_])).get(id_) == volume:
                raise
        return await self._moved_home(id_, generation)

    async def _moved_home(self, id_: str, generation: str) -> HomeRecord:
        """It is elsewhere since we looked at the rows: in an archive; or nowhere."""
        record = HomeRecord(id_, generation, None, parked=False, in_use=False)
        if found := await archives.points(self.files.objects, id_):
            await self._spool(home_member(id_), download.verified(self.files.objects, found[0].key))
            return record
        if id_ in (await self.ask_again()).homes:
            raise StartError(f"the files of {id_} are on their way somewhere else: make the backup once more")
        return replace(record, missing=True)

    async def _spool(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        await _spooled(self.writer, name, chunks, self.folder, self.meter)


@dataclass
class _Moved:
    """What a worker says of a home that changed under its hands."""

    count: int = 0
    names: tuple[str, ...] = ()

    def note(self, count: int, names: Sequence[str]) -> None:
        self.count, self.names = count, tuple(names)


async def _spooled(
    writer: archive.Writer, name: str, chunks: AsyncIterator[bytes], folder: pathlib.Path, meter: Progress
) -> None:
    """By way of a file without a name beside the target, as for tables: a tar has to know a member's size first."""
    with tempfile.TemporaryFile(dir=folder) as spool:
        async with contextlib.aclosing(chunks):  # type: ignore[type-var]
            async for chunk in chunks:
                await archive.to_the_end(spool.write, chunk)
                meter.count(len(chunk))
        await writer.adding(name, spool)


# --- and back


async def bring_back(file: pathlib.Path, manifest: Manifest, files: Files, meter: Progress, *, force: bool) -> None:
    """Everything of it onto this machine. What is there already of these workspaces is in the way, unless forced."""
    homes = {home_member(record.workspace_id): record for record in manifest.homes}
    if homes and not force and (there := await files.runtime.volumes([r.workspace_id for r in manifest.homes])):
        raise StartError(f"files of {len(there)} of these workspaces are here already. To lose them, add --replace")
    total = sum(member.bytes for name, member in manifest.members.items() if name in homes or name.startswith(ARCHIVES))
    meter.begin("files", total)
    for name, content in archive.members(file):
        if name in homes:
            await _place(files.runtime, homes[name], archive.Hashing(content, meter.count))
        elif name.startswith(ARCHIVES):
            with contextlib.suppress(AlreadyStoredError):  # the object store outlived the machine
                await files.objects.put_stream(
                    name.removeprefix(ARCHIVES), _chunks(archive.Hashing(content, meter.count))
                )


async def _place(runtime: Runtime, record: HomeRecord, content: archive.Source) -> None:
    id_ = record.workspace_id
    for item in await runtime.disk_items([id_]):
        await runtime.delete_volume(id_, item.generation)
    try:
        await runtime.unpack(id_, record.generation, _chunks(content), Source(record.restored_from or "", PLENTY))
        if record.parked:
            await runtime.park_volume(id_, record.generation)
    except CodeHubError as e:
        raise StartError(f"the home of {id_} could not be brought back: {e.detail}") from e


async def _chunks(content: IO[bytes] | archive.Source) -> AsyncGenerator[bytes, None]:
    while chunk := await asyncio.to_thread(content.read, CHUNK):
        yield chunk
