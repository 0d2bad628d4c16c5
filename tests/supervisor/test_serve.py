"""`codehub serve` as a person runs it: comes up, logs in, stops in order, survives what dies under it."""

import asyncio
import json
import os
import pathlib
import resource
import signal
import socket
import stat
import sys
from collections.abc import Iterator

import pytest

from codehub import invocation
from tests.places import a_place
from tests.platform import ADMIN_TOKEN, Platform, codehub, descendants, running


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    """One for all tests that leave it as they found it; those that end its processes come last."""
    with a_place() as folder, running(folder / "data") as started:
        yield started


async def leads(platform: Platform) -> str:
    """Wait until its coordinator does; the metrics that say so."""
    async with asyncio.timeout(60), platform.client() as client:
        while True:
            async with client.get("/metrics") as answer:
                text = await answer.text()
            if "codehub_coordinator_leading 1.0" in text:
                return text
            await asyncio.sleep(0.1)


FEW = 1024  # open files, as most systems begin with


def few_open_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def open_files(platform: Platform, name: str) -> tuple[int, int]:
    """Those it may have now, and those it could allow itself."""
    lines = pathlib.Path(f"/proc/{platform.children()[name]}/limits").read_text().splitlines()
    soft, hard = next(line for line in lines if line.startswith("Max open files")).split()[3:5]
    return int(soft), int(hard)


async def test_the_first_start_prints_a_link_that_logs_in_once(data_dir: pathlib.Path) -> None:
    platform = Platform(data_dir, first_start=True)
    platform.on_a_terminal = True
    try:
        unused = platform.start().printed_link()
        assert unused
        _servers_are_reachable_for_their_own_account_alone(platform, data_dir)
        platform.stop()
        platform.before = few_open_files
        link = platform.start().printed_link()
        assert open_files(platform, "coordinator")[0] == FEW  # what it starts is to have what it would have without us
        for role in ("api", "proxy"):
            soft, hard = open_files(platform, role)
            assert soft == hard
        assert link  # nobody has logged in: a new one, and the old one is dead
        assert (await platform.wait_for("/readyz", 200))["ready"] is True
        async with platform.client(token=None) as client:
            async with client.get("/api/v1/me") as answer:
                assert answer.status == 401
            async with client.get(f"/login/{unused.rsplit('/', 1)[1]}") as answer:
                assert answer.status == 410
            async with client.get(link) as answer:  # one click from being logged in
                assert 'method="post"' in await answer.text()
            async with client.post(link) as answer:
                assert answer.status == 200
            async with client.get("/api/v1/me") as answer:
                assert (await answer.json())["name"] == "admin"
        async with platform.client(token=None) as another, another.get(link) as answer:
            assert answer.status == 410
        assert platform.stop() == 0
        platform.start()
        assert platform.printed_link() is None  # somebody has logged in: no second way in is printed
    finally:
        platform.stop()


async def test_what_is_kept_of_the_output_has_no_way_in_and_says_how_to_get_one(data_dir: pathlib.Path) -> None:
    with running(data_dir) as platform:
        assert "/login/" not in platform.output() + platform.errors()
        environ = {"PATH": os.environ["PATH"], "CODEHUB_DATA_DIR": str(data_dir)}
        typed = invocation.find(pathlib.Path(sys.executable), pathlib.Path.cwd(), environ)
        assert f"Run, on this machine: {typed} user login-link admin\n" in platform.output()
        link = platform.login_link()  # in another terminal, while it runs
        platform.stop()
        platform.start()
        assert "/login/" not in platform.output() + platform.errors()
        async with platform.client(token=None) as client:
            async with client.post(f"/login/{link.rpartition('/')[2]}") as answer:
                assert answer.status == 200  # that start made no other one in its place
            async with client.get("/api/v1/me") as answer:
                assert (await answer.json())["name"] == "admin"


