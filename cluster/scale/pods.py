"""What the relays of simulated pods say: one program for all of them. Runs on the machine of the control plane.

Each simulated pod has an address of its own, and all of these lead here. By the address that a client connects to it is
known which pod is meant, and so which key its door has. An IDE answers at once, a home is of no size, and one that is
asked to stop has stopped: what a kubelet would then say of its pod is said here.

    python -m cluster.scale.pods KUBECONFIG NAMESPACE SECRET_KEY
"""

import asyncio
import contextlib
import functools
import json
import pathlib
import socket
import ssl
import sys
import tempfile
from datetime import UTC, datetime
from typing import Any

from codehub.clock import SystemClock
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.containers.door import ASK_PORT, IDE_PORT
from codehub.runtimes.containers.framing import END, STDOUT, frame, read_piece
from codehub.runtimes.kubernetes import names
from codehub.runtimes.kubernetes.api import Api, Object, objects
from codehub.runtimes.kubernetes.runtime import KubernetesRuntime
from codehub.runtimes.kubernetes.watch import Table
from codehub.system import doors
from codehub.system.doors import Doors

BACKLOG = 4096
KNOWN_SECONDS = 10.0  # until the watch has told of a pod that the client knows already
KEYS = 10_000  # that are remembered
HOME_BYTES = b"4096\n"
READY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Relays:
    def __init__(self, api: Api, secret_key: str) -> None:
        self._api = api
        self._doors = Doors(secret_key)
        self._pods = _ByAddress(api)
        self._tasks: set[asyncio.Task[None]] = set()
        self._key = functools.lru_cache(KEYS)(self._make_key)

    async def serve(self) -> None:
        await self._pods.ready()
        await asyncio.gather(self._accept(IDE_PORT), self._accept(ASK_PORT))

    async def _accept(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("", port), backlog=BACKLOG) as listener:
            listener.setblocking(False)
            while True:
                connection, _ = await loop.sock_accept(listener)
                task = asyncio.create_task(self._answer(connection, port))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _answer(self, connection: socket.socket, port: int) -> None:
        pod = await self._pods.at(connection.getsockname()[0])
        if pod is None:
            connection.close()
            return
        with contextlib.suppress(OSError, EOFError, ValueError):
            reader, writer = await _secured(connection, self._key(pod["metadata"]["annotations"][names.DOOR]))
            try:
                await (self._ide(reader, writer) if port == IDE_PORT else self._ask(pod, reader, writer))
                await writer.drain()
            finally:
                writer.close()

    async def _ide(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(READY)

    async def _ask(self, pod: Object, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = json.loads(await read_piece(reader))
        outcome: dict[str, Any] = {"error": "not simulated"}
        match request["do"]:
            case "job":
                writer.write(frame(STDOUT, HOME_BYTES))
                outcome = {"code": 0}
            case "stop":
                outcome = {"ended": True}
        writer.write(frame(END, json.dumps(outcome).encode()))
        if request["do"] == "stop":
            await end(self._api, pod["metadata"]["name"], "0\n")

    def _make_key(self, door: str) -> ssl.SSLContext:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            place = pathlib.Path(folder)
            for name, content in zip((doors.CERTIFICATE, doors.KEY), self._doors.pair(door), strict=True):
                (place / name).write_bytes(content)
            return doors.serving(place)


class _ByAddress:
    """Which pod has an address now. The table of the platform's own runtime, which tells of every change."""

    def __init__(self, api: Api) -> None:
        self._table = Table(api, "pods", f"{names.ROLE}", SystemClock(), self._note)
        self._names: dict[str, str] = {}

    async def ready(self) -> None:
        await self._table.ready()

    def _note(self, before: Object | None, now: Object | None) -> None:
        if before and self._names.get(_address(before)) == before["metadata"]["name"]:
            del self._names[_address(before)]
        if now and _address(now):
            self._names[_address(now)] = now["metadata"]["name"]

    async def at(self, address: str) -> Object | None:
        deadline = asyncio.get_running_loop().time() + KNOWN_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            if found := self._table.get(self._names.get(address, "")):
                return found
            await asyncio.sleep(0.01)
        return None


def _address(pod: Object) -> str:
    return str((pod.get("status") or {}).get("podIP", ""))


async def _secured(connection: socket.socket, key: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=key)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def end(api: Api, name: str, said: str) -> None:
    """As a kubelet reports a pod all of whose containers have ended; `said` by the IDE's first process."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    containers = [
        {
            "name": one,
            "image": "simulated",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": {**ended, **({"message": said} if one == names.IDE else {})}},
        }
        for one in (names.IDE, names.COMMANDS, names.RELAY)
    ]
    status = {"status": {"phase": "Succeeded", "containerStatuses": containers}}
    await api.call("PATCH", f"{objects('pods', name)}/status", status)


async def main(kubeconfig: str, namespace: str, secret_key: str) -> None:
    config = RuntimeConfig(kubernetes_config=kubeconfig, kubernetes_namespace=namespace)
    runtime = KubernetesRuntime(config, Doors(secret_key), SystemClock())
    await Relays(runtime.api, secret_key).serve()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
