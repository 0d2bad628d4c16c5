"""People's files as a part of a backup: every home that lies on this machine, and every archive one can go back to.

A home that sleeps is packed as it is. One that runs is packed while it is in use: each file as it was when it was read,
which need not be one moment for all of them; the manifest says which those are. Called by `service` and `restore`.
"""

import asyncio
import contextlib
import pathlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import IO, Any

from codehub.archives import download, model, process
from codehub.archives import service as archives
from codehub.archives.model import ArchiveError, Quota
from codehub.archives.objects import AlreadyStoredError, ObjectStore
from codehub.backup import archive, store
from codehub.backup.model import ARCHIVES, HomeRecord, Manifest, archive_member, home_member
from codehub.backup.progress import Meter
from codehub.errors import CodeHubError, StartError
from codehub.runtimes.base import Runtime

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
    """What the rows speak of: archives by key, homes by workspace with their generation."""

    archives: list[str]
    homes: dict[str, str]


async def wanted(c: Any) -> Wanted:
    """In the snapshot's transaction; packing then takes its time without holding that open."""
    keys = [row["key"] for row in await c.fetch(store.sql.archives)]
    return Wanted(keys, {row["id"]: row["volume_generation"] for row in await c.fetch(store.sql.homes)})


async def add(
    files: Files, what: Wanted, writer: archive.Writer, folder: pathlib.Path, meter: Meter
) -> tuple[HomeRecord, ...]:
    for key in what.archives:
        meter.begin(f"archive {key.split('/')[0]}")
        await _spooled(writer, archive_member(key), download.verified(files.objects, key), folder, meter)
        mark = model.meta_key(key)
        await asyncio.to_thread(writer.add_bytes, archive_member(mark), await files.objects.get(mark))
    records = []
    for id_, generation in what.homes.items():
        meter.begin(f"home {id_}")
        records.append(await _add_home(files, id_, generation, writer, folder, meter))
    return tuple(records)


async def _add_home(
    files: Files, id_: str, generation: str, writer: archive.Writer, folder: pathlib.Path, meter: Meter
) -> HomeRecord:
    volume = (await files.runtime.volumes([id_])).get(id_)
    running = id_ in await files.runtime.containers()
    try:
        if volume is not None:
            path = files.runtime.parked_path(id_) if volume.parked else files.runtime.volume_path(id_)
            await _spooled(writer, home_member(id_), download.of_home(path, gzip=False), folder, meter)
            return HomeRecord(id_, generation, volume.restored_from, volume.parked, in_use=running)
    except ArchiveError:
        if (await files.runtime.volumes([id_])).get(id_) == volume:
            raise
    found = await archives.points(files.objects, id_)  # it has moved since we looked at the rows
    if not found:
        raise StartError(f"the files of {id_} are on their way somewhere else: make the backup once more")
    await _spooled(writer, home_member(id_), download.verified(files.objects, found[0].key), folder, meter)
    return HomeRecord(id_, generation, None, parked=False, in_use=False)


async def _spooled(
    writer: archive.Writer, name: str, chunks: AsyncIterator[bytes], folder: pathlib.Path, meter: Meter
) -> None:
    """By way of a file without a name beside the target, as for tables: a tar has to know a member's size first."""
    with tempfile.TemporaryFile(dir=folder) as spool:
        async with contextlib.aclosing(chunks):  # type: ignore[type-var]
            async for chunk in chunks:
                await asyncio.to_thread(spool.write, chunk)
                meter.count(len(chunk))
        await asyncio.to_thread(writer.add, name, spool)


# --- and back


async def bring_back(file: pathlib.Path, manifest: Manifest, files: Files, meter: Meter, *, replace: bool) -> None:
    """Everything of it onto this machine. What is there already of these workspaces is in the way, unless replaced."""
    homes = {home_member(record.workspace_id): record for record in manifest.homes}
    if homes and not replace and (there := await files.runtime.volumes([r.workspace_id for r in manifest.homes])):
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
    for piece in await runtime.pieces([id_]):
        await runtime.discard(id_, piece.generation)
    staged = await asyncio.to_thread(runtime.staging, id_, record.generation)
    owner = await asyncio.to_thread(staged.stat)
    try:
        async with process.unpacking(
            staged, (owner.st_uid, owner.st_gid), PLENTY, model.no_progress, total=0
        ) as worker:
            async for chunk in _chunks(content):
                if not await worker.feed(chunk):
                    break
            await worker.end()
            await worker.result()
        await runtime.place_volume(id_, record.generation, staged, record.restored_from or "")
        if record.parked:
            await runtime.park_volume(id_, record.generation)
    except CodeHubError as e:
        raise StartError(f"the home of {id_} could not be brought back: {e.detail}") from e


async def _chunks(content: IO[bytes] | archive.Source) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(content.read, CHUNK):
        yield chunk