def _servers_are_reachable_for_their_own_account_alone(platform: Platform, data_dir: pathlib.Path) -> None:
    for path in ("postgres", "redis", "run/pg", "run/redis", "secrets"):
        assert stat.S_IMODE((data_dir / path).stat().st_mode) == 0o700, path
    for pid in platform.children().values():
        opened = _listening_tcp_ports(pid)
        assert opened <= {int(platform.url.rsplit(":", 1)[1])}, f"process {pid} listens on {opened}"


async def test_the_log_of_a_real_request_has_its_id_and_none_of_its_secrets(platform: Platform) -> None:
    link = platform.login_link()
    async with platform.client(None) as browser:
        async with browser.post(link) as answer:
            assert answer.status == 200
        async with browser.get("/api/v1/me") as answer:
            request_id = answer.headers["x-request-id"]
        cookie = next(iter(browser.cookie_jar)).value
    async with platform.client() as admin, admin.post("/api/v1/users/admin/tokens") as answer:
        token = (await answer.json())["token"]
    async with platform.client(token) as program:
        async with program.get(f"/api/v1/me?token={token}") as answer:
            assert answer.status == 200
        async with program.get(f"/login/{token}", headers={"Cookie": f"codehub={cookie}"}) as answer:
            assert answer.status in {303, 200, 410}
    await platform.wait_for("/readyz", 200)
    written = platform.errors()
    found = [line for line in map(json.loads, written.splitlines()) if line.get("request_id") == request_id]
    assert [(line["event"], line["path"], line["status"], line["role"]) for line in found] == [
        ("Request", "/api/v1/me", 200, "api")
    ]
    for secret in (
        link.rpartition("/")[2],
        cookie,
        cookie.rpartition(".")[2],
        token,
        token.split("_", 2)[2],
        ADMIN_TOKEN,
    ):
        assert secret not in written


async def test_a_second_instance_on_the_same_directory_is_refused(platform: Platform) -> None:
    second = codehub("serve", CODEHUB_DATA_DIR=str(platform.data_dir))
    assert second.returncode == 1
    assert second.stderr.splitlines()[-1].startswith("codehub: another CodeHub (process ")
    await platform.wait_for("/readyz", 200)


async def test_it_answers_on_both_loopbacks(platform: Platform) -> None:
    """A browser may try either for a name like `id.localhost`: whoever had the other would get people's passes."""
    port = platform.url.rpartition(":")[2]
    async with platform.client() as client:
        for host in ("127.0.0.1", "[::1]"):
            async with client.get(f"http://{host}:{port}/api/v1/me") as answer:
                assert (await answer.json())["name"] == "admin"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_taken_port_is_one_clear_line(data_dir: pathlib.Path, host: str) -> None:
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
        port = taken.getsockname()[1]
        result = codehub("serve", CODEHUB_DATA_DIR=str(data_dir), CODEHUB_PORT=str(port))
    shown = f"[{host}]" if ":" in host else host
    assert result.returncode == 1
    assert f"cannot listen on {shown}:{port}: Address already in use (process {os.getpid()}, " in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CODEHUB_DATABASE_URL", "postgresql://codehub:hunter2@127.0.0.1:9/x"),
        ("CODEHUB_REDIS_URL", "redis://:hunter2@127.0.0.1:9/0"),
        ("CODEHUB_PORT", "http"),
        ("CODEHUB_USER", "no-such-account"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(data_dir: pathlib.Path, name: str, value: str) -> None:
    if name == "CODEHUB_USER" and os.geteuid() != 0:
        name, value = "CODEHUB_HOST", "no-such-host.invalid"
    result = codehub("serve", CODEHUB_DATA_DIR=str(data_dir), **{name: value})
    assert result.returncode == 1
    complaint = [line for line in result.stderr.splitlines() if line.startswith("codehub: ")]
    assert len(complaint) == 1
    assert "Traceback" not in result.stderr
    assert "hunter2" not in result.stderr + result.stdout


def test_as_root_only_the_coordinator_keeps_its_rights(platform: Platform) -> None:
    ours = os.geteuid()
    owners = {name: pathlib.Path(f"/proc/{pid}").stat().st_uid for name, pid in platform.children().items()}
    assert owners["coordinator"] == ours
    others = {uid for name, uid in owners.items() if name != "coordinator"}
    assert others == {ours} if ours != 0 else 0 not in others


async def test_a_data_directory_nobody_else_may_enter_works(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o700)
    deep = tmp_path / ("a-long-name-" * 8)  # also too long for the path of a socket
    deep.mkdir()
    with running(deep / "data", first_start=True) as platform:
        assert (await platform.wait_for("/readyz", 200))["ready"] is True


@pytest.mark.parametrize(
    ("login", "expected"), [(f"Authorization: Bearer {ADMIN_TOKEN}\r\n", b" 201 "), ("", b" 401 ")]
)
async def test_given_servers_are_used_and_a_stop_lets_a_request_under_way_finish(
    data_dir: pathlib.Path, database_url: str, redis_url: str, login: str, expected: bytes
) -> None:
    with running(data_dir, CODEHUB_DATABASE_URL=database_url, CODEHUB_REDIS_URL=redis_url) as platform:
        assert set(platform.children()) == {"proxy", "api", "coordinator"}
        assert not (data_dir / "postgres").exists()
        host, port = platform.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = b'{"name": "mina", "role": "learner"}'
        head = f"POST /api/v1/users HTTP/1.1\r\nHost: localhost\r\n{login}"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body[:10])
        await writer.drain()
        await asyncio.sleep(0.5)
        assert platform.process
        platform.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(1.5)  # the API takes no new connections any more
        writer.write(body[10:])
        status = await asyncio.wait_for(reader.readline(), 10)
        assert expected in status
        writer.close()
        assert await asyncio.to_thread(platform.stop) == 0


