"""The table of a workspace's actions for teachers, on the real platform: what they may takes effect, all else does not.

kim teaches mina, lee teaches another class. Each row begins with mina's workspace as it says, running or asleep.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from codehub.policy.actions import Action
from tests.gate.lab import PAGE, ToThisMachine
from tests.platform import Platform
from tests.policy.test_table import CELLS, WHO
from tests.web.test_live import Stream
from tests.workspaces.test_keeping import members, write
from tests.workspaces.test_lifecycle import api, create, lab, settled, until, visiting

UNTIL = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
TEACHER, OTHER = list(WHO).index("teacher"), list(WHO).index("other teacher")
# What a teacher may not: the requests for it.
REFUSED: dict[Action, list[tuple[str, str, dict[str, Any] | None]]] = {
    Action.WORKSPACE_CHANGE: [("PATCH", "", {"name": "Mine"}), ("PATCH", "", {"standby_ttl_seconds": 60})],
    Action.WORKSPACE_SHARES: [("GET", "/shares", None)],
    Action.WORKSPACE_SHARE: [("POST", "/shares", {"user": "lee"}), ("DELETE", "/shares/lee", None)],
    Action.WORKSPACE_LEAVE: [("DELETE", "/shares/{me}", None)],
    Action.WORKSPACE_POINTS: [("GET", "/restore-points", None)],
    Action.WORKSPACE_RESTORE: [("POST", "/restore", {"archive_key": "home.tar.zst"})],
    Action.WORKSPACE_FETCH: [("POST", "/fetch", None)],
    Action.WORKSPACE_RECOVER: [("POST", "/recover", {})],
    Action.WORKSPACE_ARCHIVE: [("PATCH", "", {"desired_state": "ARCHIVED"})],
    Action.WORKSPACE_DELETE: [("DELETE", "", None), ("POST", "/undelete", None)],
    Action.WORKSPACE_PURGE: [("DELETE", "?purge=true", None)],
}
# What a teacher may, by programs, and how the workspace is when they do.
ALLOWED: dict[Action, tuple[str, list[tuple[str, str, dict[str, Any] | None]]]] = {
    Action.WORKSPACE_SEE: ("RUNNING", [("GET", "", None)]),
    Action.WORKSPACE_HISTORY: (
        "RUNNING",
        [("GET", "/history", None), ("GET", "/activity", None), ("GET", "/logs", None)],
    ),
    Action.WORKSPACE_START: ("STANDBY", [("PATCH", "", {"desired_state": "RUNNING"})]),
    Action.WORKSPACE_SLEEP: ("RUNNING", [("PATCH", "", {"desired_state": "STANDBY"})]),
    Action.WORKSPACE_KEEP_AWAKE: ("RUNNING", [("PATCH", "", {"keep_awake_until": UNTIL.isoformat()})]),
    Action.WORKSPACE_DOWNLOAD: ("RUNNING", [("GET", "/download", None)]),
}
BY_BROWSER = {Action.WORKSPACE_ENTER, Action.WORKSPACE_WORK, Action.WORKSPACE_WAKE}


@dataclass(frozen=True)
class School:
    platform: Platform
    admin: aiohttp.ClientSession
    mina: aiohttp.ClientSession
    kim: aiohttp.ClientSession
    lee: aiohttp.ClientSession
    id: str  # of mina's workspace

    async def begin(self, phase: str) -> None:
        """Her workspace is so, by her own doing."""
        await settled(self.mina, self.id)
        await api(self.mina, "PATCH", f"/api/v1/workspaces/{self.id}", desired_state=phase, keep_awake_until=None)
        await until(self.mina, self.id, phase)

    async def row(self) -> dict[str, Any]:
        found: dict[str, Any] = await api(self.mina, "GET", f"/api/v1/workspaces/{self.id}")
        return found

    async def history(self) -> list[tuple[str, str]]:
        found = await api(self.mina, "GET", f"/api/v1/workspaces/{self.id}/history?limit=200")
        return [(line["code"], line["actor"]) for line in found["items"]]

    @contextlib.asynccontextmanager
    async def browser(self, name: str) -> AsyncIterator[aiohttp.ClientSession]:
        made = await api(self.admin, "POST", f"/api/v1/users/{name}/login-links", status=201)
        jar = aiohttp.CookieJar(unsafe=True)
        connector = aiohttp.TCPConnector(resolver=ToThisMachine())
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:
            async with session.post(made["url"], headers=PAGE, allow_redirects=False) as answer:
                assert answer.status == 303
            yield session


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with lab() as started:
        yield started


@pytest.fixture
async def school(platform: Platform) -> AsyncIterator[School]:
    async with contextlib.AsyncExitStack() as stack:
        admin, people = await stack.enter_async_context(visiting(platform)), {}
        for name, role in (("mina", "learner"), ("kim", "teacher"), ("lee", "teacher")):
            await api(admin, "POST", "/api/v1/users", status=201, name=name, role=role)
            token = (await api(admin, "POST", f"/api/v1/users/{name}/tokens", status=201))["token"]
            people[name] = await stack.enter_async_context(platform.client(token))
        for name in ("kim", "lee"):
            made = await api(people[name], "POST", "/api/v1/classes", status=201, title=name)
            if name == "kim":
                await api(people[name], "POST", f"/api/v1/classes/{made['id']}/members", status=201, name="mina")
        id_ = await create(people["mina"])
        await until(people["mina"], id_, "RUNNING")
        write(platform, id_, "hers.txt", b"hers")
        yield School(platform, admin, people["mina"], people["kim"], people["lee"], id_)


def test_every_action_of_a_workspace_is_walked_here() -> None:
    walked = {action: CELLS[action][TEACHER] for action in CELLS if action.startswith("workspace.")}
    assert {action for action, cell in walked.items() if cell == "F"} == set(REFUSED)
    assert {action for action, cell in walked.items() if cell in "YT"} == {*ALLOWED, *BY_BROWSER}
    assert {CELLS[action][OTHER] for action in walked} == {"H"}


async def test_what_the_table_gives_a_teacher_takes_effect_and_nothing_else_does(school: School) -> None:
    await refused_to_all_but_her_own_teacher(school)
    await by_programs(school)
    await by_browser(school)
    assert (await school.row())["owner"] == "mina"  # after all of it, it is hers


async def ask(client: aiohttp.ClientSession, method: str, path: str, body: Any) -> tuple[int, bytes]:
    async with client.request(method, path, json=body) as answer:
        return answer.status, await answer.read()


async def refused_to_all_but_her_own_teacher(school: School) -> None:
    await school.begin("RUNNING")
    before, told = await school.row(), await school.history()
    path = f"/api/v1/workspaces/{school.id}"
    everything = [*REFUSED.items(), *((action, requests) for action, (_, requests) in ALLOWED.items())]
    for action, requests in everything:
        for method, rest, body in requests:
            status, said = await ask(school.lee, method, path + rest.format(me="lee"), body)
            assert status == 404, (action, said)
    for action, requests in REFUSED.items():
        for method, rest, body in requests:
            status, said = await ask(school.kim, method, path + rest.format(me="kim"), body)
            assert status == 403, (action, said)
    outside = f"{school.platform.url}/w/{school.id}/"
    async with school.browser("lee") as browser, browser.get(outside, headers=PAGE) as answer:
        assert answer.status == 404
    after = await school.row()
    assert {name: after[name] for name in CHANGED} == {name: before[name] for name in CHANGED}
    assert await school.history() == told


CHANGED = ("name", "desired_state", "desired_by", "desired_at", "keep_awake_until", "phase", "standby_ttl_seconds")


async def by_programs(school: School) -> None:
    path = f"/api/v1/workspaces/{school.id}"
    answers: dict[Action, list[bytes]] = {}
    for action, (phase, requests) in ALLOWED.items():
        await school.begin(phase)
        for method, rest, body in requests:
            status, said = await ask(school.kim, method, path + rest, body)
            assert status == (202 if "desired_state" in (body or {}) else 200), (action, status, said)
            answers.setdefault(action, []).append(said)
        match action:
            case Action.WORKSPACE_START:
                found = await until(school.mina, school.id, "RUNNING")
                assert (found["desired_state"], found["desired_by"]) == ("RUNNING", "teacher")
            case Action.WORKSPACE_SLEEP:
                found = await until(school.mina, school.id, "STANDBY")
                assert (found["desired_state"], found["desired_by"]) == ("STANDBY", "teacher")
            case Action.WORKSPACE_KEEP_AWAKE:
                assert datetime.fromisoformat((await school.row())["keep_awake_until"]) == UNTIL
            case Action.WORKSPACE_DOWNLOAD:
                assert members(answers[action][0])["hers.txt"] == b"hers"
                assert (await school.history())[0] == ("downloaded", "kim")


async def by_browser(school: School) -> None:
    port = school.platform.url.rpartition(":")[2]
    outside, inside = f"{school.platform.url}/w/{school.id}/", f"http://{school.id}.localhost:{port}/w/{school.id}/"
    await school.begin("RUNNING")
    async with school.browser("kim") as browser, school.mina.get("/api/v1/events") as answer:
        hers = Stream(answer)
        async with browser.get(outside, headers=PAGE) as page:
            assert (page.status, page.url.host) == (200, f"{school.id}.localhost")
        said = await hers.until("workspace_visited")
        assert (said["by"], said["what"], said["workspace_id"]) == ("kim", "entered", school.id)
        assert (await school.history())[0] == ("entered", "kim")
        async with browser.post(inside, headers={"Origin": inside[: inside.index("/w/")]}) as sent:
            assert sent.status not in {401, 403, 404}  # it reached the IDE
        status, _ = await ask(school.kim, "GET", f"/api/v1/workspaces/{school.id}/download", None)
        assert status == 200
        assert (await hers.until("workspace_visited"))["what"] == "downloaded"
        await school.begin("STANDBY")
        async with asyncio.timeout(60):
            while True:
                async with browser.get(inside, headers=PAGE) as woken:
                    if woken.status == 200:
                        break
                await asyncio.sleep(0.1)
        found = await until(school.mina, school.id, "RUNNING")
        assert found["desired_by"] == "wake"
