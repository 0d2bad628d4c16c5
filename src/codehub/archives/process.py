"""Starts `worker` and speaks with it. `service` calls it; what the worker reports becomes progress and exceptions."""

import asyncio
import contextlib
import json
import os
import sys
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from codehub.archives import model
from codehub.archives.model import ArchiveError, Progress, Quota

CHUNK = 1024 * 1024
_REPORT_LIMIT = 1024 * 1024  # the longest line is the list of what was left out
# A worker gets no credentials. It needs to find its own code, and nothing else.
_KEPT_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")
_ERRORS: dict[str, type[ArchiveError]] = {
    kind.__name__: kind
    for kind in (ArchiveError, model.SourceChangedError, model.QuotaExceededError, model.ArchiveCorruptedError)
}


class Worker:
    """A worker under way. Leave its context, by whatever door, and it is gone."""

    def __init__(self, process: asyncio.subprocess.Process, progress: Progress, total: int) -> None:
        self._process = process
        self._progress = progress
        self._total = total
        self._result: dict[str, Any] | None = None
        self._error: dict[str, Any] | None = None
        self._tail: deque[str] = deque(maxlen=5)
        self._listener = asyncio.create_task(self._listen(), name="archive worker's reports")

    @property
    def pid(self) -> int:
        return self._process.pid

    async def output(self) -> AsyncIterator[bytes]:
        """What the worker writes. Ends only when the worker has said that it is done; raises when it is not."""
        assert self._process.stdout is not None  # noqa: S101 - for the types: we asked for a pipe
        while chunk := await self._process.stdout.read(CHUNK):
            yield chunk
        await self.result()

    async def feed(self, chunk: bytes) -> bool:
        """Give the worker more to read; False when it wants no more."""
        assert self._process.stdin is not None  # noqa: S101
        try:
            self._process.stdin.write(chunk)
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def end(self) -> None:
        assert self._process.stdin is not None  # noqa: S101
        self._process.stdin.close()

    async def result(self) -> dict[str, Any]:
        await self._listener
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
        if self._process.stdout is not None:
            # asyncio does not call a process ended before its pipes are read to their end.
            while await self._process.stdout.read(CHUNK):
                pass
        await self._process.wait()
        self._listener.cancel()
        await asyncio.gather(self._listener, return_exceptions=True)
        if self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it was closed from the other side
                await self._process.stdin.wait_closed()

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


def packing(source: Path, progress: Progress) -> contextlib.AbstractAsyncContextManager[Worker]:
    return _running("pack", {"source": str(source)}, progress, 0)


def unpacking(
    into: Path, owner: tuple[int, int] | None, quota: Quota, progress: Progress, total: int
) -> contextlib.AbstractAsyncContextManager[Worker]:
    arguments = {"into": str(into), "owner": owner, "quota_bytes": quota.bytes, "quota_inodes": quota.inodes}
    return _running("unpack", arguments, progress, total)


@contextlib.asynccontextmanager
async def _running(job: str, arguments: dict[str, Any], progress: Progress, total: int) -> AsyncIterator[Worker]:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "codehub.archives.worker",
        json.dumps({"job": job, "arguments": arguments, "parent": os.getpid()}),
        stdin=nothing if job == "pack" else pipe,
        stdout=pipe if job == "pack" else nothing,
        stderr=pipe,
        limit=_REPORT_LIMIT,
        env={name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ},
        start_new_session=True,  # an interrupt from the terminal is the coordinator's to handle
    )
    worker = Worker(process, progress, total)
    try:
        yield worker
    finally:
        # Also while we are being cancelled: a worker is never left behind.
        await asyncio.shield(asyncio.ensure_future(worker.close()))
