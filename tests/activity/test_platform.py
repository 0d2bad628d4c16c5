"""The real platform: what sleeps says why, and what holds itself awake from inside stays awake."""

import asyncio
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from codehub.clock import SystemClock
from codehub.runtimes.base import ExecResult
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import RuntimeConfig
from tests.places import a_place
from tests.platform import Platform, codehub, running

ALONE = """
title = "A terminal without a network"
ready = "/healthz"
[process]
command = ["codehub-terminal", "--socket={socket}", "--base={base_path}"]
network = "none"
"""
# What the IDE was given at its start is in its own environment, which only its user can read.
WITH_ITS_ENVIRONMENT = """
for pid in $(ls /proc | grep -E '^[0-9]+$'); do
    found=$(tr '\\0' '\\n' < /proc/$pid/environ 2>/dev/null | grep ^CODEHUB_HOLD) && export $found && break
done
"""


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with a_place() as folder:
        (folder / "templates").mkdir()
        (folder / "templates" / "alone.toml").write_text(ALONE)
        (folder / "templates" / "computes.toml").write_text("busy_cpus = 0.05\n" + ALONE)
        environment = {
            "CODEHUB_TEMPLATES_DIR": str(folder / "templates"),
            "CODEHUB_MAX_RUNNING_PER_USER": "0",
            "CODEHUB_MAX_KEEP_AWAKE_SECONDS": "7200",
            "TTL_STANDBY_SECONDS": "3",
            "ACTIVITY_FLUSH_INTERVAL": "0.2",
            "COORDINATOR_TTL_INTERVAL": "0.3",
            "COORDINATOR_ACTIVE_INTERVAL": "0.2",
        }
        with running(folder / "data", first_start=False, **environment) as started:
            yield started


async def until(client: aiohttp.ClientSession, id_: str, phase: str) -> dict[str, Any]:
    async with asyncio.timeout(90):
        while True:
            async with client.get(f"/api/v1/workspaces/{id_}") as answer:
                w: dict[str, Any] = await answer.json()
            if w["phase"] == phase and w["operation"] == "NONE":
                return w
            await asyncio.sleep(0.05)


async def why(client: aiohttp.ClientSession, id_: str) -> dict[str, Any]:
    async with client.get(f"/api/v1/workspaces/{id_}/activity") as answer:
        assert answer.status == 200
        found: dict[str, Any] = await answer.json()
    return found


async def create(client: aiohttp.ClientSession, **more: Any) -> str:
    async with client.post("/api/v1/workspaces", json={"name": "lab", "template": "alone", **more}) as answer:
        assert answer.status == 201, await answer.text()
        return str((await answer.json())["id"])


async def inside(platform: Platform, id_: str, command: str) -> ExecResult:
    runtime = ProcessRuntime(platform.data_dir, RuntimeConfig(), None, SystemClock())
    return await runtime.exec(id_, ["sh", "-c", WITH_ITS_ENVIRONMENT + command])


async def test_a_workspace_that_nobody_uses_sleeps_and_says_why(platform: Platform) -> None:
    async with platform.client() as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        await until(client, id_, "STANDBY")
        found = await why(client, id_)
        assert found["mode"] == "traffic"
        assert found["profile"] == "plain"
        assert found["sleeps_at"] is None
        assert "put to sleep at" in found["reason"]
        assert "no activity since" in found["reason"]
        async with client.get("/api/v1/workspaces/nobodys/activity") as answer:
            assert answer.status == 404
    said = codehub("workspace", "why", id_, CODEHUB_DATA_DIR=str(platform.data_dir))
    assert "put to sleep at" in said.stdout, said.stderr


