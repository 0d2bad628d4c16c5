"""The way out that is always there: an HTTP proxy that a workspace finds on its own loopback, run outside of it.

Its shepherd listens, and starts this when somebody connects; it ends when nobody has for a while, and the shepherd
listens again. It runs as the workspace's user and in its control groups, so that whatever it is made to do is the
workspace's own share. Names are looked up here, and the rules are asked about the very address that is connected to.
"""

import asyncio
import contextlib
import encodings.idna  # noqa: F401 (loaded before the rights to read it are given up)
import ipaddress
import json
import os
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from codehub import allowlist
from codehub.clock import Clock, SystemClock
from codehub.runtimes.network import rules
from codehub.runtimes.shepherd import own_addresses
from codehub.runtimes.shepherd.relay import copy
from codehub.system import kernel

HEAD_BYTES, HEAD_SECONDS = 32768, 20.0
LOOKUP_SECONDS, CONNECT_SECONDS = 15.0, 15.0
AT_ONCE = 512  # connections of one workspace
IDLE_SECONDS, LOOK_SECONDS = 60.0, 5.0
NO_PROXY_REQUEST = ("400 Bad Request", "this is an HTTP proxy: ask with CONNECT or an http:// address")
HOP_BY_HOP = {b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"te", b"upgrade"}


class RefusedError(Exception):
    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True)
class Request:
    host: str
    port: int
    head: bytes  # what the other end gets of it; empty for CONNECT


def parse(head: bytes) -> Request:
    """Of a request to a proxy: `CONNECT host:port`, or a method with an absolute http:// target."""
    line, _, fields = head.partition(b"\r\n")
    try:
        method, target, version = line.decode("ascii").split(" ")
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            return Request(_host(host.removeprefix("[").removesuffix("]")), _port(port), b"")
        url = urlsplit(target)
        host, number = _host(url.hostname or ""), url.port or 80
    except ValueError:
        raise RefusedError(*NO_PROXY_REQUEST) from None
    if url.scheme != "http":
        raise RefusedError(*NO_PROXY_REQUEST)
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    kept = [
        field for field in fields.split(b"\r\n")
        if field and field.split(b":")[0].strip().lower() not in HOP_BY_HOP | {b"host"}
    ]  # fmt: skip
    first = [f"{method} {path} {version}".encode(), b"Host: " + url.netloc.rpartition("@")[2].encode()]
    return Request(host, number, b"\r\n".join([*first, *kept, b"Connection: close", b"", b""]))


def _host(text: str) -> str:
    if not allowlist.is_host(text):
        raise ValueError(text)
    return text


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise ValueError(text)
    return int(text)


class Egress:
    def __init__(self, rules_: rules.Rules, clock: Clock) -> None:
        self._rules = rules_
        self._clock = clock
        self._open = 0
        self._busy_until = clock.monotonic() + IDLE_SECONDS

    async def serve(self, listener: socket.socket) -> None:
        """Until nobody has been connected for a while."""
        while True:
            async with await asyncio.start_server(self._client, sock=listener.dup(), limit=HEAD_BYTES):
                while not self._is_idle():
                    await self._clock.sleep(LOOK_SECONDS)
            await self._clock.sleep(0)  # what was accepted a moment ago begins now
            if self._is_idle():
                return

    def _is_idle(self) -> bool:
        return not self._open and self._clock.monotonic() >= self._busy_until

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            await self._serve(reader, writer)
        except RefusedError as e:
            writer.write(_answer(e.status, str(e)))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, OSError):
            pass
        finally:
            self._open -= 1
            self._busy_until = self._clock.monotonic() + IDLE_SECONDS
            with contextlib.suppress(OSError):
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open > AT_ONCE:
            raise RefusedError("503 Service Unavailable", f"more than {AT_ONCE} connections at once")
        async with asyncio.timeout(HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        await self._pass_on(parse(head), reader, writer)

    async def _pass_on(self, wanted: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(sock=await self._connect(wanted.host, wanted.port))
        try:
            if wanted.head:
                back.write(wanted.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(copy(reader, back), copy(there, writer))
        finally:
            back.close()

    async def _connect(self, host: str, port: int) -> socket.socket:
        if why := self._rules.refuses_host(host, port):
            raise RefusedError("403 Forbidden", f"{host}:{port} is not reached from here: {why}")
        trouble = "it has no address"
        for family, address in await self._look_up(host, port):
            try:
                if why := self._refuses(address):
                    raise RefusedError("403 Forbidden", f"{host} ({address}) is not reached from a workspace: {why}")
                return await _connected(family, str(address), port)
            except (OSError, TimeoutError) as e:
                trouble = getattr(e, "strerror", None) or "it does not answer"
        raise RefusedError("502 Bad Gateway", f"{host}:{port} cannot be reached: {trouble}")

    def _refuses(self, address: allowlist.Address) -> str | None:
        own = "it is this machine"
        return self._rules.refuses_address(address) or (own if own_addresses.is_own(address) else None)

    async def _look_up(self, host: str, port: int) -> list[tuple[int, allowlist.Address]]:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError, TimeoutError, RuntimeError):
            raise RefusedError("502 Bad Gateway", f"{host} cannot be looked up") from None
        return [(family, ipaddress.ip_address(str(where[0]).partition("%")[0])) for family, _, _, _, where in found]


async def _connected(family: int, address: str, port: int) -> socket.socket:
    new = socket.socket(family, socket.SOCK_STREAM)
    new.setblocking(False)
    new.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(new, (address, port))
    except BaseException:
        new.close()
        raise
    return new


def _answer(status: str, detail: str) -> bytes:
    body = f"codehub: {detail}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def main(arguments: list[str]) -> None:
    told = json.loads(arguments[1])
    allow = None if told["allow"] is None else allowlist.parse(told["allow"])
    wanted = rules.Rules(allow, rules.networks(told["private"]))
    kernel.give_up_rights(told["uid"], told["gid"])

    async def serve() -> None:
        await Egress(wanted, SystemClock()).serve(socket.socket(fileno=int(arguments[0])))

    asyncio.run(serve())
    os._exit(0)
