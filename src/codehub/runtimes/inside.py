"""`exec` and `put`: work done inside a workspace, by helper processes that become its user. Called by `process`."""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from codehub.runtimes import files, launch
from codehub.runtimes.base import ExecResult, HomeFullError, PutFile, PutOutcome, RuntimeFailureError
from codehub.runtimes.records import Running
from codehub.runtimes.shepherd import tree
from codehub.runtimes.shepherd.spec import PLAIN
from codehub.runtimes.volumes import Meta

SLACK_SECONDS = 10.0  # beyond the command's own time: for the helper
LINGER_SECONDS = 0.2  # for output of a command that has ended, while something it left behind keeps the pipe open
UNREAD_BYTES = 1 << 20  # of output beyond what is kept: after that a contained command writes into nothing
PUT_SECONDS = 60.0
READY_SECONDS = 10.0


@dataclass(frozen=True)
class Bounds:
    """Of one command."""

    seconds: float
    output: int  # bytes that are kept
    contained: bool = False  # see `Runtime.exec`

    @property
    def read(self) -> int | None:
        """Bytes after which nothing is read on; None: all is read. A pipe without a reader ends most who write."""
        return self.output + UNREAD_BYTES if self.contained else None


async def run(
    running: Running,
    command: Sequence[str],
    environment: Mapping[str, str],
    stdin: bytes,
    bounds: Bounds,
    ide: int | None = None,
) -> ExecResult:
    """`ide`: its process, where it is known to be ready."""
    header = {
        "isolation": running.isolation,
        "first": vars(running.first),
        "ide": ide or await asyncio.to_thread(_ready_ide, running),
        "groups": running.groups,
        "rlimits": running.rlimits,
        "filter": running.filter,
        "uid": running.uid,
        "gid": running.gid,
        "directory": running.directory,
        "command": list(command),
        "environment": dict(environment),
        "timeout": bounds.seconds,
        "contained": bounds.contained,
        "parent": os.getpid(),
    }
    output = _Output(bounds.output, bounds.read)
    outcome = await _help("enter", header, [stdin], bounds.seconds + SLACK_SECONDS, output)
    return ExecResult(outcome["code"], bytes(output.data), output.left_out, outcome["timed_out"])


def _ready_ide(running: Running) -> int:
    """Waits out the moment in which the sandbox is being built: nothing may run in half of one."""
    if running.isolation == PLAIN:
        return running.first.pid
    first = running.first
    ide = files.wait_for(lambda: tree.ready_ide_of(first.pid), unless=lambda: not first.alive(), seconds=READY_SECONDS)
    if ide is None:
        raise RuntimeFailureError("the workspace is not running")
    return ide


async def put(
    home: pathlib.Path,
    meta: Meta,
    contents: Mapping[str, bytes],
    delivered: Mapping[str, Collection[str]] | None = None,
) -> list[PutFile]:
    header = put_header(str(home), meta.uid, contents, delivered)
    said = await _help("place", header, list(contents.values()), PUT_SECONDS, _Output(0))
    return put_files(contents, said)


def put_header(
    home: str, uid: int | None, contents: Mapping[str, bytes], delivered: Mapping[str, Collection[str]] | None
) -> dict[str, Any]:
    """What `shepherd.place` is told."""
    for path in contents:
        parts = path.split("/")
        if "\0" in path or any(part in {"", ".", ".."} for part in parts):
            raise RuntimeFailureError(f"{path!r} is not a path inside the home")
    return {
        "home": home,
        "uid": uid,
        "gid": uid,
        "files": [
            [path, len(data), None if delivered is None else sorted(delivered.get(path, ()))]
            for path, data in contents.items()
        ],
    }


def put_files(contents: Mapping[str, bytes], said: Mapping[str, Any]) -> list[PutFile]:
    """What it answers."""
    return [
        PutFile(path, PutOutcome(outcome), name) for path, (outcome, name) in zip(contents, said["files"], strict=True)
    ]


