"""What is open ends with the login it was opened with: WebSockets, an IDE's answers, event streams, logs, downloads."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Self

import aiohttp
import pytest

from codehub.auth.service import FROM_THE_START
from codehub.command import operator
from codehub.embedded.datadir import DataDir
from codehub.policy.model import Principal, Role
from codehub.runtimes.layout import Layout
from codehub.workspaces.model import Workspace
from tests.gate.lab import PAGE, Lab
from tests.virtual_time import ManualClock

SOON = 30  # seconds that a busy machine may take over what takes a moment
FOREVER = aiohttp.ClientTimeout(total=None)


class Endless:
    """In the coordinator's place: a home without end. Notes when nobody wants more of it."""

    def __init__(self) -> None:
        self.begun = self.given_up = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(json.dumps({"ok": True}).encode() + b"\n")
        self.begun += 1
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write((1 << 16).to_bytes(4, "big") + bytes(1 << 16))
                await writer.drain()
        self.given_up += 1


@pytest.fixture
async def homes(lab: Lab) -> AsyncIterator[Endless]:
    endless = Endless()
    path = DataDir(lab.services.settings.storage.data_dir).downloads_socket
    path.parent.mkdir(parents=True, exist_ok=True)
    async with await asyncio.start_unix_server(endless.serve, path):
        yield endless


@pytest.fixture
async def work(lab: Lab) -> Workspace:
    """Mina's, running."""
    await lab.services.people.create_user(operator(), "mina", Role.LEARNER)
    w = await lab.running("mina")
    folder = Layout(lab.services.settings.storage.data_dir).of(w.id).log
    folder.mkdir(parents=True)
    (folder / "current").write_text("begun\n")
    return w


class Open:
    """All that can be open for somebody, opened."""

    def __init__(self, lab: Lab, w: Workspace, session: aiohttp.ClientSession, headers: dict[str, str]) -> None:
        self._lab, self._w, self._session, self._headers = lab, w, session, headers
        self.ws: aiohttp.ClientWebSocketResponse
        self.answers: dict[str, aiohttp.ClientResponse] = {}

    async def __aenter__(self) -> Self:
        inside, api = f"{self._lab.origin(self._w.id)}/w/{self._w.id}", f"{self._lab.url}/api/v1"
        addresses = {
            "the IDE's answer": f"{inside}/endless",
            "the IDE's answer that nobody reads": f"{inside}/endless",
            "events": f"{api}/events",
            "log": f"{api}/workspaces/{self._w.id}/logs/follow",
            "download": f"{api}/workspaces/{self._w.id}/download",
        }
        for name, address in addresses.items():
            answer = await self._session.get(address, headers=self._headers, timeout=FOREVER)
            assert answer.status == 200, name
            await answer.content.readany()
            self.answers[name] = answer
        origin = {"Origin": self._lab.origin(self._w.id), **self._headers}
        self.ws = await self._session.ws_connect(f"{inside}/ws", headers=origin)
        await self.ws.send_str("hello")
        assert await self.ws.receive_str() == "hello"
        return self

    async def __aexit__(self, *_: object) -> None:
        for answer in self.answers.values():
            answer.close()
        await self.ws.close()

    async def all_end(self) -> None:
        """Whoever reads on finds an end that is none; and what nobody reads is not sent any more."""
        for name, answer in self.answers.items():
            async with asyncio.timeout(SOON):
                with pytest.raises(aiohttp.ClientError):
                    while not answer.content.at_eof():
                        await answer.content.readany()
                    pytest.fail(f"{name} ended as if it were complete")
        closed = await self.ws.receive(timeout=SOON)
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1008)

    async def all_goes_on(self) -> None:
        for name in ("the IDE's answer", "download"):
            assert await self.answers[name].content.readany()
        await self.ws.send_str("still here")
        assert await self.ws.receive_str() == "still here"
        assert not self.answers["events"].content.at_eof()


async def revoke(lab: Lab, _clock: ManualClock) -> None:
    (token,) = await lab.services.people.page_tokens(operator(), "mina", after=FROM_THE_START, limit=2)
    await lab.services.people.revoke_token(operator(), "mina", token.id)


async def deactivate(lab: Lab, _clock: ManualClock) -> None:
    await lab.services.people.change_user(operator(), "mina", role=None, active=False)


async def expire(lab: Lab, clock: ManualClock) -> None:
    await clock.jump(timedelta(days=1).total_seconds())
    await lab.director.close_revoked()


@contextlib.asynccontextmanager
async def time_goes_on(clock: ManualClock) -> AsyncIterator[None]:
    """A look that was under way at the jump is followed by another one, as it would be for people."""

    async def pass_time() -> None:
        while True:
            await clock.jump(2.0)
            await asyncio.sleep(0.05)

    passing = asyncio.create_task(pass_time())
    try:
        yield
    finally:
        passing.cancel()


@pytest.mark.parametrize("end", [revoke, deactivate, expire])
async def test_what_a_token_opened_ends_with_it(
    lab: Lab, work: Workspace, homes: Endless, clock: ManualClock, end: Callable[[Lab, ManualClock], Awaitable[None]]
) -> None:
    made = await lab.services.people.create_token(operator(), "mina", label="", scopes=None, days=1)
    bearer = {"Authorization": f"Bearer {made.secret}"}
    async with lab.browser() as program, Open(lab, work, program, bearer) as opened:
        await opened.all_goes_on()
        await end(lab, clock)
        async with time_goes_on(clock):
            await opened.all_end()
        async with program.get(f"{lab.url}/w/{work.id}/api", headers=bearer) as answer:
            assert answer.status == 401
    async with asyncio.timeout(SOON):
        while homes.given_up < homes.begun:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["logout", "elsewhere", "deactivate", "expire"])
