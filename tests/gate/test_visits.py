"""Who enters another person's workspace, through the proxy; and how its owner learns of it."""

from typing import Any

import aiohttp
import pytest

from codehub.command import operator
from codehub.gate.access import VISIT
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.policy.rules import NOT_BY_TOKEN
from codehub.workspaces.model import Desired, DesiredBy, Workspace
from tests.gate.lab import PAGE, Lab, problem
from tests.virtual_time import ManualClock
from tests.web.server import Site

MINA = Principal("mina", Role.LEARNER, ALL_SCOPES)


@pytest.fixture
async def hers(lab: Lab) -> Workspace:
    """Mina's, which runs; jun is her guest, sora a stranger and boss an admin."""
    people = lab.services.people
    for name, role in (("mina", Role.LEARNER), ("jun", Role.LEARNER), ("sora", Role.LEARNER), ("boss", Role.ADMIN)):
        await people.create_user(operator(), name, role)
    w = await lab.running("mina")
    await lab.services.sharing.share(MINA, w.id, "jun")
    await lab.known(w, people=frozenset({"mina", "jun"}))
    return w


async def visit(lab: Lab, browser: aiohttp.ClientSession, w: Workspace) -> int:
    async with browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE) as answer:
        return answer.status


async def told(lab: Lab, w: Workspace) -> list[str]:
    history = await lab.services.workspaces.history(MINA, w.id, before=2**62, limit=200)
    return [line.actor for line in history if line.code == "entered"]


async def desired(lab: Lab, w: Workspace) -> tuple[Any, ...]:
    found = await lab.services.workspaces.get(operator(), w.id)
    return found.desired_state, found.desired_by


@pytest.mark.parametrize(
    ("who", "page", "api", "mentioned"),
    [("mina", 200, 200, []), ("jun", 200, 200, []), ("boss", 200, 200, ["boss"]), ("sora", 404, 401, [])],
)
async def test_who_enters_and_of_whom_the_owner_is_told(
    lab: Lab, hers: Workspace, who: str, page: int, api: int, mentioned: list[str]
) -> None:
    async with lab.browser(who) as browser:
        assert await visit(lab, browser, hers) == page
        for _ in range(3):
            for send in (browser.get, browser.post):
                async with send(f"{lab.origin(hers.id)}/w/{hers.id}/api") as answer:
                    assert answer.status == api
    assert await told(lab, hers) == mentioned
    audited = await lab.services.audit.page(operator(), before=None, actor=None, subject=hers.id, limit=10)
    assert [(entry.actor, entry.data) for entry in audited if entry.code == "workspace.enter"] == [
        (name, {"owner": "mina"}) for name in mentioned
    ]


async def test_an_owner_is_told_once_for_a_visit_and_again_for_the_next(
    lab: Lab, hers: Workspace, clock: ManualClock
) -> None:
    async with lab.browser("boss") as browser:
        for _ in range(3):
            assert await visit(lab, browser, hers) == 200
        assert await told(lab, hers) == ["boss"]
        await clock.advance(VISIT.total_seconds() + 1)
        assert await visit(lab, browser, hers) == 200
        assert await told(lab, hers) == ["boss", "boss"]


async def test_an_admins_token_does_not_enter_unseen(lab: Lab, hers: Workspace) -> None:
    token = await Site(lab.url, lab.services).token("boss")
    bearer = {"Authorization": f"Bearer {token}"}
    async with lab.browser() as program:
        async with program.get(f"{lab.url}/w/{hers.id}/api", headers=bearer) as answer:
            assert await problem(answer) == (403, "FORBIDDEN")
            assert NOT_BY_TOKEN in await answer.text()
        async with program.get(f"{lab.url}/w/{hers.id}/", headers={**bearer, **PAGE}) as answer:
            assert answer.status == 403
    assert lab.ide.requests == []


async def test_an_admin_who_was_a_guest_comes_in_by_the_door_again_when_the_share_has_ended(
    lab: Lab, hers: Workspace
) -> None:
    await lab.services.sharing.share(MINA, hers.id, "boss")
    await lab.known(hers, people=frozenset({"mina", "jun", "boss"}))
    address = f"{lab.origin(hers.id)}/w/{hers.id}"
    async with lab.browser("boss") as browser:
        assert await visit(lab, browser, hers) == 200
        assert await told(lab, hers) == []  # a guest, whom she asked in
        async with browser.ws_connect(f"{address}/ws", headers={"Origin": lab.origin(hers.id)}) as socket:
            await lab.services.sharing.unshare(MINA, hers.id, "boss")
            closed = await socket.receive(timeout=20)
            assert closed.type is aiohttp.WSMsgType.CLOSE
        async with browser.get(f"{address}/api") as answer:
            assert answer.status == 403
        assert await told(lab, hers) == []
        assert await visit(lab, browser, hers) == 200  # as an admin, and she is told
        async with browser.get(f"{address}/api") as answer:
            assert answer.status == 200
    assert await told(lab, hers) == ["boss"]


