"""A Redis that is killed and started again, with its log or without: the line survives, or people bring it back."""

import pathlib
import subprocess
from collections.abc import AsyncIterator

import pytest
import redis

from codehub.db.redis import open_redis
from codehub.embedded.redis import binary
from codehub.errors import UnavailableError
from codehub.waiting_room.model import LOSS, Check
from tests.virtual_time import ManualClock
from tests.waiting_room.clusters import until
from tests.waiting_room.lines import Room, check_line


class Server:
    def __init__(self, folder: pathlib.Path, *, durable: bool) -> None:
        self.socket = folder / "redis.sock"
        log = "yes" if durable else "no"
        options = {"port": 0, "unixsocket": self.socket, "dir": folder, "save": "", "appendonly": log}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        self._command = [str(binary()), *words]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            until(lambda: bool(client.ping()))

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()


@pytest.fixture
async def server(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    server = Server(tmp_path, durable=request.param)
    server.start()
    yield server
    server.kill()


@pytest.mark.parametrize("server", [True, False], indirect=True, ids=["with its log", "without"])
async def test_a_killed_redis_costs_nobody_the_place(server: Server, clock: ManualClock) -> None:
    async with open_redis(f"unix://{server.socket}") as client:
        room = Room(client, clock)
        await room.open()
        people = await room.join_all("a", "b", "c")
        kept = (await client.info("persistence"))["aof_enabled"] == 1
        if kept:
            await client.execute_command("WAITAOF", 1, 0, 5000)
        server.kill()
        with pytest.raises(UnavailableError):
            await room.poll(people[0])
        server.start()
        assert await room.poll(people[0]) is LOSS
        assert await room.open(2, hold=90, window=300)
        if kept:
            assert await room.positions(people) == [1, 2, 3]
        else:
            assert await room.poll(people[2]) == Check(people[2].seq)
            for who in reversed(people):
                assert await room.put_back(who)
        assert await room.positions(people) == [1, 2, 3]
        assert (await room.join("d")).seq > people[-1].seq
        await check_line(client, room.event)
        await room.line.aclose()
