"""Two of each role, each on its own data directory: they work together, go on when one dies, and trust no stranger."""

import asyncio
import io
import json
import ssl
import tarfile
from collections.abc import AsyncIterator

import aiohttp
import asyncpg
import pytest

from codehub import peers
from codehub.runtimes import records
from codehub.runtimes.layout import Layout
from tests.places import a_place
from tests.platform import ADMIN_TOKEN
from tests.roles_apart import SECONDS, Apart, Role, through

LEADER = "SELECT holder, status FROM system_locks WHERE name = 'coordinator' AND expires_at > clock_timestamp()"


@pytest.fixture
async def apart(database_url: str, redis_url: str) -> AsyncIterator[Apart]:
    with a_place() as folder:
        platform = Apart(folder, database_url, redis_url)
        try:
            yield platform
        finally:
            platform.end()
            layout = Layout(platform.machine)
            for found in [records.read(layout.of(id_)) for id_ in records.read_all(layout)]:
                while found and (found.alive or found.shepherd.alive()):
                    found.first.signal(9)
                    await asyncio.sleep(0.01)


async def leading(database_url: str, than: int = 0) -> int:
    """The pid of who leads and can be reached, once it is another one."""
    connection = await asyncpg.connect(database_url)
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                row = await connection.fetchrow(LEADER)
                if row and json.loads(row["status"]).get("doors"):
                    pid = int(row["holder"].rsplit("-", 2)[1])
                    if pid != than:
                        return pid
                await asyncio.sleep(0.05)
    finally:
        await connection.close()


async def running(client: aiohttp.ClientSession) -> str:
    async with client.post("/api/v1/workspaces", json={"name": "lab", "template": "terminal"}) as answer:
        assert answer.status == 201, await answer.text()
        id_: str = (await answer.json())["id"]
    path, said = f"/api/v1/workspaces/{id_}", {"phase": ""}
    try:
        async with asyncio.timeout(SECONDS):
            while said["phase"] not in {"RUNNING", "ERROR"}:
                async with client.patch(
                    path, json={"desired_state": "RUNNING"}
                ) as answer:  # again while it is being made
                    assert answer.status in {200, 202, 409}, await answer.text()
                async with client.get(path) as answer:
                    said = await answer.json()
                await asyncio.sleep(0.2)
    except TimeoutError:
        pass
    assert said["phase"] == "RUNNING", str(said)
    return id_


async def until(client: aiohttp.ClientSession, path: str) -> bytes:
    """Something is answered."""
    last: tuple[int, bytes] = (0, b"")
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                async with client.get(path) as answer:
                    last = answer.status, await answer.read()
                if last[0] == 200 and last[1]:
                    return last[1]
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"{path}: {last}") from None


async def home_of(client: aiohttp.ClientSession, id_: str) -> list[str]:
    packed = await until(client, f"/api/v1/workspaces/{id_}/download")
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        return archive.getnames()


async def test_roles_that_share_no_directory_work_together_and_any_of_them_may_die(
    apart: Apart, database_url: str
) -> None:
    await apart.start_all()
    first, second = apart.of("proxy")
    async with through(first) as one, through(second) as other:
        id_ = await running(one)
        await until(other, f"/w/{id_}/")
        assert await home_of(one, id_)
        with (Layout(apart.machine).of(id_).log / "current").open("a") as log:
            log.write("said by the IDE\n")
        assert b"said by the IDE" in await until(other, f"/api/v1/workspaces/{id_}/logs")
        async with one.post("/api/v1/nothing") as answer:
            assert answer.status == 404

        leader = await leading(database_url)
        next(role for role in apart.of("coordinator") if role.process.pid == leader).kill()
        assert await leading(database_url, than=leader) != leader
        assert await home_of(other, id_)  # from the new leader
        await until(one, f"/w/{id_}/")  # which is untouched

        gone, stays = apart.of("api")
        gone.kill()
        for _ in range(10):
            async with one.get("/api/v1/workspaces") as answer:
                assert answer.status == 200
        first.kill()
        await until(other, f"/w/{id_}/")
        await leaves_in_order(stays, other)


async def leaves_in_order(api: Role, client: aiohttp.ClientSession) -> None:
    """It says that it goes, answers until then, and ends by itself."""
    api.terminate()
    async with asyncio.timeout(SECONDS):
        while (await api.health())[0] != 503:
            await asyncio.sleep(0.02)
    assert (await api.health("/healthz"))[0] == 200
    async with client.get("/api/v1/workspaces") as answer:
        assert answer.status == 200
    assert await api.stopped() == 0
    async with client.get("/api/v1/workspaces") as answer:
        assert answer.status in {502, 503, 504}


async def test_a_stranger_who_reaches_the_ports_between_roles_gets_nothing(apart: Apart, database_url: str) -> None:
    api, coordinator = await apart.start("api").ready(), await apart.start("coordinator").ready()
    await leading(database_url)
    forged = peers.of("a-key-that-a-stranger-made-up").client
    forged.check_hostname, forged.verify_mode = False, ssl.CERT_NONE
    nothing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nothing.check_hostname, nothing.verify_mode = False, ssl.CERT_NONE
    asked = (
        b"GET /api/v1/users HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1\r\nConnection: close\r\n"
        b"codehub-operator: root\r\nAuthorization: Bearer " + ADMIN_TOKEN.encode() + b"\r\n\r\n"
    )
    order = b'logs\n{"workspace_id": "lab", "tail_bytes": 10, "follow": false}\n'
    for port, words in ((api.peer_port, asked), (coordinator.peer_port, order)):
        for context in (None, nothing, forged):
            assert await answer_of(port, words, context) == b""
    assert (await answer_of(api.peer_port, asked, peers.of("a-signing-key-for-tests").client)).startswith(
        b"HTTP/1.1 200"
    )


async def answer_of(port: int, words: bytes, context: ssl.SSLContext | None) -> bytes:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except (OSError, ssl.SSLError):
        return b""
    try:
        writer.write(words)
        return await asyncio.wait_for(reader.read(), SECONDS)
    except (OSError, ssl.SSLError):
        return b""
    finally:
        writer.transport.abort()


async def test_a_port_that_was_ours_and_is_anothers_now_is_told_nothing(apart: Apart) -> None:
    """As when a workspace gets the address of a pod that has just ended."""
    heard = asyncio.Event()

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1):
            heard.set()
        writer.close()

    async with await asyncio.start_server(
        pretend, "127.0.0.1", 0, ssl=peers.of("a-key-that-a-stranger-made-up").server
    ) as impostor:
        port = impostor.sockets[0].getsockname()[1]
        proxy = await apart.start("proxy", CODEHUB_API_URL=f"https://127.0.0.1:{port}").ready()
        async with through(proxy) as client, client.get("/api/v1/workspaces") as answer:
            assert answer.status in {502, 503}
    assert not heard.is_set()
