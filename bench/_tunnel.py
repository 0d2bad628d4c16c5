"""The least that a proxy on this event loop can be: bytes pass between two sockets, and nobody looks at them.

`_proxies` starts it as `python bench/_tunnel.py FD PORT`: the listening socket it inherits, and where everything goes.
Whatever ours takes beyond it is ours: HTTP, the gate, activity. What it takes itself is the kernel's and uvloop's.
"""

import asyncio
import socket
import sys
from typing import Any

import uvloop


class End(asyncio.Protocol):
    __slots__ = ("other", "transport", "write")

    transport: Any
    other: "End"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def meet(self, other: "End") -> None:
        self.other, self.write = other, other.transport.write

    def data_received(self, data: bytes) -> None:
        self.write(data)

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.other.transport.resume_reading()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.other.transport.close()


class Front(End):
    __slots__ = ("_early", "_port", "_task")

    def __init__(self, port: int) -> None:
        self._port = port
        self._early: list[bytes] = []  # what comes before there is anywhere to go
        self.write = self._early.append

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._task = asyncio.create_task(self._connect())

    async def _connect(self) -> None:
        _, back = await asyncio.get_running_loop().create_connection(End, "127.0.0.1", self._port)
        self.meet(back)
        back.meet(self)
        back.transport.writelines(self._early)


async def work(fd: int, port: int) -> None:
    listener = socket.socket(fileno=fd)
    listener.setblocking(False)
    server = await asyncio.get_running_loop().create_server(lambda: Front(port), sock=listener, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work(int(sys.argv[1]), int(sys.argv[2])))
