"""What a pod's door is asked (`containers.door`): one request a connection. For `lifecycle`, `jobs`, `runtime`.

A door stands in the pod of code that nobody knows, so what it answers is bounded here as well: it is one person's, and
the memory is everybody's.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from codehub.clock import Clock
from codehub.runtimes import connect
from codehub.runtimes.base import Address, RuntimeFailureError
from codehub.runtimes.containers.framing import END, LONGEST, STDERR, STDOUT, frames, piece
from codehub.system.doors import Doors

CONNECT_SECONDS = 30.0  # the relay starts with the IDE, or a little later
PAUSE = 0.1
PIECES = 16  # of output that wait to be read
BUFFER = 1 << 20
LARGEST_PIECE = 1 << 20


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """Whatever is made of an answer: one that makes no sense is its workspace's failure, not ours."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as e:
        raise RuntimeFailureError(f"the workspace's relay makes no sense ({type(e).__name__})") from e


class Asked:
    """A request under way; also a process as `archives.process.Worker` wants one, and its pipes."""

    pid = 0

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.stderr = asyncio.StreamReader(limit=1 << 20)
        self.returncode: int | None = None
        self.outcome: dict[str, Any] = {}
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue(PIECES)
        self._discarding = False
        self._reading = asyncio.create_task(self._read(), name="a door's answer")

    @classmethod
    async def begin(
        cls, address: Address, doors: Doors, clock: Clock, request: dict[str, Any], seconds: float
    ) -> "Asked":
        """Waits for a door that is not open yet."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                async with asyncio.timeout(max(1.0, deadline - asyncio.get_running_loop().time())):
                    reader, writer = await connect.opened(address, doors, BUFFER)
                    writer.write(piece(json.dumps(request).encode()))
                    await writer.drain()
                    return cls(reader, writer)
            except (OSError, TimeoutError) as e:
                if asyncio.get_running_loop().time() > deadline:
                    raise RuntimeFailureError(
                        f"the workspace's relay does not answer: {str(e) or type(e).__name__}"
                    ) from e
            await clock.sleep(PAUSE)

    async def _read(self) -> None:
        reported = 0
        try:
            async for descriptor, content in frames(self._reader):
                if descriptor == END:
                    with understood():
                        outcome = json.loads(content)
                        self.outcome, self.returncode = outcome, int(outcome.get("code", 0))
                    break
                if descriptor == STDERR:
                    reported += len(content)
                    if reported > LONGEST:
                        break
                    self.stderr.feed_data(content)
                elif descriptor == STDOUT and not self._discarding:
                    await self._pieces.put(content)
        except (OSError, ValueError, RuntimeFailureError):
            pass  # it has gone without a word, or makes no sense
        finally:
            if self.returncode is None:
                self.returncode = -1
                self.outcome = self.outcome or {"error": "the workspace's relay has gone"}
            self.stderr.feed_eof()
            self._writer.transport.abort()  # nothing is to come: one that goes on is not waited for
            if not self._discarding:
                await self._pieces.put(b"")

    async def pieces(self) -> AsyncIterator[memoryview]:
        while content := await self._pieces.get():
            yield memoryview(content)

    async def write(self, content: bytes | memoryview) -> None:
        for start in range(0, len(content), LARGEST_PIECE):
            if self._reading.done():
                raise BrokenPipeError
            try:
                self._writer.write(piece(content[start : start + LARGEST_PIECE]))
                await self._writer.drain()
            except (OSError, RuntimeError) as e:  # closed meanwhile
                raise BrokenPipeError from e

    async def close(self) -> None:
        """Nothing more for it to read."""
        with contextlib.suppress(OSError, RuntimeError):
            if not self._writer.is_closing():
                self._writer.write(piece(b""))

    async def feed(self, contents: Sequence[bytes]) -> None:
        with contextlib.suppress(BrokenPipeError):  # it need not read what it is given
            for content in contents:
                await self.write(content)
            await self.close()

    async def wait(self) -> int:
        await asyncio.shield(asyncio.wait([self._reading]))
        assert self.returncode is not None  # noqa: S101 (it has been read)
        return self.returncode

    def kill(self) -> None:
        """What was asked for ends with its connection."""
        self._discarding = True
        while not self._pieces.empty():
            self._pieces.get_nowait()
        self._writer.transport.abort()
        if not self._reading.done():
            self._reading.cancel()

    async def end(self) -> None:
        self.kill()
        await asyncio.gather(self._reading, return_exceptions=True)


class Asking:
    def __init__(self, doors: Doors, clock: Clock) -> None:
        self.doors = doors
        self._clock = clock

    @contextlib.asynccontextmanager
    async def under_way(
        self, address: Address, request: dict[str, Any], *, seconds: float = CONNECT_SECONDS
    ) -> AsyncIterator[Asked]:
        asked = await Asked.begin(address, self.doors, self._clock, request, seconds)
        try:
            yield asked
        finally:
            await asyncio.shield(asyncio.ensure_future(asked.end()))

    async def ask(
        self, address: Address, request: dict[str, Any], contents: Sequence[bytes] = (), *, seconds: float
    ) -> tuple[bytes, dict[str, Any]]:
        """What it printed, and how it went. `seconds`: for the whole."""
        try:
            async with (
                asyncio.timeout(seconds),
                self.under_way(address, request, seconds=min(CONNECT_SECONDS, seconds)) as asked,
            ):
                feeding = asyncio.create_task(asked.feed(contents))
                try:
                    printed = await _all(asked)
                    await asked.wait()
                finally:
                    feeding.cancel()
                if asked.outcome.get("error"):
                    raise RuntimeFailureError(asked.outcome["error"])
                said = (await asked.stderr.read()).decode(errors="replace").strip().rpartition("\n")[2]
                return printed, {**asked.outcome, "said": said}
        except TimeoutError:
            raise RuntimeFailureError(f"the workspace's relay took longer than {seconds:g} s") from None


async def _all(asked: Asked) -> bytes:
    printed = bytearray()
    async for content in asked.pieces():
        printed += content
        if len(printed) > LONGEST:
            raise RuntimeFailureError("the workspace's relay says more than it was asked")
    return bytes(printed)