async def test_an_operator_asks_what_another_time_would_have_done(platform: Platform) -> None:
    async with platform.client() as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        await until(client, id_, "STANDBY")
        async with client.get("/api/v1/admin/ttl/what-if", params={"standby_seconds": 0}) as answer:
            assert answer.status == 200, await answer.text()
            never = await answer.json()
        assert never["would"]["sleeps"]["high"] == 0
        assert never["would"]["hours"]["low"] >= never["did"]["hours"]["low"]
        assert never["did"]["sleeps"]["low"] >= 1
        for wrong in ({"standby_seconds": -1}, {"standby_seconds": 60, "days": 15}, {}):
            async with client.get("/api/v1/admin/ttl/what-if", params=wrong) as answer:
                assert answer.status == 400
        async with client.get("/api/v1/admin/samples", params={"limit": 1}) as answer:
            assert (await answer.json())["items"], "the leader takes one at its start"
    where = {"CODEHUB_DATA_DIR": str(platform.data_dir)}
    said = codehub("ttl", "what-if", "--standby", "15m", "--archive", "2h", "--days", "1", **where)
    assert "Put to sleep" in said.stdout, said.stderr
    assert "people would have done the same" in said.stdout
    asked = json.loads(codehub("ttl", "what-if", "--standby", "15m", "--json", **where).stdout)
    assert asked["standby_seconds"] == 900
    refused = codehub("ttl", "what-if", "--standby", "soon", **where)
    assert refused.returncode == 1
    assert "a time like 15m" in refused.stderr


async def test_one_that_computes_stays_awake_and_its_history_says_so_once(platform: Platform) -> None:
    async with platform.client() as client:
        id_ = await create(client, template="computes", standby_ttl_seconds=6)
        await until(client, id_, "RUNNING")
        begun = await inside(platform, id_, "setsid timeout 60 sh -c 'while :; do :; done' >/dev/null 2>&1 &")
        assert begun.exit_code == 0, begun.output
        async with asyncio.timeout(50):
            while sum(line["seconds"] for line in await kept_awake(client, id_)) < 12:  # looked at more than once
                await asyncio.sleep(0.2)
        assert [line["work"] for line in await kept_awake(client, id_)] == ["processes"]
        async with client.patch(f"/api/v1/workspaces/{id_}", json={"desired_state": "STANDBY"}) as answer:
            assert answer.status == 202
        await until(client, id_, "STANDBY")


async def kept_awake(client: aiohttp.ClientSession, id_: str) -> list[dict[str, Any]]:
    async with client.get(f"/api/v1/workspaces/{id_}/history") as answer:
        return [line["data"] for line in (await answer.json())["items"] if line["code"] == "kept_awake"]


async def test_one_that_never_sleeps_says_so(platform: Platform) -> None:
    async with platform.client() as client:
        id_ = await create(client, standby_ttl_seconds=0)
        w = await until(client, id_, "RUNNING")
        assert w["sleeps_at"] is None
        assert "never sleeps" in (await why(client, id_))["reason"]


async def test_a_workspace_without_a_network_can_hold_itself_awake(platform: Platform) -> None:
    async with platform.client() as client:
        id_ = await create(client, standby_ttl_seconds=30)
        await until(client, id_, "RUNNING")
        done = await inside(platform, id_, "codehub hold 1h --reason training")
        assert done.exit_code == 0, done.output
        assert b"Stays awake until" in done.output
        w = await until(client, id_, "RUNNING")
        assert w["keep_awake_reason"] == "training"
        assert w["sleeps_at"] == w["keep_awake_until"]
        assert "kept awake until" in (await why(client, id_))["reason"]
        assert "(training)" in (await why(client, id_))["reason"]
        bounded = await inside(platform, id_, "codehub hold 90d")
        assert bounded.exit_code == 0, bounded.output
        after = await until(client, id_, "RUNNING")
        assert w["keep_awake_until"] < after["keep_awake_until"]
        wish = {"keep_awake_until": after["keep_awake_until"]}
        async with client.patch(f"/api/v1/workspaces/{id_}", json=wish) as answer:  # a person's, which has no reason
            assert (await answer.json())["keep_awake_reason"] is None
        async with client.get(f"/api/v1/workspaces/{id_}/history") as answer:
            events = [e["event"] for e in (await answer.json())["items"]]
        assert events.count("hold") == 1  # the second only went on


async def test_a_command_is_held_awake_for_as_long_as_it_runs(platform: Platform) -> None:
    async with platform.client() as client:
        id_ = await create(client, standby_ttl_seconds=30)
        before = await until(client, id_, "RUNNING")
        done = await inside(platform, id_, "codehub hold --reason build -- sh -c 'echo hello; exit 7'")
        assert done.exit_code == 7
        assert b"hello" in done.output
        w = await until(client, id_, "RUNNING")
        assert before["keep_awake_until"] is None
        assert w["keep_awake_reason"] == "build"


