"""Starts `worker` and speaks with it. `service` calls it; what the worker reports becomes progress and exceptions."""

import asyncio
import contextlib
import fcntl
import json
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from codehub.archives import model
from codehub.archives.model import ArchiveError, Pack, Progress, Quota, Unpack

CHUNK = 1024 * 1024
_REPORT_LIMIT = 1024 * 1024  # the longest line is the list of what was left out
# A worker gets no credentials. It needs to find its own code, and nothing else.
_KEPT_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")
_ERRORS: dict[str, type[ArchiveError]] = {
    kind.__name__: kind
    for kind in (ArchiveError, model.SourceChangedError, model.QuotaExceededError, model.ArchiveCorruptedError)
}


class _Pipe:
    """Our end of the pipe to a worker, which moves a megabyte at a time in a thread of its own.

    asyncio's streams move 64 KB, with a turn of the event loop and a switch of processes for each. What is read is good
    until more is: a fresh megabyte each time would cost the kernel as much as moving it.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffers = [memoryview(bytearray(CHUNK)) for _ in range(2)]
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="archive-pipe")
        self._running: asyncio.Future[Any] | None = None

    async def pieces(self) -> AsyncIterator[memoryview]:
        """To the end; one is read while the one before is worked on."""
        following = self._start(os.readv, self._fd, self._buffers[:1])
        while size := await asyncio.shield(following):
            piece = self._buffers[0][:size]
            self._buffers.reverse()
            following = self._start(os.readv, self._fd, self._buffers[:1])
            yield piece

    async def write(self, content: bytes | memoryview) -> None:
        await asyncio.shield(self._start(_write_all, self._fd, content))

    def _start(self, work: Callable[..., Any], *arguments: object) -> "asyncio.Future[Any]":
        self._running = asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        return self._running

    async def close(self) -> None:
        """The other end must be closed, or its owner dead: then whatever our thread waits for has come."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        if self._running is not None:
            await asyncio.wait([self._running])
            self._running.exception()
        self._thread.shutdown(wait=False)
        os.close(fd)


def _write_all(fd: int, content: bytes | memoryview) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


class Source(Protocol):
    """What a worker reads from us."""

    async def write(self, content: bytes | memoryview) -> None:
        """Raises BrokenPipeError when it reads no more."""
        ...

    async def close(self) -> None: ...


class Output(Protocol):
    """What a worker writes to us."""

    def pieces(self) -> AsyncIterator[memoryview]: ...

    async def close(self) -> None: ...


class Process(Protocol):
    """A worker's process, on this machine or in a container."""

    @property
    def pid(self) -> int:
        """0: in a container."""
        ...

    @property
    def returncode(self) -> int | None: ...

    @property
    def stderr(self) -> asyncio.StreamReader | None: ...

    async def wait(self) -> int: ...

    def kill(self) -> None: ...


