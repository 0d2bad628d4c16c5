"""Opening PostgreSQL, the same way everywhere: of the hosts in the URL, the one that takes writes.

Hosts are asked one a little after the other, and each has all the time there is: one that has lost its power answers
nothing, and may not use up what the others need. A server that only reads, a standby or a former primary, will not do.
"""

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs

import asyncpg

from codehub.settings import server_urls

HEAD_START = 0.3  # seconds that a host has before the next one is asked as well
# A connection to a machine that is gone ends so soon, in seconds, whether anything is asked on it or not.
SILENT_SECONDS = 6
PROBE_SECONDS = 2


async def connect(url: str, *, timeout: float, **more: Any) -> Any:
    """Raises what the host said that could tell most; `ValueError` where the URL is wrong."""
    urls = server_urls.postgres(url)
    if "target_session_attrs" not in parse_qs(server_urls.split(url).query):
        more["target_session_attrs"] = server_urls.WRITABLE[0]
    connection = await _first(urls, {"timeout": timeout, **more})
    _notice_silence(connection)
    return connection


async def _first(urls: Sequence[str], how: dict[str, Any]) -> Any:
    left, errors = list(urls), list[BaseException]()
    asked: set[asyncio.Task[Any]] = set()
    try:
        while left or asked:
            if left:
                asked.add(asyncio.create_task(asyncpg.connect(left.pop(0), **how)))
            done, asked = await asyncio.wait(
                asked, timeout=HEAD_START if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                if (error := task.exception()) is None:
                    asked |= done - {task}  # of two that came at once, the other is let go of
                    return task.result()
                errors.append(error)
    finally:
        await _let_go(asked)
    raise _most_telling(errors)


async def _let_go(asked: set[asyncio.Task[Any]]) -> None:
    for task in asked:
        task.cancel()
    for found in await asyncio.gather(*asked, return_exceptions=True):
        if not isinstance(found, BaseException):
            found.terminate()


def _most_telling(errors: Sequence[BaseException]) -> BaseException:
    """A server that refuses us says most; one that has not answered yet may be the primary, and a standby is not."""

    def dullness(error: BaseException) -> int:
        if isinstance(error, TimeoutError):
            return 1
        return 2 if isinstance(error, asyncpg.TargetServerAttributeNotMatched) else 3 * isinstance(error, OSError)

    return min(errors, key=dullness)


def _notice_silence(connection: Any) -> None:
    """Of a machine that has lost its power nothing comes back, not even that it is gone."""
    ours = connection._transport.get_extra_info("socket")  # noqa: SLF001 (asyncpg has no other way to it)
    if ours is None or ours.family == socket.AF_UNIX:
        return
    options = {
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): PROBE_SECONDS,
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): PROBE_SECONDS,
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT): SILENT_SECONDS // PROBE_SECONDS,
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT): SILENT_SECONDS * 1000,
    }
    with contextlib.suppress(OSError):
        for (level, name), value in options.items():
            ours.setsockopt(level, name, value)
