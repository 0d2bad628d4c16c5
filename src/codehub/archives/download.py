"""A home as one file for its owner, in pieces as they are wanted: from its directory, or from its archive.

The coordinator's `downloads` serves these to the API, and `codehub workspace download` writes them to a file. A
client that takes no more pieces stops the work; when the generator is closed, nothing of it is left.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

from codehub.archives import process, service
from codehub.archives.model import ArchiveCorruptedError, Packing
from codehub.archives.objects import ObjectStore

PIECE = process.CHUNK
# How many entries of a home changed or vanished while they were packed, and some of them by name.
Moved = Callable[[int, Sequence[str]], None]


async def of_home(
    home: AbstractAsyncContextManager[Packing], moved: Moved = lambda _count, _named: None
) -> AsyncGenerator[bytes, None]:
    """Also while it is in use: each file as it is when we come by. `moved` is told at the end what could not be so."""
    async with home as packing:
        async for chunk in packing.output():
            yield bytes(chunk)
        done = await packing.result()
        moved(done["moved_count"], done["moved"])


async def of_archive(store: ObjectStore, key: str, *, gzip: bool) -> AsyncGenerator[bytes, None]:
    """Compared with its checksum on the way: the end only comes when it was right."""
    stored = verified(store, key)
    if not gzip:
        async for chunk in stored:
            yield chunk
        return
    async with process.recompressing() as worker:
        feeding = asyncio.create_task(_feed(worker, stored), name="archive to recompress")
        try:
            async for piece in worker.output():
                yield bytes(piece)
            await feeding
        except Exception:
            if feeding.done() and not feeding.cancelled():
                feeding.result()  # why it got nothing more to read says more than that it did not
            raise
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)


async def verified(store: ObjectStore, key: str) -> AsyncGenerator[bytes, None]:
    """An archive as it is stored; raises instead of ending when it is not what its meta says."""
    meta = await service.read_meta(store, key)
    digest = service.Digest()
    async with contextlib.aclosing(store.stream(key)) as chunks:
        async for chunk in chunks:
            await digest.add(chunk)
            yield bytes(chunk)
    if not digest.matches(meta):
        raise ArchiveCorruptedError(f"{key} is not what its meta says")


async def _feed(worker: process.Worker, chunks: AsyncGenerator[bytes, None]) -> None:
    try:
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                if not await worker.feed(chunk):
                    return
    except asyncio.CancelledError:
        raise  # it may not be reading any more: closing the worker closes the pipe
    except Exception:
        await worker.end()
        raise
    await worker.end()