async def test_metrics_of_all_processes_are_in_one_place(platform: Platform) -> None:
    text = await leads(platform)
    assert 'codehub_loop_ticks_total{loop="housekeeping",result="ok"}' in text


async def test_loops_are_shown_to_an_admin(platform: Platform) -> None:
    async with asyncio.timeout(60), platform.client() as client:
        while True:
            async with client.get("/api/v1/admin/loops") as answer:
                assert answer.status == 200
                shown = await answer.json()
            if shown["loops"] and all(loop["runs"] for loop in shown["loops"]):
                break
            await asyncio.sleep(0.2)
    assert shown["leader"]
    assert {loop["name"] for loop in shown["loops"]} >= {"controller", "housekeeping", "disk"}
    assert {loop["last_error"] for loop in shown["loops"]} == {None}


@pytest.mark.parametrize("name", ["postgres", "redis"])
async def test_a_server_that_goes_away_and_comes_back_is_survived(platform: Platform, name: str) -> None:
    await leads(platform)
    others = {k: v for k, v in platform.children().items() if k != name}
    server = [platform.children()[name], *descendants(platform.children()[name])]
    for pid in server:
        os.kill(pid, signal.SIGSTOP)
    body = await platform.wait_for("/readyz", 503)
    assert body["checks"]["database" if name == "postgres" else "redis"] != "ok"
    async with platform.client() as client, client.get("/api/v1/users/admin") as answer:
        assert answer.status == (503 if name == "postgres" else 200)  # answers, and does not hang
    for pid in server:
        os.kill(pid, signal.SIGKILL)
    await platform.wait_for("/readyz", 200)
    assert {k: v for k, v in platform.children().items() if k != name} == others  # no process had to exit


async def test_everything_that_dies_is_started_again(platform: Platform) -> None:
    for name in ("proxy", "api", "coordinator", "redis", "postgres"):
        before = platform.children()[name]
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(30):
            while platform.children().get(name, before) == before:
                await asyncio.sleep(0.05)
        await platform.wait_for("/readyz", 200)
    assert platform.process
    assert platform.process.poll() is None


def _listening_tcp_ports(pid: int) -> set[int]:
    """Ports on which this very process has a listening socket."""
    inodes = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        target = str(fd.readlink())
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports
