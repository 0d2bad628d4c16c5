"""A process that archives or restores, and kills itself at the step it is told to. Started by `test_crashes`.

Arguments: archive or restore, the store's URL, the directory, the epoch, the number of the step to die at (0: none),
and perhaps the largest size that a file may have.
"""

import asyncio
import os
import resource
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from codehub.archives import process, service
from codehub.archives.model import ArchiveError, Quota, key_base
from codehub.archives.objects import open_store


class Death:
    def __init__(self, at: int) -> None:
        self._left = at

    def step(self, name: str) -> None:
        print(name, flush=True)
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(job: str, url: str, path: Path, epoch: int, death: Death) -> None:
    store = open_store(url, step=death.step)
    if job == "archive":
        base = key_base("w1", "op1", epoch)
        await service.archive(
            process.from_folder(path), store, base, now=datetime(2026, 1, 1, tzinfo=UTC), step=death.step
        )
        return
    (point,) = await service.points(store, "w1")
    await service.restore(
        store, point.key, process.into_folder(path, None, Quota(10**12, 10**7)), Quota(10**12, 10**7), step=death.step
    )


if __name__ == "__main__":
    wanted, store_url, directory, epoch_text, at_text, *limit = sys.argv[1:]
    if limit:  # bytes that a file may have: a disk that is full, for those who cannot mount one
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), resource.RLIM_INFINITY))
    try:
        asyncio.run(main(wanted, store_url, Path(directory), int(epoch_text), Death(int(at_text))))
    except ArchiveError as e:
        print(f"{e.code}: {e.detail}", flush=True)
        sys.exit(3)