async def test_guests_of_a_deactivated_owner_are_out_before_the_workspace_has_stopped(
    lab: Lab, hers: Workspace
) -> None:
    async with lab.browser("jun") as guest:
        assert await visit(lab, guest, hers) == 200
        address = f"{lab.origin(hers.id)}/w/{hers.id}"
        async with guest.ws_connect(f"{address}/ws", headers={"Origin": lab.origin(hers.id)}) as socket:
            await lab.services.people.change_user(operator(), "mina", role=None, active=False)
            closed = await socket.receive(timeout=20)
            assert closed.type is aiohttp.WSMsgType.CLOSE
        async with guest.get(f"{address}/api") as answer:
            assert answer.status in {403, 404}


async def test_a_guests_stop_stops_nothing_and_wakes_nothing(lab: Lab, hers: Workspace) -> None:
    async with lab.browser("jun") as guest:
        assert await visit(lab, guest, hers) == 200
        await lab.put(hers, "STANDBY")
        await lab.known(hers, phase="STANDBY")
        act = f"{lab.origin(hers.id)}/_codehub/act/{hers.id}"
        same = {"Sec-Fetch-Site": "same-origin"}
        async with guest.post(act, data={"action": "stop"}, headers=same, allow_redirects=False) as answer:
            assert answer.status == 303
        found = await lab.services.workspaces.get(operator(), hers.id)
        assert found.desired_by is not DesiredBy.GUEST


async def test_who_is_an_admin_no_more_is_out_of_other_peoples_workspaces(lab: Lab, hers: Workspace) -> None:
    async with lab.browser("boss") as browser:
        assert await visit(lab, browser, hers) == 200
        headers = {"Origin": lab.origin(hers.id)}
        async with browser.ws_connect(f"{lab.origin(hers.id)}/w/{hers.id}/ws", headers=headers) as socket:
            await lab.services.people.change_user(operator(), "boss", role=Role.TEACHER, active=None)
            closed = await socket.receive(timeout=20)
            assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1008)
        async with browser.get(f"{lab.origin(hers.id)}/w/{hers.id}/api") as answer:
            assert answer.status == 401
    async with lab.browser("boss") as again:
        assert await visit(lab, again, hers) == 404


async def test_a_visit_wakes_it_whoever_comes_and_a_guests_button_says_whose_it_was(lab: Lab, hers: Workspace) -> None:
    async with lab.browser("jun") as guest, lab.browser("boss") as admin:
        for browser in (guest, admin):
            assert await visit(lab, browser, hers) == 200
            await lab.put(hers, "STANDBY")
            await lab.known(hers, phase="STANDBY")
            assert await visit(lab, browser, hers) == 503
            assert await desired(lab, hers) == (Desired.RUNNING, DesiredBy.WAKE)
            await lab.put(hers, "RUNNING", desired_state="RUNNING")
            await lab.known(hers, phase="RUNNING")
        await lab.put(hers, "STANDBY")
        same = {"Sec-Fetch-Site": "same-origin"}
        act = f"{lab.origin(hers.id)}/_codehub/act/{hers.id}"
        for browser, by in ((guest, DesiredBy.GUEST), (admin, DesiredBy.ADMIN)):
            await lab.put(hers, "STANDBY")
            async with browser.post(act, data={"action": "start"}, headers=same, allow_redirects=False) as answer:
                assert answer.status == 303
            assert await desired(lab, hers) == (Desired.RUNNING, by)


async def test_an_admins_pass_opens_one_workspace_and_nothing_else(lab: Lab, hers: Workspace) -> None:
    other = await lab.running("mina")
    async with lab.browser("boss") as browser:
        assert await visit(lab, browser, hers) == 200
        here, same = lab.origin(hers.id), {"Sec-Fetch-Site": "same-origin"}
        async with browser.post(f"{here}/_codehub/act/{other.id}", data={"action": "stop"}, headers=same) as answer:
            assert answer.status == 404
        async with browser.get(f"{here}/api/v1/workspaces") as answer:
            assert answer.status == 404
    assert await desired(lab, other) == (Desired.RUNNING, DesiredBy.USER)
