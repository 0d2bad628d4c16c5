"""The only way into a pod: to the IDE, to its commands and log, and to the home. Started by the Kubernetes runtime.

It stands beside an IDE, or alone with a home that no IDE has. Only who has the key of this one start is let in
(`system.doors`). On one port it passes everything on to the IDE, as `relay` does; on the other it does what the
coordinator asks, one request a connection: a text of JSON and what belongs to it go in, streams and an end come out
(`framing`). What a request started ends with its connection.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from codehub.runtimes import logs
from codehub.runtimes.containers import job, relay
from codehub.runtimes.containers.commands import ASK, CLOCK, KILL, Command, Init
from codehub.runtimes.containers.framing import END, LARGEST_FRAME, STDERR, STDOUT, frame, read_piece
from codehub.runtimes.shepherd.relay import copy
from codehub.system import doors

IDE_PORT, ASK_PORT = 7443, 7444
PAIR = pathlib.Path("/run/door")  # certificate and key of this start
BACKLOG = 512
HELLO_SECONDS = 20.0
LAST_SECONDS = 5.0  # after the IDE's end
LAST_ANSWER_SECONDS = 300.0  # to read what an IDE said before it ended the connection, by however slow a line
ALONE_SECONDS = 60.0  # that a pod with nothing but a home waits for the coordinator that made it
PIECE = 1 << 16
Answer = Callable[[int, bytes], Awaitable[None]]
Request = dict[str, Any]


@dataclass(frozen=True)
class Order:
    """What a pod's door is told at its start."""

    target: str = ""  # `unix:PATH` or `tcp:PORT` of the IDE; empty: there is none, only a home
    ide: str = ""  # folder of the IDE's `init`, with its log
    commands: str = ""  # folder of the other one, for contained commands
    volume: str = job.VOLUME  # the home


