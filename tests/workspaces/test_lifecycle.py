"""Workspaces on the real platform: real processes, real files, through the API as a program would."""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from codehub.runtimes.layout import Layout
from tests.places import a_place
from tests.platform import Platform, codehub, running
from tests.workspaces.ides import write_templates


@contextlib.contextmanager
def lab(**more: str) -> Iterator[Platform]:
    """A platform with the small IDEs, which looks often; nothing is left of its workspaces afterwards."""
    with a_place() as folder:
        environment: dict[str, Any] = {
            "CODEHUB_TEMPLATES_DIR": str(write_templates(folder / "templates")),
            "CODEHUB_MAX_RUNNING_PER_USER": "0",
            "CODEHUB_STOP_GRACE_SECONDS": "1",
            "COORDINATOR_IDLE_INTERVAL": "1",
            "COORDINATOR_ACTIVE_INTERVAL": "0.2",
            **more,
        }
        with running(folder / "data", **environment) as started:
            yield started
            _purge_everything(started)


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with lab() as started:
        yield started


def _purge_everything(platform: Platform) -> None:
    """Workspaces outlive the platform: end them before it goes."""

    async def purge() -> None:
        async with platform.client() as client:
            page = await api(client, "GET", "/api/v1/workspaces?limit=200")
            for w in page["items"]:
                with contextlib.suppress(AssertionError, TimeoutError):
                    await settled(client, w["id"])
                    await api(client, "DELETE", f"/api/v1/workspaces/{w['id']}?purge=true", status=202)
                    await until(client, w["id"], "DELETED")

    asyncio.run(purge())


async def api(client: aiohttp.ClientSession, method: str, path: str, *, status: int | None = None, **json_: Any) -> Any:
    async with client.request(method, path, json=json_ or None) as answer:
        body = await answer.json()
        assert answer.status == status or (status is None and answer.status < 300), body
        return body


async def create(client: aiohttp.ClientSession, template: str = "tiny") -> str:
    made = await api(client, "POST", "/api/v1/workspaces", status=201, name="lab", template=template)
    id_: str = made["id"]
    return id_


async def until(client: aiohttp.ClientSession, id_: str, phase: str, seconds: float = 60) -> dict[str, Any]:
    async with asyncio.timeout(seconds):
        while True:
            w: dict[str, Any] = await api(client, "GET", f"/api/v1/workspaces/{id_}")
            if w["phase"] == phase and w["operation"] == "NONE":
                return w
            await asyncio.sleep(0.05)


async def settled(client: aiohttp.ClientSession, id_: str) -> None:
    async with asyncio.timeout(60):
        while (await api(client, "GET", f"/api/v1/workspaces/{id_}"))["operation"] != "NONE":
            await asyncio.sleep(0.05)


async def want(client: aiohttp.ClientSession, id_: str, state: str, phase: str | None = None) -> dict[str, Any]:
    await api(client, "PATCH", f"/api/v1/workspaces/{id_}", status=202, desired_state=state)
    return await until(client, id_, phase or state)


@contextlib.asynccontextmanager
async def visiting(platform: Platform) -> AsyncIterator[aiohttp.ClientSession]:
    async with platform.client() as client:
        yield client


def first_pid(platform: Platform, id_: str) -> int:
    """The process whose end is the end of everything in the workspace."""
    record = json.loads(Layout(platform.data_dir).of(id_).record.read_text())
    pid: int = record["first"]["pid"]
    return pid


async def ask_ide(platform: Platform, id_: str) -> str:
    """As the proxy would: by its socket."""
    reader, writer = await asyncio.open_unix_connection(str(Layout(platform.data_dir).of(id_).socket))
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    return answer.rpartition("\r\n\r\n")[2]


