"""Whose object store this is. The garbage collection asks before it takes anything.

Two platforms that share a store by mistake, or a copy of a platform that was restored from a backup, see each other's
archives as belonging to no workspace. So the first platform to collect leaves its name in the store, and any other
collects nothing there until an administrator says `codehub gc --take-over`.
"""

import contextlib

from codehub.archives.model import ArchiveNotFoundError
from codehub.archives.objects import AlreadyStoredError, ObjectStore

MARKER = ".codehub-platform"


async def owner(store: ObjectStore) -> str | None:
    """The platform that collects here; None while none does."""
    try:
        return (await store.get(MARKER)).decode().strip()
    except ArchiveNotFoundError:
        return None


async def claim(store: ObjectStore, platform_id: str) -> str:
    """Whose it is, once we have asked for it: the first one gets it."""
    if (found := await owner(store)) is not None:
        return found
    with contextlib.suppress(AlreadyStoredError):
        await store.put(MARKER, platform_id.encode())
    return await owner(store) or ""


async def take_over(store: ObjectStore, platform_id: str) -> None:
    await store.delete(MARKER)
    await claim(store, platform_id)
