"""What the machine says of itself. Used by the leader's sampler."""

import asyncio
import pathlib
import shutil


async def disk_free(root: pathlib.Path) -> int | None:
    """Bytes on the disk of the data directory, asked in a thread: a disk far away may not answer. None: not known."""
    try:
        return (await asyncio.to_thread(shutil.disk_usage, root)).free
    except OSError:
        return None