class Worker:
    """A worker under way. When its context is left, for whatever reason, it is ended."""

    def __init__(self, process: Process, pipes: "Pipes", progress: Progress, total: int) -> None:
        self._process = process
        self._pipes = pipes
        self._progress = progress
        self._total = total
        self._result: dict[str, Any] | None = None
        self._error: dict[str, Any] | None = None
        self._tail: deque[str] = deque(maxlen=5)
        self._listener = asyncio.create_task(self._listen(), name="archive worker's reports")

    @property
    def pid(self) -> int:
        return self._process.pid

    async def output(self) -> AsyncIterator[memoryview]:
        """What the worker writes, each piece good until the next is asked for.

        Ends only when the worker has said that it is done; raises when it is not.
        """
        assert self._pipes.output  # noqa: S101 (asked only of who packs)
        async for piece in self._pipes.output.pieces():
            yield piece
        await self.result()

    async def feed(self, chunk: bytes | memoryview) -> bool:
        """Give the worker more to read; False when it wants no more."""
        assert self._pipes.source  # noqa: S101 (asked only of who reads an archive)
        try:
            await self._pipes.source.write(chunk)
        except BrokenPipeError:
            return False
        return True

    async def end(self) -> None:
        """There is no more to read."""
        if self._pipes.source:
            await self._pipes.source.close()

    async def result(self) -> dict[str, Any]:
        await asyncio.shield(self._listener)  # a caller who gives up does not silence the worker
        code = await self._process.wait()
        if self._error is not None:
            kind = _ERRORS.get(str(self._error.get("error")), ArchiveError)
            raise kind(str(self._error.get("detail")))
        if self._result is None or code != 0:
            raise ArchiveError(f"the archive worker ended with {code}: {' '.join(self._tail)}".strip(": "))
        return self._result

    async def close(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        # Its reports end when it does. asyncio does not call a process ended before its pipes are read to their end.
        await asyncio.gather(self._listener, return_exceptions=True)
        await self._process.wait()
        await self._pipes.close()

    async def _listen(self) -> None:
        assert self._process.stderr is not None  # noqa: S101
        while line := await self._process.stderr.readline():
            try:
                said = json.loads(line)
            except ValueError:
                self._tail.append(line.decode(errors="replace").strip())
                continue
            self._total = max(self._total, said.get("total", 0))
            if "progress" in said:
                self._progress(said["progress"], max(self._total, said["progress"]) if self._total else 0)
            self._result = said.get("result", self._result)
            self._error = said if "error" in said else self._error


@dataclass(frozen=True)
class Pipes:
    """Our ends: what the worker reads from us, and what it writes to us."""

    source: Source | None
    output: Output | None

    async def close(self) -> None:
        for pipe in (self.source, self.output):
            if pipe:
                await pipe.close()


def packing(
    source: Path, progress: Progress, *, live: bool = False, gzip: bool = False
) -> contextlib.AbstractAsyncContextManager[Worker]:
    return _running("pack", {"source": str(source), "live": live, "gzip": gzip}, progress, 0)


def from_folder(source: Path) -> Pack:
    """A directory that nothing changes, for `service.archive`."""
    return lambda progress: packing(source, progress)


def into_folder(into: Path, owner: tuple[int, int] | None, quota: Quota) -> Unpack:
    """An empty directory on this machine, for `service.restore`; everything owned by `owner` (None: as archived)."""

    async def unpack(chunks: AsyncGenerator[bytes | memoryview, None], total: int, progress: Progress) -> None:
        async with unpacking(into, owner, quota, progress, total) as worker:
            await feed(worker, chunks)

    return unpack


async def feed(worker: Worker, chunks: AsyncGenerator[bytes | memoryview, None]) -> None:
    """All that it is to unpack; returns when it has."""
    fed = await _feed(worker, chunks)
    await worker.end()
    await worker.result()
    if not fed:  # else it has said why it gave up
        raise model.ArchiveCorruptedError("the archive goes on after its end")


async def _feed(worker: Worker, chunks: AsyncGenerator[bytes | memoryview, None]) -> bool:
    """True: all of it."""
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            if not await worker.feed(chunk):
                return False
    return True


def recompressing() -> contextlib.AbstractAsyncContextManager[Worker]:
    """An archive as it is stored goes in, a gzip comes out, which every system can open."""
    return _running("recompress", {}, model.no_progress, 0)


def unpacking(
    into: Path, owner: tuple[int, int] | None, quota: Quota, progress: Progress, total: int
) -> contextlib.AbstractAsyncContextManager[Worker]:
    arguments = {"into": str(into), "owner": owner, "quota_bytes": quota.bytes, "quota_inodes": quota.inodes}
    return _running("unpack", arguments, progress, total)


@contextlib.asynccontextmanager
async def _running(job: str, arguments: dict[str, Any], progress: Progress, total: int) -> AsyncIterator[Worker]:
    source, stdin = _pipe_to_worker() if job != "pack" else (None, None)
    output, stdout = _pipe_from_worker() if job != "unpack" else (None, None)
    pipes = Pipes(source, output)
    try:
        process = await _start(job, arguments, stdin, stdout)
    except BaseException:
        _close(stdin, stdout)
        await pipes.close()
        raise
    _close(stdin, stdout)
    worker = Worker(process, pipes, progress, total)
    try:
        yield worker
    finally:
        # Also while we are being cancelled: a worker is never left behind.
        await asyncio.shield(asyncio.ensure_future(worker.close()))


def _pipe_to_worker() -> tuple[_Pipe, int]:
    reading, writing = _pipe()
    return _Pipe(writing), reading


def _pipe_from_worker() -> tuple[_Pipe, int]:
    reading, writing = _pipe()
    return _Pipe(reading), writing


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # an ordinary user's workspaces can have taken all: slower, then
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, CHUNK)
    return reading, writing


def _close(*descriptors: int | None) -> None:
    for fd in descriptors:
        if fd is not None:
            os.close(fd)


async def _start(
    job: str, arguments: dict[str, Any], stdin: int | None, stdout: int | None
) -> asyncio.subprocess.Process:
    nothing = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "codehub.archives.worker",
        json.dumps({"job": job, "arguments": arguments, "parent": os.getpid()}),
        stdin=nothing if stdin is None else stdin,
        stdout=nothing if stdout is None else stdout,
        stderr=asyncio.subprocess.PIPE,
        limit=_REPORT_LIMIT,
        env={name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ},
    )
