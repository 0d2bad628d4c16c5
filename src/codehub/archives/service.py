"""Archive a home, bring it back, list and delete what is stored. The controller and the garbage collector call it.

No database and no decisions: who may be archived or deleted is judged elsewhere. The order of an archive is: data,
read back, meta. The meta is the commit mark, so it says "this was stored and verified"; a crash before it leaves
bytes that count for nothing, and a crash after it is found by `committed`.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import datetime

from codehub.archives import model
from codehub.archives.model import (
    ArchiveCorruptedError,
    Archived,
    ArchiveNotFoundError,
    Meta,
    ObjectStoreError,
    Pack,
    Progress,
    Quota,
    QuotaExceededError,
    Step,
    Unpack,
    no_progress,
    no_step,
)
from codehub.archives.objects import AlreadyStoredError, ObjectStore, Piece

_METAS_AT_ONCE = 8


class Digest:
    """What went by: its checksum and its size."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.size = 0

    async def add(self, chunk: Piece) -> None:
        await asyncio.to_thread(self._sha256.update, chunk)  # a megabyte takes longer than a turn of the event loop
        self.size += len(chunk)

    async def of(self, chunks: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
        async for chunk in chunks:
            await self.add(chunk)
            yield chunk

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def matches(self, meta: Meta) -> bool:
        return (self.sha256, self.size) == (meta.sha256, meta.size)


async def archive(
    pack: Pack,
    store: ObjectStore,
    key_base: str,
    progress: Progress = no_progress,
    *,
    now: datetime,
    step: Step = no_step,
) -> Archived:
    """Store what is packed below `key_base` (see `model.key_base`), and prove it.

    One that the same operation has committed already, under any epoch, is adopted instead of uploading again. When
    this returns, the archive has been read back and is committed: the volume may go.
    """
    workspace_id, op_id, _ = key_base.split("/")
    if found := await committed(store, workspace_id, op_id):
        return found
    key = model.data_key(key_base)
    # Without a meta this is what a failed attempt of our own left behind: only we write below our epoch.
    await _clear(store, key_base)
    digest = Digest()
    async with pack(progress) as packing:
        step("packing")
        await store.put_stream(key, digest.of(packing.output()))
        packed = await packing.result()
    step("data stored")
    meta = Meta(digest.sha256, digest.size, packed["bytes"], packed["files"], now)
    await _read_back(store, key, meta)
    step("data verified")
    await _commit(store, key, meta)
    step("meta stored")
    progress(meta.content_bytes, meta.content_bytes)
    return Archived(key, meta, tuple(packed["left_out"]))


async def _read_back(store: ObjectStore, key: str, meta: Meta) -> None:
    try:
        await _check(store, key, meta)
    except (ArchiveCorruptedError, ArchiveNotFoundError) as e:
        # Nothing is committed and the home is still there: this is a store that failed, not an archive that is lost.
        await store.delete(key)
        raise ObjectStoreError(f"the object store did not keep what it was given: {e.detail}") from e


async def _commit(store: ObjectStore, key: str, meta: Meta) -> None:
    # A request that was answered too late and sent again finds its own work.
    with contextlib.suppress(AlreadyStoredError):
        await store.put(model.meta_key(key), meta.to_json())
    stored = Meta.from_json(await store.get(model.meta_key(key)))
    if stored.sha256 != meta.sha256 or stored.size != meta.size:
        raise ObjectStoreError(f"{key} was committed by another process, with other content")


async def committed(store: ObjectStore, workspace_id: str, op_id: str) -> Archived | None:
    """What this operation has stored and committed, under whichever leader; the newest, should there be two."""
    found = await _committed_below(store, f"{workspace_id}/{op_id}")
    return found[0] if found else None


async def points(store: ObjectStore, workspace_id: str) -> list[Archived]:
    """The workspace's restore points, newest first."""
    return await _committed_below(store, workspace_id)


async def _committed_below(store: ObjectStore, prefix: str) -> list[Archived]:
    sizes = {stored.key: stored.size async for stored in store.list(prefix)}
    keys = [key for key in sizes if key.endswith(f"/{model.DATA_NAME}") and model.meta_key(key) in sizes]
    turns = asyncio.Semaphore(_METAS_AT_ONCE)

    async def read(key: str) -> Archived | None:
        async with turns:
            try:
                meta = await read_meta(store, key)
            except (ArchiveCorruptedError, ArchiveNotFoundError):  # cannot be restored, so it is not offered
                return None
        return Archived(key, meta) if meta.size == sizes[key] else None

    found = [archived for archived in await asyncio.gather(*map(read, keys)) if archived is not None]
    return sorted(found, key=lambda archived: (archived.meta.created_at, archived.key), reverse=True)


async def read_meta(store: ObjectStore, key: str) -> Meta:
    return Meta.from_json(await store.get(model.meta_key(key)))


async def verify(store: ObjectStore, key: str) -> Meta:
    """Read the whole archive and compare it with its meta."""
    meta = await read_meta(store, key)
    await _check(store, key, meta)
    return meta


async def _check(store: ObjectStore, key: str, meta: Meta) -> None:
    digest = Digest()
    async for chunk in store.stream(key):
        await digest.add(chunk)
    if not digest.matches(meta):
        raise ArchiveCorruptedError(
            f"{key} has {digest.size} bytes with checksum {digest.sha256}, not those of its meta"
        )


async def restore(
    store: ObjectStore,
    key: str,
    unpack: Unpack,
    quota: Quota,
    progress: Progress = no_progress,
    *,
    step: Step = no_step,
) -> Meta:
    """Hand an archive to who unpacks it, checked on its way: it ends well only when it is what its meta says."""
    meta = await read_meta(store, key)
    if meta.content_bytes > quota.bytes or meta.files > quota.inodes:
        raise QuotaExceededError(f"{key} holds {meta.content_bytes} bytes in {meta.files} files, more than fit")
    step("unpacking")
    await unpack(_checked(store, key, meta, step), meta.content_bytes, progress)
    step("unpacked")
    progress(meta.content_bytes, meta.content_bytes)
    return meta


async def _checked(store: ObjectStore, key: str, meta: Meta, step: Step) -> AsyncGenerator[bytes | memoryview, None]:
    digest = Digest()
    async with contextlib.aclosing(store.stream(key)) as chunks:
        async for chunk in chunks:
            await digest.add(chunk)
            yield chunk
            step("fed some")
    if not digest.matches(meta):
        raise ArchiveCorruptedError(f"{key} is not what its meta says")


async def delete(store: ObjectStore, key: str) -> None:
    """Destroy an archive. Gone already is fine.

    The meta goes first: a crash in between leaves data that counts for nothing and is found by the next collection.
    The other way round it would leave a meta whose data is gone: a restore point that lies.
    """
    await store.delete(model.meta_key(key))
    await _clear(store, key.rsplit("/", 1)[0])


async def delete_all(store: ObjectStore, workspace_id: str) -> None:
    """Destroy everything that is stored of a workspace, also what was never finished; commit marks first."""
    keys = [stored.key async for stored in store.list(workspace_id)]
    for key in sorted(keys, key=lambda key: not key.endswith(model.META_SUFFIX)):
        await store.delete(key)


async def _clear(store: ObjectStore, base: str) -> None:
    for key in [stored.key async for stored in store.list(base)]:
        await store.delete(key)
