"""Waiting for a file to appear, without asking again and again. Used by `process` for the sockets of IDEs that start."""

import asyncio
import contextlib
import os

from codehub.system import kernel

# Between two looks: the folder is its workspace's own, which may make files there as fast as it can.
CALM_SECONDS = 0.005
PIECE = 1 << 16


async def appears(path: str, seconds: float) -> bool:
    """Wait until something has this name, so many seconds at most: is it there? OSError: its folder is not watched."""
    watch = kernel.watch_folder(os.path.dirname(path))
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not os.path.lexists(path):  # looked for after the watch began
                    await _readable(watch)
                    os.read(watch, PIECE)
                    if not os.path.lexists(path):
                        await asyncio.sleep(CALM_SECONDS)
        return os.path.lexists(path)
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
