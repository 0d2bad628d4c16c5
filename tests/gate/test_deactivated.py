"""The real platform: who is deactivated is out, everywhere and at once.

Everything that a learner can have open is opened through real processes, then an admin deactivates them. Docs say
"within seconds", and that these are at most five is a matter of periods: each process hears of it by a notification,
and looks again by itself in case that one is lost (`test_no_process_looks_away_for_longer_than_five_seconds`). How long
the stages take on a busy machine is not looked at here, only that all of it comes to its end.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from codehub.auth import credentials, streams
from codehub.waiting_room import pump
from codehub.wiring import proxy
from tests.activity.test_platform import inside
from tests.gate.lab import PAGE, ToThisMachine
from tests.platform import Platform
from tests.workspaces.test_lifecycle import api, lab, until

FIVE = 5.0  # seconds
SOON = 60  # that a busy machine may take over what takes a moment
FOREVER = aiohttp.ClientTimeout(total=None)
ENDS = {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
LARGE = 60_000_000  # bytes: more than all buffers between the home and a client that does not read


def test_no_process_looks_away_for_longer_than_five_seconds() -> None:
    """How the five seconds come about where a notification is lost. With it, all of them look at once."""
    periods = {
        "the API remembers who a cookie or a token is": credentials.REMEMBER_SECONDS,
        "the API looks at what is open": streams.LOOK_SECONDS,
        "a worker of the front door looks at what passes through it": proxy.LOOK_SECONDS,
        "the waiting room tells its line": pump.PERIOD_SECONDS,
    }
    assert {what: seconds for what, seconds in periods.items() if seconds > FIVE} == {}


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    # The default of the periods; only the coordinator, which puts workspaces to sleep, looks more often in tests.
    with lab(CODEHUB_MAX_KEEP_AWAKE_SECONDS="7200") as started:
        yield started


@dataclass
class Learner:
    """Mina: a browser that is logged in, a program with a token, a workspace of hers that runs."""

    platform: Platform
    browser: aiohttp.ClientSession
    token: str
    id: str

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def origin(self) -> str:
        return f"http://{self.id}.localhost:{self.platform.url.rpartition(':')[2]}"

    def api(self, path: str) -> str:
        return f"{self.platform.url}/api/v1/{path}"


@pytest.fixture
async def admin(platform: Platform) -> AsyncIterator[aiohttp.ClientSession]:
    async with platform.client() as client:
        yield client


@pytest.fixture
async def mina(platform: Platform, admin: aiohttp.ClientSession) -> AsyncIterator[Learner]:
    await api(admin, "POST", "/api/v1/users", status=201, name="mina")
    token = (await api(admin, "POST", "/api/v1/users/mina/tokens", status=201))["token"]
    link = (await api(admin, "POST", "/api/v1/users/mina/login-links", status=201))["url"]
    request = {"name": "lab", "template": "terminal", "owner": "mina", "desired_state": "RUNNING"}
    id_ = (await api(admin, "POST", "/api/v1/workspaces", status=201, **request))["id"]
    await until(admin, id_, "RUNNING")
    connector, jar = aiohttp.TCPConnector(resolver=ToThisMachine()), aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, timeout=FOREVER) as browser:
        async with browser.post(link, headers=PAGE) as page:
            assert page.status == 200
        learner = Learner(platform, browser, token, id_)
        async with asyncio.timeout(SOON):
            while not await entered(learner):
                await asyncio.sleep(0.05)
        yield learner


async def entered(mina: Learner) -> bool:
    """Not yet: the front door hears of a workspace that runs a moment after the database; the page comes again."""
    async with mina.browser.get(f"{mina.platform.url}/w/{mina.id}/", headers=PAGE) as page:
        return page.status == 200


async def waits_in_line(mina: Learner, admin: aiohttp.ClientSession) -> str:
    """Behind another one, at an event with one place; her waiting token."""
    await api(admin, "PUT", "/api/v1/queue/events/exam", capacity=1, paused=True)
    async with admin.post("/api/v1/queue/join", json={"event_id": "exam", "user_id": "another"}) as answer:
        assert answer.status == 201, await answer.text()
    async with mina.browser.post(mina.api("queue/join"), json={"event_id": "exam"}) as answer:
        status = await answer.json()
        assert (answer.status, status["position"]) == (201, 2), status
        return str(status["waiting_token"])


async def opened(mina: Learner, waiting: str) -> dict[str, aiohttp.ClientResponse]:
    """Answers without an end, by the browser and by the token."""
    wanted: dict[str, tuple[str, dict[str, str]]] = {
        "events, by the session": (mina.api("events"), {}),
        "events, by the token": (mina.api("events"), mina.bearer),
        "the log, by the session": (mina.api(f"workspaces/{mina.id}/logs/follow"), {}),
        "the download, by the session": (mina.api(f"workspaces/{mina.id}/download"), {}),
        "the download, by the token": (mina.api(f"workspaces/{mina.id}/download"), mina.bearer),
        "the line": (mina.api(f"queue/stream?token={waiting}"), {}),
    }
    answers = {}
    for name, (address, headers) in wanted.items():
        answers[name] = answer = await mina.browser.get(address, headers=headers)
        assert answer.status == 200, (name, await answer.text())
        if "log" not in name:  # in which nothing may stand
            async with asyncio.timeout(SOON):
                assert await answer.content.readany(), name
    return answers


@contextlib.asynccontextmanager
async def terminal(mina: Learner, headers: dict[str, str]) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with mina.browser.ws_connect(
        f"{mina.origin}/w/{mina.id}/ws/main", origin=mina.origin, headers=headers
    ) as socket:
        await socket.send_json(["stdin", "echo said-$((3+4))\n"])
        async with asyncio.timeout(SOON):
            heard = ""
            while "said-7" not in heard:
                kind, *rest = await socket.receive_json()
                heard += rest[0] if kind == "stdout" else ""
        yield socket


async def cut(answer: aiohttp.ClientResponse) -> bytes:
    """What still came, until it was over. A download that ends as if it were complete would be a wrong one."""
    rest = bytearray()
    with contextlib.suppress(aiohttp.ClientError):
        while not answer.content.at_eof():
            rest += await answer.content.readany()
    answer.close()
    return bytes(rest)


async def closed(socket: aiohttp.ClientWebSocketResponse) -> None:
    """By the front door, or because the IDE behind it has ended: whichever came first."""
    while (await socket.receive()).type not in ENDS:
        pass


async def statuses(mina: Learner) -> dict[str, int]:
    """What is answered to whatever she may try now."""
    tries: dict[str, tuple[str, dict[str, str]]] = {
        "the API, by the session": (mina.api("me"), {}),
        "the API, by the token": (mina.api("me"), mina.bearer),
        "the IDE, by the token": (f"{mina.origin}/w/{mina.id}/terminal.css", mina.bearer),
        "the IDE, by the pass": (f"{mina.origin}/w/{mina.id}/terminal.css", {}),
    }
    found = {}
    for name, (address, headers) in tries.items():
        async with mina.browser.get(address, headers=headers, allow_redirects=False) as answer:
            found[name] = answer.status
    return found


async def test_everything_of_a_deactivated_learner_ends(
    platform: Platform, admin: aiohttp.ClientSession, mina: Learner
) -> None:
    written = await inside(platform, mina.id, f"head -c {LARGE} /dev/urandom > $HOME/large; sync")
    assert written.exit_code == 0, written.output
    until_then = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    await api(admin, "PATCH", f"/api/v1/workspaces/{mina.id}", keep_awake_until=until_then)
    held = await inside(platform, mina.id, "codehub hold 1h; (while :; do codehub hold 1h; done) >/dev/null 2>&1 &")
    assert held.exit_code == 0, held.output
    waiting = await waits_in_line(mina, admin)
    assert set((await statuses(mina)).values()) == {200}
    async with terminal(mina, {}) as hers, terminal(mina, mina.bearer) as programs:
        answers = await opened(mina, waiting)
        await api(admin, "PATCH", "/api/v1/users/mina", active=False)

        async with asyncio.timeout(SOON):
            for socket in (hers, programs):
                await closed(socket)
            last = {name: await cut(answer) for name, answer in answers.items()}
        assert b"event: left" in last["the line"], last["the line"]
        for name in ("the download, by the session", "the download, by the token"):
            assert len(last[name]) < LARGE, f"{name} went on to its end"

    async with asyncio.timeout(SOON):
        while (found := await statuses(mina)) != {
            "the API, by the session": 401,
            "the API, by the token": 401,
            "the IDE, by the token": 401,
            "the IDE, by the pass": found["the IDE, by the pass"],
        }:
            await asyncio.sleep(0.05)
    assert found["the IDE, by the pass"] in {303, 401}
    await sleeps_and_is_held_by_nothing(admin, mina.id)
    await has_left_the_line(mina, admin, waiting)


async def sleeps_and_is_held_by_nothing(admin: aiohttp.ClientSession, id_: str) -> None:
    w = await until(admin, id_, "STANDBY")
    assert (w["desired_state"], w["keep_awake_until"]) == ("STANDBY", None)
    async with admin.patch(f"/api/v1/workspaces/{id_}", json={"desired_state": "RUNNING"}) as answer:
        refused = await answer.json()
        assert (answer.status, refused["code"]) == (409, "USER_DEACTIVATED")


async def has_left_the_line(mina: Learner, admin: aiohttp.ClientSession, waiting: str) -> None:
    async with mina.browser.get(mina.api(f"queue/status?token={waiting}")) as answer:
        told: dict[str, Any] = json.loads(await answer.text())
        assert answer.status == 404, told
    line = await api(admin, "GET", "/api/v1/queue/events/exam/line")
    assert ["mina" in json.dumps(one) for one in line["items"]] == [False], line
