"""Beside an IDE, in a container of its own that shares the IDE's network: the only way to it. A runtime starts it.

What comes in on `door` goes to the IDE, on `target`: `unix:PATH` or `tcp:PORT` of the loopback that both share. Who
may come in is a matter of the door alone. Here it is a Unix socket in a folder of the machine that only the platform
may enter; another engine gives it another one, and the rest stays as it is.
"""

import asyncio
import contextlib
import os
import pathlib
import signal
import socket
import sys

from codehub.runtimes.shepherd.relay import copy
from codehub.system import connect

BACKLOG = 512


async def serve(door: str, target: str) -> None:
    done = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, done.set)

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(sock=await to_target(target))
        except OSError:  # not up yet: like a socket that nobody listens on
            writer.transport.abort()
            return
        await asyncio.gather(copy(reader, back), copy(there, writer))
        for end in (writer, back):
            end.close()

    async with await asyncio.start_unix_server(join, sock=_listening(door), backlog=BACKLOG):
        await done.wait()


def _listening(door: str) -> socket.socket:
    """There under its name only when it listens: whoever finds it can connect."""
    new = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    fresh = f"{door}.new"
    with contextlib.suppress(FileNotFoundError):
        pathlib.Path(fresh).unlink()
    new.bind(fresh)
    pathlib.Path(fresh).chmod(0o660)
    new.listen(BACKLOG)
    pathlib.Path(fresh).replace(door)
    return new


async def to_target(target: str) -> socket.socket:
    kind, _, where = target.partition(":")
    # The IDE's user owns the folder of its socket, and could put a link in its place, as one to this very door.
    return await (connect.to_socket(where) if kind == "unix" else connect.to_port("127.0.0.1", int(where)))


def main(arguments: list[str]) -> None:
    door, target = arguments
    os.umask(0o007)
    asyncio.run(serve(door, target))


if __name__ == "__main__":
    main(sys.argv[1:])
