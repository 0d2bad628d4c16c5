"""How a role that runs alone says how it is: `/healthz`, `/readyz`, `/metrics`, on an address of its own, to probes.

Under `codehub serve` there is none of this: the API answers for all. Anyone who reaches the address may ask the first
two, which say nothing that is secret; `/metrics` is for this machine and for the networks that were named for it.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address

from codehub import metrics
from codehub.settings import Network

OK = "ok"
LEAVING = "is stopping"
REQUEST_SECONDS = 5.0
LONGEST_HEAD = 8192
AT_ONCE = 64  # connections: probes ask one at a time, and at once
REASONS = {200: "OK", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
JSON = "application/json"
NOT_A_REQUEST = (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
Checks = Callable[[], Awaitable[Mapping[str, str]]]  # by what is needed: "ok", or what is wrong with it
Answer = tuple[int, str, bytes]  # status, media type, body


async def nothing_needed() -> Mapping[str, str]:
    return {}


class Health:
    """Of one process."""

    def __init__(self, metrics_networks: Sequence[Network], checks: Checks = nothing_needed) -> None:
        self.leaving = False  # told to stop: whoever can should ask another one
        self._networks = metrics_networks
        self._checks = checks
        self._open: dict[asyncio.StreamWriter, None] = {}  # the oldest first

    @contextlib.asynccontextmanager
    async def serving(self, listeners: Sequence[socket.socket]) -> AsyncIterator[None]:
        servers = [await asyncio.start_server(self._serve, sock=one, limit=LONGEST_HEAD) for one in listeners]
        try:
            yield
        finally:
            for server in servers:
                server.close()

    async def answer(self, method: str, path: str, peer: str) -> Answer:
        if method not in {"GET", "HEAD"}:
            return 405, JSON, b"{}"
        if path == "/healthz":
            return 200, JSON, b'{"status":"alive"}'
        if path == "/readyz":
            return await self._ready()
        if path == "/metrics" and self._may_read(peer):
            body, media_type = metrics.render()
            return 200, media_type, body
        return (403 if path == "/metrics" else 404), JSON, b"{}"

    async def _ready(self) -> Answer:
        checks = {"process": LEAVING} if self.leaving else dict(await self._checks())
        ready = all(said == OK for said in checks.values())
        return (200 if ready else 503), JSON, json.dumps({"ready": ready, "checks": checks}).encode()

    def _may_read(self, peer: str) -> bool:
        address = ip_address(peer.partition("%")[0])
        address = getattr(address, "ipv4_mapped", None) or address
        return address.is_loopback or any(address in network for network in self._networks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) == AT_ONCE:  # who says nothing must not keep a probe out, whose failure ends the process
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            with contextlib.suppress(*NOT_A_REQUEST):
                async with asyncio.timeout(REQUEST_SECONDS):
                    await self._exchange(reader, writer)
        finally:
            self._open.pop(writer, None)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _version = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        status, media_type, body = await self.answer(
            method, target.partition("?")[0], writer.get_extra_info("peername")[0]
        )
        fields = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}"
        writer.write(f"{fields}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n".encode())
        writer.write(b"" if method == "HEAD" else body)
        await writer.drain()
