"""The programs that stand in a workspace's pod, without a cluster: `init.c` as the first process of a pid namespace,
and the door that asks it, over TLS.
"""

import asyncio
import contextlib
import pathlib
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Iterator

import pytest

from codehub.clock import SystemClock
from codehub.runtimes.base import Address, ExecResult, RuntimeFailureError
from codehub.runtimes.containers import door
from codehub.runtimes.containers.commands import Command, Init
from codehub.runtimes.kubernetes.asking import Asking
from codehub.system import doors

pytestmark = pytest.mark.cluster
SOURCE = pathlib.Path(door.__file__).with_name("init.c")
SECRET = "a key of the tests' own"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    built = tmp_path_factory.mktemp("init") / "init"
    compiler = shutil.which("gcc") or "cc"
    subprocess.run([compiler, "-static", "-Os", "-Wall", "-Wextra", "-Werror", "-o", built, SOURCE], check=True)
    return built


@contextlib.contextmanager
def started(program: pathlib.Path, folder: pathlib.Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    bounds = ["1000000", "0", "0", "0"]
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", str(program), str(folder), *bounds, *words]
    process = subprocess.Popen(command, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def run(init: Init, *words: str, contained: bool, seconds: float = 20, given: bytes = b"") -> ExecResult:
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield given

    return await init.run(Command(words, {"HOME": "/"}, "/", seconds, 1000, contained), pieces())


async def test_commands_run_and_nothing_of_a_contained_one_is_left(
    program: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    with started(program, tmp_path):
        init = Init(str(tmp_path))
        said = await run(init, "sh", "-c", "cat; pwd; exit 4", contained=True, given=b"given\n")
        assert said == ExecResult(4, b"given\n/\n")
        assert (await run(init, "no-such", contained=True)).exit_code == 127
        assert (await run(init, "/etc/passwd", contained=True)).exit_code == 126
        late = await run(init, "sh", "-c", "echo begun; setsid sleep 4242 & sleep 1000", contained=True, seconds=1)
        assert (late.timed_out, late.output) == (True, b"begun\n")
        assert subprocess.run(["pgrep", "-f", "^sleep 4242"], check=False).returncode == 1
        much = await run(init, "sh", "-c", "yes", contained=True)
        assert (len(much.output), much.timed_out, much.exit_code) == (1000, False, 141)


async def test_an_ide_that_ends_takes_everything_along(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    script = "sleep 4243 & echo first; while [ ! -e stop ]; do sleep 0.1; done; echo last; exit 3"
    with started(program, tmp_path, "sh", "-c", script) as process:
        init = Init(str(tmp_path))
        assert (await run(init, "pgrep", "-f", "^sleep 4243", contained=False)).exit_code == 0
        (tmp_path / "stop").touch()
        await init.ended()
        assert process.wait(30) == 0
    assert (tmp_path / "current").read_bytes() == b"first\nlast\n"
    assert subprocess.run(["pgrep", "-f", "^sleep 4243"], check=False).returncode == 1


async def test_an_ide_that_does_not_listen_is_ended(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with started(program, tmp_path, "sh", "-c", "trap '' TERM; echo on; while :; do sleep 1; done") as process:
        init = Init(str(tmp_path))
        while not (tmp_path / "current").exists() or b"on" not in (tmp_path / "current").read_bytes():
            await asyncio.sleep(0.05)
        for what in (b"t", b"k"):
            asking = asyncio.create_task(init.tell(what))
            await asyncio.wait({asking}, timeout=0.5)
            assert (process.poll() is None) or what == b"k"
            asking.cancel()
        process.wait(30)
    with started(program, tmp_path, "sh", "-c", "echo again") as process:  # as the cluster would start it again
        assert process.wait(30) == 0
    assert b"again" not in (tmp_path / "current").read_bytes()


@pytest.fixture
async def opened(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Asking, Address]]:
    keys = doors.Doors(SECRET)
    name = keys.new()
    certificate, key = keys.pair(name)
    (tmp_path / doors.CERTIFICATE).write_bytes(certificate)
    (tmp_path / doors.KEY).write_bytes(key)
    monkeypatch.setattr(door, "PAIR", tmp_path)
    volume = tmp_path / "home"
    volume.mkdir()
    serving = door.Door(door.Order(volume=str(volume)))
    server = await asyncio.start_server(serving.answer, "127.0.0.1", 0, ssl=doors.serving(tmp_path))
    yield Asking(keys, SystemClock()), Address(host="127.0.0.1", port=server.sockets[0].getsockname()[1], key=name)
    server.close()


async def test_a_job_is_done_behind_the_door(opened: tuple[Asking, Address], tmp_path: pathlib.Path) -> None:
    asking, address = opened
    (tmp_path / "home" / "file").write_text("x" * 10_000)
    request = {"do": "job", "order": {"job": "measure", "arguments": {}}}
    printed, outcome = await asking.ask(address, request, seconds=30)
    assert (int(printed.split()[0]) > 10_000, outcome["code"]) == (True, 0)


async def test_whoever_has_not_the_key_is_sent_away(opened: tuple[Asking, Address]) -> None:
    asking, address = opened
    request = {"do": "job", "order": {"job": "measure", "arguments": {}}}
    others = doors.Doors("a key of another platform")
    other = Address(host=address.host, port=address.port, key=others.new())
    with pytest.raises(RuntimeFailureError):
        await Asking(others, SystemClock()).ask(other, request, seconds=5)
    with pytest.raises(RuntimeFailureError):  # of this platform, and of another start
        await asking.ask(Address(host=address.host, port=address.port, key=asking.doors.new()), request, seconds=5)
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.check_hostname, bare.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=bare)
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        writer.write(b"\0\0\0\x02{}")
        await reader.readexactly(1)