class Door:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._ide, self._commands = Init(order.ide), Init(order.commands)
        self._used = asyncio.Event()
        self._ide_ended = asyncio.Event()
        self._answering: set[asyncio.Task[None]] = set()
        self.done = asyncio.Event()

    # --- the IDE

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(sock=await relay.to_target(self._order.target))
        except OSError:  # not up yet: like a port that nobody listens on
            writer.transport.abort()
            return
        await asyncio.gather(copy(reader, back), _to_its_end(there, writer))
        back.close()

    async def until_ide_ends(self) -> None:
        """It has begun, or soon will: its container may be pulled still."""
        while True:
            with contextlib.suppress(OSError):
                await self._ide.ended()
                break
        self._ide_ended.set()
        if self._answering:  # who asked how it goes is told
            await asyncio.wait(set(self._answering), timeout=LAST_SECONDS)
        with contextlib.suppress(OSError):
            await self._commands.tell(KILL)
        self.done.set()

    async def until_unused(self) -> None:
        """A home's pod ends when nobody has asked it anything for a while."""
        while True:
            self._used.clear()
            try:
                async with asyncio.timeout(ALONE_SECONDS):
                    await self._used.wait()
            except TimeoutError:
                if not self._answering:
                    self.done.set()
                    return

    # --- requests

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task  # noqa: S101 (we are in one)
        self._answering.add(task)
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                request: Request = json.loads(await read_piece(reader))
            await self._carry_out(request, reader, writer)
        except (OSError, EOFError, ValueError, KeyError, TimeoutError):
            pass  # the client has gone, or makes no sense
        finally:
            self._answering.discard(task)
            self._used.set()
            writer.close()

    async def _carry_out(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def say(descriptor: int, content: bytes) -> None:
            for start in range(0, len(content), LARGEST_FRAME):
                writer.write(frame(descriptor, content[start : start + LARGEST_FRAME]))
                await writer.drain()

        given = _Given(reader)
        work = asyncio.create_task(self._work(request, given, say))
        leaving = asyncio.create_task(given.until_gone())
        try:
            await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, leaving):
                task.cancel()
            await asyncio.gather(work, leaving, return_exceptions=True)

    async def _work(self, request: Request, given: "_Given", say: Answer) -> None:
        try:
            outcome = await VERBS[request["do"]](self, request, given, say)
        except OSError as e:
            outcome = {"error": e.strerror or str(e)}
        await say(END, json.dumps(outcome).encode())

    async def exec(self, request: Request, given: "_Given", say: Answer) -> dict[str, Any]:
        command = Command(**request["command"])
        result = await (self._commands if command.contained else self._ide).run(command, given.pieces())
        await say(STDOUT, result.output)
        return {"code": result.exit_code, "left_out": result.left_out, "timed_out": result.timed_out}

    async def stop(self, request: Request, _given: "_Given", _say: Answer) -> dict[str, Any]:
        """Ask, wait, insist."""
        ended = asyncio.create_task(self._ide.ended())
        await CLOCK.sleep(0)
        for what, seconds in ((ASK, float(request["grace"])), (KILL, HELLO_SECONDS)):
            asking = asyncio.create_task(self._ide.tell(what))
            await asyncio.wait({ended}, timeout=seconds)
            asking.cancel()
            if ended.done():
                break
        return {"ended": ended.done()}

    async def logs(self, request: Request, _given: "_Given", say: Answer) -> dict[str, Any]:
        folder, tail = pathlib.Path(self._order.ide), int(request["tail_bytes"])
        if not request["follow"]:
            await say(STDOUT, logs.tail(folder, tail))
            return {}
        async for content in self._followed(folder, tail):
            await say(STDOUT, content)
        return {}

    async def _followed(self, folder: pathlib.Path, tail: int) -> AsyncGenerator[bytes, None]:
        """To the IDE's last word."""
        ended = asyncio.create_task(self._ide_ended.wait())
        following = logs.follow(folder, CLOCK, tail)
        try:
            while True:
                piece = asyncio.ensure_future(anext(following))
                await asyncio.wait({piece, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not piece.done():
                    await asyncio.wait({piece}, timeout=LAST_SECONDS / 5)
                if not piece.done():
                    piece.cancel()
                    return
                yield piece.result()
        finally:
            ended.cancel()

    async def job(self, request: Request, given: "_Given", say: Answer) -> dict[str, Any]:
        order = {**request["order"], "volume": self._order.volume}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", job.__name__, json.dumps(order)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=1 << 20,
        )
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 (asked for above)
        tasks = [
            asyncio.create_task(_feed(process.stdin, given)),
            asyncio.create_task(_pass(process.stdout, STDOUT, say)),
            asyncio.create_task(_pass(process.stderr, STDERR, say)),
        ]
        try:
            await asyncio.gather(*tasks[1:])
            return {"code": await process.wait()}
        finally:
            for task in tasks:
                task.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _to_its_end(there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The end as well, which may be that of an answer: TLS knows no end of one direction alone."""
    await copy(there, writer)
    writer.close()


VERBS = {"exec": Door.exec, "stop": Door.stop, "logs": Door.logs, "job": Door.job}


class _Given:
    """What comes with a request, read as it is wanted; then the client's end, which ends everything."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(4)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        while content := await self._pieces.get():
            yield content

    async def until_gone(self) -> None:
        """Reads on after the last piece: only an end can come there."""
        with contextlib.suppress(OSError, EOFError):
            while True:
                await self._pieces.put(await read_piece(self._reader))


async def _feed(stdin: asyncio.StreamWriter, given: _Given) -> None:
    with contextlib.suppress(ConnectionError):  # it need not read what it is given
        async for content in given.pieces():
            stdin.write(content)
            await stdin.drain()
        stdin.close()


async def _pass(stream: asyncio.StreamReader, descriptor: int, say: Answer) -> None:
    while content := await stream.read(PIECE):
        await say(descriptor, content)


async def serve(order: Order) -> None:
    door = Door(order)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, door.done.set)
    only = doors.serving(PAIR)
    servers = [await asyncio.start_server(door.answer, None, ASK_PORT, ssl=only, backlog=BACKLOG)]
    if order.target:
        passing_on = await asyncio.start_server(
            door.pass_on, None, IDE_PORT, ssl=only, backlog=BACKLOG, ssl_shutdown_timeout=LAST_ANSWER_SECONDS
        )
        servers.append(passing_on)
    ending = asyncio.create_task(door.until_ide_ends() if order.target else door.until_unused())
    await door.done.wait()
    ending.cancel()
    for server in servers:
        server.close()


def main(arguments: list[str]) -> None:
    os.umask(0o077)
    asyncio.run(serve(Order(**json.loads(arguments[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