async def test_the_token_is_good_for_nothing_else_and_for_nobody_else(platform: Platform) -> None:
    async with platform.client() as client:
        id_, other = await create(client, standby_ttl_seconds=30), await create(client, standby_ttl_seconds=30)
        await until(client, id_, "RUNNING")
        await until(client, other, "RUNNING")
        token = (await inside(platform, id_, "echo $CODEHUB_HOLD_TOKEN")).output.decode().split()[-1]
        assert token
        async with platform.client(token) as stranger, stranger.get("/api/v1/workspaces") as answer:
            assert answer.status == 401
        wrong = await inside(platform, other, f"CODEHUB_HOLD_TOKEN={token}x codehub hold 1h")
        assert wrong.exit_code == 1
        assert b"not good for" in wrong.output
        theirs = await inside(platform, other, f"CODEHUB_HOLD_TOKEN={token} codehub hold 1h")
        assert theirs.exit_code == 0  # whoever has it holds the workspace it belongs to, and no other
        assert (await until(client, other, "RUNNING"))["keep_awake_until"] is None
        assert (await until(client, id_, "RUNNING"))["keep_awake_until"] is not None
        assert token not in platform.errors()


FLOOD = """
import os, socket, sys, time
kept = []
for _ in range(600):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["CODEHUB_HOLD_SOCKET"])
    kept.append(s)
open("flooding", "w").close()
time.sleep(20)
"""


async def test_who_knocks_and_says_nothing_takes_neither_our_descriptors_nor_anothers_turn(platform: Platform) -> None:
    async with platform.client() as client:
        hostile, other = await create(client, standby_ttl_seconds=0), await create(client, standby_ttl_seconds=30)
        await until(client, hostile, "RUNNING")
        await until(client, other, "RUNNING")
        coordinator = pathlib.Path(f"/proc/{platform.children()['coordinator']}/fd")
        before = len(list(coordinator.iterdir()))
        waiting = "while ! test -e flooding; do sleep 0.1; done"
        await inside(platform, hostile, f"python3 -c '{FLOOD}' >/dev/null 2>&1 & {waiting}")
        assert len(list(coordinator.iterdir())) < before + 100
        if os.geteuid() == 0:  # workspaces have users of their own, and so each its share
            done = await inside(platform, other, "codehub hold 1h")
            assert done.exit_code == 0, done.output


async def test_somebody_deactivated_runs_nothing_however_hard_it_holds_itself_awake(platform: Platform) -> None:
    async with platform.client() as admin:
        async with admin.post("/api/v1/users", json={"name": "mina"}) as answer:
            assert answer.status == 201
        async with admin.post("/api/v1/users/mina/tokens") as answer:
            token = (await answer.json())["token"]
        async with platform.client(token) as mina:
            id_ = await create(mina, standby_ttl_seconds=0)
            await until(mina, id_, "RUNNING")
        held = await inside(platform, id_, "codehub hold 1h; (while :; do codehub hold 1h; done) >/dev/null 2>&1 &")
        assert held.exit_code == 0, held.output
        async with admin.patch("/api/v1/users/mina", json={"active": False}) as answer:
            assert answer.status == 200
        w = await until(admin, id_, "STANDBY")
        assert (w["desired_state"], w["keep_awake_until"]) == ("STANDBY", None)
        async with admin.get(f"/api/v1/workspaces/{id_}/history") as answer:
            assert "owner_deactivated" in [e["code"] for e in (await answer.json())["items"]]
        async with admin.patch(f"/api/v1/workspaces/{id_}", json={"desired_state": "RUNNING"}) as answer:
            assert (answer.status, (await answer.json())["code"]) == (409, "USER_DEACTIVATED")
        async with admin.patch("/api/v1/users/mina", json={"active": True}) as answer:
            assert answer.status == 200
        async with admin.patch(f"/api/v1/workspaces/{id_}", json={"desired_state": "RUNNING"}) as answer:
            assert answer.status == 202
        await until(admin, id_, "RUNNING")
