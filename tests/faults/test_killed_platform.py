"""kill -9 of the whole `serve` tree at any moment while a writer runs: what was acknowledged is there afterwards."""

import asyncio
import contextlib
import pathlib
import random
import socket

import aiohttp
import pytest

from tests.platform import ADMIN_TOKEN, Platform


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Writer:
    """Creates people one after the other, through whatever happens, and remembers which were acknowledged."""

    def __init__(self, url: str) -> None:
        self.acknowledged: list[str] = []
        self._url = url
        self._number = 0

    async def run(self) -> None:
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        timeout = aiohttp.ClientTimeout(total=5)
        async with aiohttp.ClientSession(self._url, headers=headers, timeout=timeout) as client:
            while True:
                self._number += 1
                name = f"person-{self._number}"
                try:
                    async with client.post("/api/v1/users", json={"name": name, "role": "learner"}) as answer:
                        if answer.status == 201:
                            self.acknowledged.append(name)
                except (aiohttp.ClientError, TimeoutError, ConnectionError):
                    await asyncio.sleep(0.02)


async def everybody(platform: Platform) -> set[str]:
    names: set[str] = set()
    cursor = ""
    async with platform.client() as client:
        while True:
            async with client.get(f"/api/v1/users?limit=200{cursor}") as answer:
                page = await answer.json()
            names |= {user["name"] for user in page["items"]}
            if page["next_cursor"] is None:
                return names
            cursor = f"&cursor={page['next_cursor']}"


async def campaign(data_dir: pathlib.Path, rounds: int, seed: int) -> tuple[int, int]:
    """Kill it `rounds` times, at moments from right after the launch to well under load."""
    dice = random.Random(seed)
    port = free_port()
    platform = Platform(data_dir, first_start=True, CODEHUB_PORT=str(port))
    writer = Writer(f"http://127.0.0.1:{port}")
    writing = asyncio.create_task(writer.run())
    under_load = 0
    try:
        for number in range(rounds):
            before = len(writer.acknowledged)
            platform.launch()
            # Half of the rounds die while starting, half while serving.
            if number % 2:
                await until_written(writer, before + 1, platform)
            await asyncio.sleep(dice.uniform(0, 1.5))
            await asyncio.to_thread(platform.kill_tree)
            under_load += len(writer.acknowledged) > before
        await asyncio.to_thread(platform.start)
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writing
        lost = set(writer.acknowledged) - await everybody(platform)
        assert lost == set()
        return len(writer.acknowledged), under_load
    finally:
        writing.cancel()
        await asyncio.to_thread(platform.stop)


async def until_written(writer: Writer, count: int, platform: Platform) -> None:
    async with asyncio.timeout(60):
        while len(writer.acknowledged) < count:
            assert platform.process
            assert platform.process.poll() is None, platform.errors()
            await asyncio.sleep(0.02)


async def test_a_killed_platform_comes_back_with_everything_it_acknowledged(data_dir: pathlib.Path) -> None:
    """Once while it starts, once under load; fifty times in `make soak`."""
    written, under_load = await campaign(data_dir, rounds=2, seed=1)
    assert written > 0
    assert under_load >= 1


@pytest.mark.soak
async def test_fifty_kills_lose_nothing(data_dir: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    written, under_load = await campaign(data_dir, rounds=50, seed=random.randrange(10**6))
    with capsys.disabled():
        print(f"\n50 kills, {under_load} of them under load: {written} acknowledged writes, 0 lost")
    assert under_load >= 25  # one that was to die while starting may have been quicker


async def test_only_the_supervisor_killed_leaves_nothing_running_and_the_next_start_works(
    data_dir: pathlib.Path,
) -> None:
    port = free_port()
    platform = Platform(data_dir, CODEHUB_PORT=str(port)).start()
    children = platform.children()
    assert platform.process
    platform.process.kill()
    platform.process.wait()
    # At once, while the orphans may still be on their way out.
    platform.start()
    try:
        assert not set(children.values()) & set(platform.children().values())
        async with asyncio.timeout(10):
            while any(_alive(pid) for pid in children.values()):
                await asyncio.sleep(0.05)
    finally:
        platform.stop()


def _alive(pid: int) -> bool:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"
