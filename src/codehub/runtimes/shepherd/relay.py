"""For programs that can only listen on a TCP port: runs one, and joins the workspace's socket to that port.

It runs inside the sandbox in the IDE's place, as its user, in a network namespace of its own where the port is
always free. `process` puts it before the command of a template that uses `{port}`.
"""

# Plain names and descriptors instead of paths: most of this runs between a fork and an exec.
# ruff: noqa: PTH108

import asyncio
import contextlib
import os
import signal
import sys

PIECE = 65536


def main(arguments: list[str]) -> None:
    path, port, *command = arguments
    os._exit(asyncio.run(_serve(path, int(port), command)))


async def _serve(path: str, port: int, command: list[str]) -> int:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    program = await asyncio.create_subprocess_exec(*command)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _pass_on, program, number)

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # not up yet: like a socket that nobody listens on
            writer.transport.abort()
            return
        await asyncio.gather(copy(reader, back), copy(there, writer))

    async with await asyncio.start_unix_server(join, path):
        code = await program.wait()
    sys.stdout.flush()
    return code if code >= 0 else 128 - code


def _pass_on(program: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        program.send_signal(number)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction; its end is passed on, the other direction goes on."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        return
    writer.transport.abort()