async def test_it_is_created_sleeps_wakes_is_stored_away_comes_back_and_is_deleted(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        await want(client, id_, "STANDBY")
        await want(client, id_, "RUNNING")
        await want(client, id_, "ARCHIVED")
        await want(client, id_, "STANDBY")
        await api(client, "DELETE", f"/api/v1/workspaces/{id_}", status=202)
        w = await until(client, id_, "DELETED")
        assert w["archive_key"].startswith(f"{id_}/")
        history = await api(client, "GET", f"/api/v1/workspaces/{id_}/history?limit=200")
        done = [e["event"] for e in reversed(history["items"]) if e["actor"] == "controller" and " " not in e["event"]]
        assert done == [
            *("PROVISIONING", "STARTING", "STOPPING", "STARTING", "STOPPING", "ARCHIVING", "RESTORING"),
            *("ARCHIVING", "DELETING"),
        ]


async def test_events_tell_of_every_phase_and_resume_where_they_stopped(platform: Platform) -> None:
    async with visiting(platform) as client:
        seen: list[tuple[str, str]] = []

        async def listen(last: str | None, until_phase: str) -> None:
            headers = {"Last-Event-ID": last} if last else {}
            async with client.get("/api/v1/events", headers=headers) as stream:
                async for line in stream.content:
                    if line.startswith(b"id: "):
                        number = line[4:].strip().decode()
                    if line.startswith(b'data: {"id'):
                        w = json.loads(line[6:])
                        seen.append((number, w["phase"]))
                        if w["phase"] == until_phase and w["operation"] == "NONE":
                            return

        listening = asyncio.create_task(listen(None, "RUNNING"))
        await asyncio.sleep(0.5)
        id_ = await create(client)
        await asyncio.wait_for(listening, 30)
        assert {phase for _, phase in seen} >= {"PENDING", "STANDBY", "RUNNING"} - {"PENDING"}
        last = seen[-1][0]
        await want(client, id_, "STANDBY")  # while nobody listens
        seen.clear()
        await asyncio.wait_for(listen(last, "STANDBY"), 30)
        assert seen[-1][1] == "STANDBY"


async def test_a_restart_and_a_kill_of_the_platform_leave_the_very_same_process_running(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        pid, words = first_pid(platform, id_), await ask_ide(platform, id_)
    platform.kill_tree()
    assert (await ask_ide(platform, id_)) == words
    platform.start()
    assert await asyncio.to_thread(platform.stop) == 0
    platform.start()
    async with visiting(platform) as client:
        await asyncio.sleep(1.5)  # a few looks of the controller
        w = await until(client, id_, "RUNNING")
        assert first_pid(platform, id_) == pid
        assert (await ask_ide(platform, id_)) == words
        assert w["error_info"] is None
        await want(client, id_, "STANDBY")
        assert not pathlib.Path(f"/proc/{pid}").exists()


async def test_an_ide_that_is_killed_comes_back(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        before = first_pid(platform, id_)
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(OSError):
                    if first_pid(platform, id_) != before:
                        break
                await asyncio.sleep(0.1)
        await until(client, id_, "RUNNING")
        history = await api(client, "GET", f"/api/v1/workspaces/{id_}/history")
        assert any(e["event"] == "IDE ended" for e in history["items"])


async def test_an_ide_that_exits_at_once_ends_in_error_with_its_own_last_words(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client, "exits")
        w = await until(client, id_, "ERROR")
        assert w["observed_status"] == "STANDBY"
        assert w["error_info"]["reason"] == "RetryExceeded"
        assert "no module named numpy" in w["error_info"]["last_error"]
        assert "exit code 3" in w["error_info"]["last_error"]


async def test_an_ide_that_never_answers_ends_in_a_timeout_and_nothing_of_it_runs(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client, "hangs")
        w = await until(client, id_, "ERROR")
        assert w["error_info"]["reason"] == "Timeout"
        assert "thinking" in w["error_info"]["last_error"]  # what it said, while nobody got an answer
        assert not Layout(platform.data_dir).of(id_).record.exists()
        await api(client, "PATCH", f"/api/v1/workspaces/{id_}", status=409, desired_state="RUNNING")
        await api(client, "DELETE", f"/api/v1/workspaces/{id_}", status=202)
        await until(client, id_, "DELETED")
        back = await api(client, "POST", f"/api/v1/workspaces/{id_}/undelete", status=202)
        assert back["desired_state"] == "STANDBY"  # its volume was kept in the trash
        await until(client, id_, "STANDBY")


async def test_a_program_that_is_not_there_is_refused_before_anything_is_made(platform: Platform) -> None:
    async with visiting(platform) as client:
        body = await api(client, "POST", "/api/v1/workspaces", status=400, name="x", template="missing")
        assert "no-such-ide-anywhere is not installed" in body["detail"]


async def test_one_that_ignores_the_request_to_stop_is_stopped_all_the_same(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client, "stubborn")
        await until(client, id_, "RUNNING")
        pid = first_pid(platform, id_)
        await want(client, id_, "STANDBY")
        assert not pathlib.Path(f"/proc/{pid}").exists()


async def test_files_survive_sleeping_storing_away_and_coming_back(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        home = Layout(platform.data_dir).of(id_).home
        (home / "notes.txt").write_text("42\n")
        owner = home.stat().st_uid
        os.chown(home / "notes.txt", owner, home.stat().st_gid)
        await want(client, id_, "ARCHIVED")
        assert not home.exists()
        await want(client, id_, "RUNNING")
        assert (home / "notes.txt").read_text() == "42\n"
        assert (home / "notes.txt").stat().st_uid == home.stat().st_uid


def test_the_command_line_does_the_same(platform: Platform) -> None:
    env = {"CODEHUB_DATA_DIR": str(platform.data_dir)}
    made = codehub("workspace", "create", "from-the-shell", "--owner", "admin", "--template", "tiny", **env)
    assert made.returncode == 0, made.stderr
    id_ = made.stdout.strip().rpartition("/w/")[2].strip("/")
    for words in (["stop", id_], ["start", "from-the-shell"], ["archive", id_], ["rename", id_, "another-name"]):
        done = codehub("workspace", *words, **env)
        assert done.returncode == 0, done.stderr
    listed = next(line for line in codehub("workspace", "ls", **env).stdout.splitlines() if id_ in line)
    assert "ARCHIVED" in listed
    assert "another-name" in listed
    history = codehub("workspace", "history", id_, **env).stdout
    for operation in ("PROVISIONING", "STARTING", "STOPPING", "ARCHIVING"):
        assert operation in history
    assert codehub("workspace", "open", id_, **env).stdout.strip() == f"{platform.url}/w/{id_}/"
    assert codehub("workspace", "rm", id_, **env).returncode == 0
    missing = codehub("workspace", "start", "no-such-thing", **env)
    assert missing.returncode == 1
    assert missing.stderr.strip() == "codehub: there is no workspace no-such-thing"


async def test_jupyterlab_starts_on_a_machine_with_nothing_but_this_package(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client, "jupyterlab")
        await until(client, id_, "RUNNING", 90)
        await api(client, "DELETE", f"/api/v1/workspaces/{id_}?purge=true", status=202)
        await until(client, id_, "DELETED")
