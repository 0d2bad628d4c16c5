"""The relay's side of `init.c`: runs commands beside the IDE, and ends it. Used by `door`."""

import asyncio
import contextlib
import os
import pathlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from codehub.clock import SystemClock
from codehub.runtimes.base import ExecResult

CLOCK = SystemClock()  # nothing drives the time of a program in a pod
SOCKET = "init.sock"
WAIT_SECONDS = 20.0  # until a container that is being started listens
PAUSE = 0.05
LINGER_SECONDS = 0.2  # for output of a command that has ended, while something it left behind keeps the pipe open
UNREAD_BYTES = 1 << 20  # of output beyond what is kept: after that a contained command writes into nothing
LARGEST = 160 << 10
KILL, ASK = b"k", b"t"
TOO_LARGE, NOT_RUNNABLE = "the command and its environment are too long", 126
PIECE = 65536


@dataclass
class Kept:
    """The end of what a command writes: why it failed is said there."""

    limit: int
    data: bytearray = field(default_factory=bytearray)
    left_out: int = 0

    @property
    def read(self) -> int:
        return len(self.data) + self.left_out

    def add(self, piece: bytes) -> None:
        self.data += piece
        over = max(0, len(self.data) - self.limit)
        del self.data[:over]
        self.left_out += over


@dataclass(frozen=True)
class Command:
    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    seconds: float
    output: int  # bytes that are kept
    contained: bool

    def message(self) -> bytes:
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        texts = [self.directory, str(len(self.words)), *self.words, *variables]
        return b"".join(os.fsencode(text) + b"\0" for text in texts)


class Init:
    """The first process of one container."""

    def __init__(self, folder: str) -> None:
        self._socket = f"{folder}/{SOCKET}"
        self._turn = asyncio.Lock()  # of contained commands: each ends all that runs there

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[socket.socket]:
        opened = await self._connected()
        try:
            yield opened
        finally:
            opened.close()

    async def ended(self) -> None:
        """Returns when the container has."""
        async with self.connection() as alive:
            await _hear(alive)

    async def tell(self, what: bytes) -> None:
        async with self.connection() as one:
            one.send(what)
            await _hear(one)  # nothing, and an end

    async def run(self, command: Command, given: AsyncGenerator[bytes, None]) -> ExecResult:
        """When this is cancelled, the command is killed: its connection is gone."""
        message = command.message()
        if len(message) > LARGEST:
            return ExecResult(NOT_RUNNABLE, TOO_LARGE.encode())
        async with self._turn if command.contained else contextlib.nullcontext(), self.connection() as one:
            with _Pipe() as stdin, _Pipe() as printed:
                socket.send_fds(one, [message], [stdin.reading, printed.writing])
                stdin.close_reading()
                printed.close_writing()
                return await _attend(one, command, given, stdin, printed)

    async def _connected(self) -> socket.socket:
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
        while True:
            new = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            new.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(new, self._socket)
            except OSError:
                new.close()
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await CLOCK.sleep(PAUSE)
            except BaseException:
                new.close()
                raise
            else:
                return new


async def _attend(
    one: socket.socket, command: Command, given: AsyncGenerator[bytes, None], stdin: "_Pipe", printed: "_Pipe"
) -> ExecResult:
    kept, most = Kept(command.output), command.output + UNREAD_BYTES if command.contained else None
    feeding = asyncio.create_task(_feed(stdin, given))
    reading = asyncio.create_task(_collect(printed, kept, most))
    hearing = asyncio.create_task(_hear(one))
    try:
        await asyncio.wait({hearing}, timeout=command.seconds)
        late = not hearing.done()
        if late:
            one.send(KILL)
        said = await hearing
        await asyncio.wait({reading}, timeout=LINGER_SECONDS)
    finally:
        for task in (feeding, reading, hearing):
            task.cancel()
        await asyncio.gather(feeding, reading, hearing, return_exceptions=True)
    if not said.startswith(b"e "):
        raise OSError("the workspace has ended")
    return ExecResult(int(said[2:]), bytes(kept.data), kept.left_out, late)


async def _hear(one: socket.socket) -> bytes:
    try:
        return await asyncio.get_running_loop().sock_recv(one, PIECE)
    except ConnectionError:
        return b""


async def _feed(stdin: "_Pipe", given: AsyncGenerator[bytes, None]) -> None:
    async with contextlib.aclosing(given):
        async for content in given:
            rest = memoryview(content)
            while rest:
                try:
                    rest = rest[os.write(stdin.writing, rest) :]
                except BlockingIOError:
                    await _ready(stdin.writing, write=True)
                except BrokenPipeError:
                    return  # it need not read what it is given
    stdin.close_writing()


async def _collect(printed: "_Pipe", kept: Kept, most: int | None) -> None:
    while True:
        try:
            piece = os.read(printed.reading, PIECE)
        except BlockingIOError:
            await _ready(printed.reading, write=False)
            continue
        if not piece:
            return
        kept.add(piece)
        if most is not None and kept.read > most:
            printed.close_reading()
            return
        await CLOCK.sleep(0)


async def _ready(fd: int, *, write: bool) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    (loop.add_writer if write else loop.add_reader)(fd, ready.set)
    try:
        await ready.wait()
    finally:
        (loop.remove_writer if write else loop.remove_reader)(fd)


class _Pipe:
    """Our end does not block; the other is a program's."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe2(os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_reading()
        self.close_writing()

    def close_reading(self) -> None:
        if self.reading >= 0:
            os.close(self.reading)
            self.reading = -1
            os.set_blocking(self.writing, False) if self.writing >= 0 else None

    def close_writing(self) -> None:
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1
            os.set_blocking(self.reading, False) if self.reading >= 0 else None


def mark_of(folder: str) -> pathlib.Path:
    """There when the IDE was started."""
    return pathlib.Path(folder, "started")
