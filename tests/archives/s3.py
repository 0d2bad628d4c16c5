"""A real S3 server for the tests, and a wire to it that can be slow or be cut."""

import asyncio
import contextlib
import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.store import S3Store

ACCESS, SECRET, BUCKET = "archivist", "a-secret-for-tests", "homes"
_CONFIG = {
    "identities": [
        {
            "name": "tests",
            "credentials": [{"accessKey": ACCESS, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "List", "Tagging", "Write"],
        }
    ]
}


@dataclass(frozen=True)
class S3Server:
    port: int
    filer_port: int
    host: str = "127.0.0.1"

    def environment(self, port: int | None = None, secret: str = SECRET) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://{self.host}:{port or self.port}",
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
        }


def free_ports(count: int) -> list[int]:
    """Below those that outgoing connections get from the system: one could have them before the server does."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    for port in random.sample(range(lowest // 2, lowest), k=min(2000, lowest // 2)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")


@contextlib.contextmanager
def running_server() -> Iterator[S3Server]:
    with one_that_can_be_lost() as store:
        yield store.server


class Store:
    """The server's process: it can be killed, and started again on what it has stored, under the same address."""

    def __init__(self, folder: Path, host: str, tries: int = 5) -> None:
        """It opens its ports one after the other, over seconds: another process may have had one before. Then again."""
        self._folder = folder
        names = ["master.port", "volume.port", "filer.port", "s3.port"]
        names += [f"{name}.grpc" for name in names]
        while True:
            self._ports = dict(zip(names, free_ports(len(names)), strict=True))
            self.server = S3Server(self._ports["s3.port"], self._ports["filer.port"], host)
            try:
                self.start()
            except BaseException:
                self.kill()
                tries -= 1
                if not tries or "address already in use" not in (folder / "log").read_text(errors="replace"):
                    raise
            else:
                return

    def start(self) -> None:
        folder, host = self._folder, self.server.host
        command = [str(Path(sys.executable).parent / "weed"), "server", f"-ip={host}", f"-ip.bind={host}"]
        command += [f"-dir={folder}", "-filer", "-s3", f"-s3.config={folder / 's3.json'}"]
        command += ["-master.volumeSizeLimitMB=100", "-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.max=0"]
        command += [f"-{name}={port}" for name, port in self._ports.items()]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        _wait_until_it_stores(self.server, self._process, folder / "log")

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)  # it does not end by asking
        self._process.wait()


@contextlib.contextmanager
def one_that_can_be_lost(host: str = "127.0.0.1") -> Iterator[Store]:
    folder = Path(tempfile.mkdtemp(prefix="codehub-s3-"))
    (folder / "s3.json").write_text(json.dumps(_CONFIG))
    store = Store(folder, host)
    try:
        yield store
    finally:
        store.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_it_stores(server: S3Server, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Up is when a bucket exists and an object can be put into it."""
    for _ in range(600):
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        with contextlib.suppress(Exception):
            _make_bucket(server)
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text(errors="replace")[-3000:])


def _make_bucket(server: S3Server) -> None:
    with socket.create_connection((server.host, server.port), timeout=1):
        pass
    store = S3Store(
        BUCKET,
        endpoint=f"http://{server.host}:{server.port}",
        access_key_id=ACCESS,
        secret_access_key=SECRET,
        region="us-east-1",
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    # obstore does not make buckets, but it signs the request that does.
    url = obstore.sign(store, "PUT", "", timedelta(seconds=60))
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=5).close()  # noqa: S310
    obstore.put(store, "probe", b"x")
    obstore.delete(store, "probe")


class Wire:
    """A relay to the server. `budget` bytes go through to it, then what `then` says happens to every connection."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.carried = 0
        self._target = target
        self._budget: int | None = None
        self._then = ""
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def after(self, budget: int, then: str) -> None:
        """`cut`: connections break and none is taken. `hang`: nothing moves any more."""
        assert then in {"cut", "hang"}
        self._budget, self._then = self.carried + budget, then

    def mend(self) -> None:
        self._budget = None

    def _broken(self) -> bool:
        return self._budget is not None and self.carried >= self._budget

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._broken() and self._then == "cut":
            writer.transport.abort()
            return
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self._target)
        self._open |= {writer, upstream}
        pumps = [self._pump(reader, upstream), self._pump(upstream_reader, writer)]
        tasks = [asyncio.create_task(pump) for pump in pumps]
        self._tasks.update(tasks)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, upstream):
            end.transport.abort()
        self._open -= {writer, upstream}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while data := await reader.read(16384):
                self.carried += len(data)
                if self._broken() and self._then == "cut":
                    return
                while self._broken():
                    await asyncio.sleep(0.05)
                writer.write(data)
                await writer.drain()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for writer in self._open:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def wire_to(server: S3Server) -> AsyncIterator[Wire]:
    wire = Wire(server.port)
    listener = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.port = listener.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        listener.close()
        wire.close()
        await asyncio.sleep(0)