async def disk_usage(home: pathlib.Path, seconds: float) -> int:
    """Blocks really taken. By `du`: a home can be deeper than Python can go, and a process can be ended when late."""
    process = await asyncio.create_subprocess_exec(
        *launch.helper("measuring", str(home)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # files that vanish meanwhile
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    except TimeoutError:
        raise RuntimeFailureError(f"the home could not be measured within {seconds:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if not output:
        raise RuntimeFailureError("the home cannot be measured: it is not there")
    return int(output.split()[0])


async def _help(
    module: str, header: Mapping[str, Any], data: Sequence[bytes], seconds: float, output: "_Output"
) -> dict[str, Any]:
    """Start a helper, feed it, collect what it prints and how it says it went."""
    text = json.dumps(header).encode()
    with _Pipe() as report, _Pipe() as printed:
        process = await asyncio.create_subprocess_exec(
            *launch.helper(module, str(report.write)),
            stdin=asyncio.subprocess.PIPE,
            stdout=printed.write,
            stderr=printed.write,
            env={},
            cwd="/",
            pass_fds=(report.write,),
            start_new_session=True,
        )
        report.close_write()
        printed.close_write()
        tasks = [
            asyncio.create_task(_feed(process, [f"{len(text):010}".encode(), text, *data])),
            asyncio.create_task(output.collect(printed)),
        ]
        try:
            async with asyncio.timeout(seconds):
                said = await report.all()
                # Something left behind may hold the output open for ever; what the command itself wrote is there.
                await asyncio.wait(tasks[1:], timeout=LINGER_SECONDS)
        except TimeoutError:
            raise RuntimeFailureError("the helper did not come back in time") from None
        finally:
            await _leave(process, tasks)
        return _judge(said)


class _Pipe:
    """A pipe of ours. Not asyncio's: that one believes in a process's end only when nobody holds its output."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_read()
        self.close_write()

    def close_read(self) -> None:
        if self._read >= 0:
            os.close(self._read)
            self._read = -1

    def close_write(self) -> None:
        if self.write >= 0:
            os.close(self.write)
            self.write = -1

    async def piece(self) -> bytes:
        """What comes next; nothing at the end."""
        ready = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._read, ready.set)
        try:
            await ready.wait()
            return os.read(self._read, 65536)
        finally:
            loop.remove_reader(self._read)

    async def all(self) -> bytes:
        """Until its last writer has gone."""
        data = b""
        while piece := await self.piece():
            data += piece
        return data


class _Output:
    """The end of what a command writes: why it failed is said there."""

    def __init__(self, limit: int, most: int | None = None) -> None:
        self.data = bytearray()
        self.left_out = 0
        self._limit = limit
        self._most = most
        self._read = 0

    async def collect(self, pipe: _Pipe) -> None:
        while piece := await pipe.piece():
            self.data += piece
            over = max(0, len(self.data) - self._limit)
            del self.data[:over]
            self.left_out += over
            self._read += len(piece)
            if self._most is not None and self._read > self._most:
                pipe.close_read()
                return


async def _feed(process: asyncio.subprocess.Process, pieces: Sequence[bytes]) -> None:
    assert process.stdin  # noqa: S101 (asked for above)
    with contextlib.suppress(ConnectionError):  # it need not read what it is given
        for piece in pieces:
            process.stdin.write(piece)
            await process.stdin.drain()
        process.stdin.close()


async def _leave(process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert process.stdin  # noqa: S101 (asked for above)
    if not process.stdin.is_closing():
        process.stdin.transport.abort()  # what was not read will not be
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
    await process.wait()


def _judge(said: bytes) -> dict[str, Any]:
    if not said:
        raise RuntimeFailureError("the helper ended without a word")
    outcome: dict[str, Any] = json.loads(said)
    if "error" in outcome:
        raise (HomeFullError if outcome.get("full") else RuntimeFailureError)(outcome["error"])
    return outcome
