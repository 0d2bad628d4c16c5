"""Work on a home in a short-lived container of the platform's own image (`containers.job`). Called by `runtime`.

It has exactly that volume, no network and no secret. The engine removes it when it ends, and it ends with us: what it
reads from us ends then.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

from codehub.archives import process as archives
from codehub.archives.model import Progress
from codehub.runtimes.base import HomeFullError, ImageNotFoundError, RuntimeFailureError
from codehub.runtimes.containers import job
from codehub.runtimes.containers.framing import STDOUT, frames
from codehub.runtimes.docker import names
from codehub.runtimes.docker.engine import Engine, EngineError, path
from codehub.runtimes.docker.names import Names

JOB_SECONDS = 60.0
PIECES = 16  # of output that wait to be read
MEMORY = 1 << 30
# Of root's rights, those over files of whatever owner, and to become that owner before a home is written to.
RIGHTS = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "SETPCAP"]


class Jobs:
    def __init__(self, engine: Engine, own: Names, image: str) -> None:
        self._engine = engine
        self._names = own
        self._image = image

    @contextlib.asynccontextmanager
    async def worker(
        self, workspace_id: str, volume: str, name: str, progress: Progress, total: int = 0, **arguments: object
    ) -> AsyncIterator[archives.Worker]:
        """One that packs or unpacks, as `archives.process` has it."""
        async with self._running(workspace_id, volume, name, arguments) as process:
            pipes = archives.Pipes(process if name == "unpack" else None, process if name == "pack" else None)
            worker = archives.Worker(process, pipes, progress, total)
            try:
                yield worker
            finally:
                await asyncio.shield(asyncio.ensure_future(worker.close()))

    async def run(
        self,
        workspace_id: str,
        volume: str,
        name: str,
        arguments: dict[str, object],
        *contents: bytes,
        seconds: float = JOB_SECONDS,
    ) -> bytes:
        """What it prints."""
        async with self._running(workspace_id, volume, name, arguments) as process:
            try:
                async with asyncio.timeout(seconds):
                    feeding = asyncio.create_task(process.feed(contents))
                    output = b"".join([bytes(piece) async for piece in process.pieces()])
                    code = await process.wait()
                    feeding.cancel()
            except TimeoutError:
                raise RuntimeFailureError(f"a home could not be worked on within {seconds:g} s ({name})") from None
            finally:
                process.kill()
            if code or not output:
                said = (await process.stderr.read()).decode(errors="replace").strip().rpartition("\n")[2]
                raise RuntimeFailureError(f"a home could not be worked on ({name}): {said or f'it ended with {code}'}")
            return output

    async def ask(self, workspace_id: str, volume: str, name: str, *contents: bytes, **arguments: object) -> Any:
        """The same for one that answers in JSON."""
        said = json.loads(await self.run(workspace_id, volume, name, arguments, *contents))
        if "error" in said:
            raise (HomeFullError if said.get("full") else RuntimeFailureError)(said["error"])
        return said

    @contextlib.asynccontextmanager
    async def _running(
        self, workspace_id: str, volume: str, name: str, arguments: dict[str, object]
    ) -> AsyncIterator["JobProcess"]:
        made = await self._create(workspace_id, volume, {"job": name, "arguments": arguments})
        try:
            process = await JobProcess.begin(self._engine, made)
        except BaseException:
            await asyncio.shield(self._discard(made))
            raise
        try:
            yield process
        finally:
            await asyncio.shield(asyncio.ensure_future(process.end()))

    async def _create(self, workspace_id: str, volume: str, order: dict[str, object]) -> str:
        body = job_body(self._image, volume, order, self._names.labels(workspace_id, names.JOB))
        try:
            made = await self._engine.call(
                "POST", "/containers/create", body, name=self._names.job(workspace_id, secrets.token_hex(6))
            )
        except EngineError as e:
            if e.answer == 404:
                raise ImageNotFoundError(f"{e.detail} (CODEHUB_PLATFORM_IMAGE; `make images` makes it)") from e
            raise
        return str(made["Id"])

    async def _discard(self, container: str) -> None:
        with contextlib.suppress(RuntimeFailureError):
            await self._engine.call("DELETE", path("containers", container), missing=True, force="1", v="1")


def job_body(image: str, volume: str, order: dict[str, object], labels: dict[str, str]) -> dict[str, Any]:
    return {
        "Image": image,
        "Entrypoint": ["python3", "-I", "-m", job.__name__],
        "Cmd": [json.dumps(order)],
        "User": "0:0",
        "Labels": labels,
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": True,
        "HostConfig": {
            "AutoRemove": True,
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "CapAdd": RIGHTS,
            "SecurityOpt": ["no-new-privileges"],
            "Memory": MEMORY,
            "MemorySwap": MEMORY,
            "PidsLimit": 64,
            "LogConfig": {"Type": "none"},
            "Mounts": [
                {"Type": "volume", "Source": volume, "Target": job.VOLUME, "VolumeOptions": {"NoCopy": True}},
            ],
        },
    }


class JobProcess:
    """A job as `archives.process.Worker` wants a process and its pipes."""

    pid = 0

    def __init__(
        self, engine: Engine, container: str, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        self._engine = engine
        self._container = container
        self._reader, self._writer = streams
        self.stderr = asyncio.StreamReader(limit=1 << 20)
        self.returncode: int | None = None
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue(PIECES)
        self._discarding = False
        self._ended = asyncio.create_task(self._wait(), name="job's end")
        self._reading = asyncio.create_task(self._read(), name="job's output")
        self._killing: asyncio.Task[None] | None = None

    @classmethod
    async def begin(cls, engine: Engine, container: str) -> "JobProcess":
        """Attached first, then waited for, then started: neither its output nor its end can be missed."""
        process = cls(engine, container, await engine.attach(container))
        try:
            await engine.call("POST", path("containers", container, "start"))
        except BaseException:
            process._ended.cancel()
            process._writer.close()
            await asyncio.gather(process._ended, process._reading, return_exceptions=True)
            raise
        return process

    async def _wait(self) -> int:
        answer = await self._engine.call(
            "POST", path("containers", self._container, "wait"), seconds=None, condition="removed"
        )
        self.returncode = int(answer["StatusCode"])
        return self.returncode

    async def _read(self) -> None:
        try:
            async for descriptor, piece in frames(self._reader):
                if descriptor != STDOUT:
                    self.stderr.feed_data(piece)
                elif not self._discarding:
                    await self._pieces.put(piece)
        except OSError:
            pass  # the engine has gone: the job's end tells
        finally:
            self.stderr.feed_eof()
            if not self._discarding:
                await self._pieces.put(b"")

    async def pieces(self) -> AsyncIterator[memoryview]:
        while piece := await self._pieces.get():
            yield memoryview(piece)

    async def write(self, content: bytes | memoryview) -> None:
        try:
            self._writer.write(bytes(content))
            await self._writer.drain()
        except OSError as e:
            raise BrokenPipeError from e
        if self._reading.done():
            raise BrokenPipeError

    async def close(self) -> None:
        """Nothing more for it to read."""
        if not self._writer.is_closing() and self._writer.can_write_eof():
            with contextlib.suppress(OSError):
                self._writer.write_eof()

    async def feed(self, contents: tuple[bytes, ...]) -> None:
        with contextlib.suppress(BrokenPipeError):  # it need not read what it is given
            for content in contents:
                await self.write(content)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def kill(self) -> None:
        """Also what it would still write is of no interest."""
        self._discarding = True
        while not self._pieces.empty():
            self._pieces.get_nowait()
        if self.returncode is None and self._killing is None:
            self._killing = asyncio.create_task(self._kill())

    async def _kill(self) -> None:
        with contextlib.suppress(RuntimeFailureError):
            await self._engine.call("POST", path("containers", self._container, "kill"), missing=True)

    async def end(self) -> None:
        """Gone from the engine when this returns, so that nothing holds the volume."""
        if self.returncode is None:
            self.kill()
        tasks = [task for task in (self._ended, self._reading, self._killing) if task]
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()
