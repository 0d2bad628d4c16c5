"""Waiting for a file to appear, without asking again and again. Used by `process` for the sockets of starting IDEs."""

import asyncio
import contextlib
import os
import pathlib

from codehub.clock import Clock
from codehub.system import kernel

# Between two looks: the folder is its workspace's own, which may make files there as fast as it can.
CALM_SECONDS = 0.005
PIECE = 1 << 16


def is_there(path: pathlib.Path) -> bool:
    """Whatever it is, also a link that leads nowhere."""
    return os.path.lexists(path)


async def appears(path: pathlib.Path, seconds: float, clock: Clock) -> bool:
    """Wait until something has this name, so many seconds at most: is it there? OSError: its folder is not watched."""
    watch = kernel.watch_folder(str(path.parent))
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not is_there(path):  # looked for after the watch began
                    await _readable(watch)
                    os.read(watch, PIECE)
                    if not is_there(path):
                        await clock.sleep(CALM_SECONDS)
        return is_there(path)
    finally:
        os.close(watch)


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    news = asyncio.Event()
    loop.add_reader(fd, news.set)
    try:
        await news.wait()
    finally:
        loop.remove_reader(fd)