async def test_what_a_browser_opened_ends_with_its_session(
    lab: Lab, work: Workspace, homes: Endless, clock: ManualClock, how: str
) -> None:
    del homes
    async with lab.browser("mina") as browser:
        await browser.get(f"{lab.url}/w/{work.id}/", headers=PAGE)
        async with Open(lab, work, browser, {}) as opened:
            match how:
                case "logout":
                    async with browser.post(f"{lab.url}/logout", allow_redirects=False):
                        pass
                case "elsewhere":
                    (session,) = await lab.services.people.page_sessions(
                        operator(), "mina", after=FROM_THE_START, limit=2
                    )
                    await lab.services.people.revoke_session(operator(), "mina", session.id)
                case "deactivate":
                    await deactivate(lab, clock)
                case "expire":
                    await clock.jump(lab.services.settings.auth.session_seconds)
                    await lab.director.close_revoked()
            async with time_goes_on(clock):
                await opened.all_end()


async def test_what_others_opened_goes_on(lab: Lab, work: Workspace, homes: Endless, clock: ManualClock) -> None:
    del homes
    await lab.services.people.create_user(operator(), "jun", Role.LEARNER)
    made = await lab.services.people.create_token(operator(), "mina", label="", scopes=None, days=1)
    async with lab.browser() as program, Open(lab, work, program, {"Authorization": f"Bearer {made.secret}"}) as opened:
        other = await lab.services.people.create_token(operator(), "mina", label="", scopes=None, days=2)
        await lab.services.people.revoke_token(operator(), "mina", other.token.id)
        await lab.services.people.change_user(operator(), "jun", role=None, active=False)
        await clock.jump(timedelta(days=1).total_seconds() - 60)
        await lab.director.close_revoked()
        await opened.all_goes_on()
        await lab.services.people.revoke_token(operator(), "mina", made.token.id)
        await opened.all_end()


async def test_an_ended_share_ends_what_the_guest_had_open_and_nothing_of_the_owners(lab: Lab, work: Workspace) -> None:
    await lab.services.people.create_user(operator(), "jun", Role.LEARNER)
    mina = Principal("mina", Role.LEARNER, operator().scopes)
    await lab.services.sharing.share(mina, work.id, "jun")
    await lab.known(work, people=frozenset({"mina", "jun"}))
    address = f"{lab.origin(work.id)}/w/{work.id}/endless"
    async with lab.browser("jun") as guest, lab.browser("mina") as owner:
        for browser in (guest, owner):
            await browser.get(f"{lab.url}/w/{work.id}/", headers=PAGE)
        async with guest.get(address, timeout=FOREVER) as theirs, owner.get(address, timeout=FOREVER) as mine:
            await lab.services.sharing.unshare(mina, work.id, "jun")
            async with asyncio.timeout(SOON):
                with pytest.raises(aiohttp.ClientError):
                    while True:
                        await theirs.content.readany()
            assert await mine.content.readexactly(1 << 20)


async def test_an_admin_who_is_one_no_more_sees_no_more_of_everybodys_events(lab: Lab) -> None:
    await lab.services.people.create_user(operator(), "sora", Role.ADMIN)
    async with lab.browser("sora") as browser:
        async with browser.get(f"{lab.url}/api/v1/events", timeout=FOREVER) as stream:
            await stream.content.readany()
            await lab.services.people.change_user(operator(), "sora", role=Role.TEACHER, active=None)
            async with asyncio.timeout(SOON):
                with pytest.raises(aiohttp.ClientError):
                    while True:
                        await stream.content.readany()
        async with browser.get(f"{lab.url}/api/v1/events", timeout=FOREVER) as again:
            assert again.status == 401  # who is an admin no more logs in again
    async with lab.browser("sora") as browser, browser.get(f"{lab.url}/api/v1/events", timeout=FOREVER) as again:
        assert again.status == 200


async def test_a_request_that_waits_for_a_workspace_to_wake_does_not_get_in_after_its_login_ended(lab: Lab) -> None:
    await lab.services.people.create_user(operator(), "mina", Role.LEARNER)
    w = await lab.workspace("mina")
    await lab.put(w, "STANDBY", operation="STARTING", desired_state="RUNNING")
    await lab.known(w, phase="STANDBY")
    made = await lab.services.people.create_token(operator(), "mina", label="", scopes=None, days=1)
    bearer = {"Authorization": f"Bearer {made.secret}"}
    async with lab.browser() as program:
        held = asyncio.create_task(program.get(f"{lab.url}/w/{w.id}/api", headers=bearer))
        async with asyncio.timeout(SOON):
            while not (route := lab.director.routes.get(w.id)) or not route.waiting:
                await asyncio.sleep(0.005)
        await lab.services.people.revoke_token(operator(), "mina", made.token.id)
        await lab.director.close_revoked()
        await lab.put(w, "RUNNING", desired_state="RUNNING")
        async with await held as answer:
            assert answer.status == 401
    assert lab.ide.requests == []
