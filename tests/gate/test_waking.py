"""What a workspace that does not run answers, and who wakes it."""

import asyncio
import dataclasses
import json
import pathlib
from typing import Any

import aiohttp
import pytest

from codehub.command import operator
from codehub.gate import director
from codehub.gate.director import HELD_EACH
from codehub.policy.model import Role, Scope
from codehub.templates.loader import Templates
from codehub.templates.model import WakeOn
from codehub.workspaces.model import Desired, DesiredBy, Phase, Workspace
from tests.gate.lab import PAGE, Lab, problem
from tests.web.server import Site

BROKEN = {
    "reason": "Timeout",
    "operation": "STARTING",
    "is_terminal": True,
    "error_count": 1,
    "last_error": "it did not answer",
    "occurred_at": "2026-03-02T09:00:00Z",
}


async def requests(lab: Lab, w: Workspace) -> int:
    async with lab.services.database.connection() as c:
        found = "SELECT count(*) FROM workspace_history WHERE workspace_id = $1 AND code = 'woken'"
        return int(await c.fetchval(found, w.id))


async def desired(lab: Lab, w: Workspace) -> tuple[Desired, DesiredBy]:
    async with lab.services.database.connection() as c:
        row = await c.fetchrow("SELECT desired_state, desired_by FROM workspaces WHERE id = $1", w.id)
        assert row
        return Desired(row["desired_state"]), DesiredBy(row["desired_by"])


async def asleep(lab: Lab, browser: aiohttp.ClientSession) -> tuple[Workspace, str]:
    """One that this browser has a pass for, and where it is."""
    w = await lab.running()
    await browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE)
    lab.ide.requests.clear()
    await lab.put(w, "STANDBY")
    await lab.known(w, phase="STANDBY")
    return w, f"{lab.origin(w.id)}/w/{w.id}/"


async def test_a_persons_visit_wakes_it_and_gets_in(lab: Lab) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        async with browser.get(url, headers=PAGE) as answer:
            assert answer.status == 503
            assert "text/html" in answer.headers["Content-Type"]
            assert int(answer.headers["Retry-After"]) > 0
            assert "Lab" in await answer.text()
        assert await desired(lab, w) == (Desired.RUNNING, DesiredBy.WAKE)
        status = f"{lab.origin(w.id)}/_codehub/status/{w.id}"
        async with browser.get(status) as answer:
            assert (await answer.json())["ready"] is False
        await lab.put(w, "RUNNING", desired_state="RUNNING")
        await lab.known(w, phase="RUNNING")
        async with browser.get(status) as answer:
            assert (await answer.json())["ready"] is True
        async with browser.get(url, headers=PAGE) as answer:
            assert answer.status == 200


async def test_a_programs_visit_wakes_it_too(lab: Lab) -> None:
    """It has no browser that could log in: being sent there is no answer."""
    site = Site(lab.url, lab.services)
    may, may_not = await site.token("admin"), await site.token("admin", scopes=frozenset({Scope.READ}))
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
    for where in (url, f"{lab.url}/w/{w.id}/"):
        async with lab.browser() as program:
            async with program.get(where, headers={**PAGE, "Authorization": f"Bearer {may_not}"}) as answer:
                assert answer.status == 403
            bad = {**PAGE, "Authorization": "Bearer nonsense"}
            async with program.get(where, headers=bad, allow_redirects=False) as answer:
                assert answer.status == 401
            assert await requests(lab, w) == 0
    async with lab.browser() as program:
        headers = {**PAGE, "Authorization": f"Bearer {may}"}
        async with program.get(f"{lab.url}/w/{w.id}/", headers=headers, allow_redirects=False) as answer:
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) > 0
        assert await desired(lab, w) == (Desired.RUNNING, DesiredBy.WAKE)
        await lab.put(w, "RUNNING", desired_state="RUNNING")
        await lab.known(w, phase="RUNNING")
        async with program.get(f"{lab.url}/w/{w.id}/", headers=headers) as answer:
            assert answer.status == 200


async def test_a_thousand_requests_cause_one_wake(lab: Lab) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        room = asyncio.Semaphore(100)

        async def visit() -> int:
            async with room, browser.get(url, headers=PAGE) as answer:
                return answer.status

        assert set(await asyncio.gather(*(visit() for _ in range(1000)))) == {503}
    assert await requests(lab, w) == 1


async def test_stale_tabs_wake_nothing(lab: Lab) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        script = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-origin"}
        for _ in range(120):  # an hour of a tab that tries twice a minute
            async with browser.get(f"{url}api/kernels", headers=script) as answer:
                assert await problem(answer) == (503, "ASLEEP")
                assert answer.headers["Retry-After"]
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await browser.ws_connect(f"{url}ws", headers={"Origin": lab.origin(w.id)})
            assert refused.value.status == 503
        looks_ahead = {**PAGE, "Sec-Purpose": "prefetch"}
        async with browser.get(url, headers=looks_ahead) as answer:
            assert answer.status == 503
        async with browser.head(url, headers=PAGE) as answer:
            assert answer.status == 503
    assert await requests(lab, w) == 0


async def test_requests_are_held_while_it_wakes(lab: Lab) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        await browser.get(url, headers=PAGE)
        await lab.known(w, desired=Desired.RUNNING)

        async def ask(number: int) -> int:
            async with browser.post(f"{url}api/{number}", data=b"x" * 1000) as answer:
                return answer.status

        asked = [asyncio.create_task(ask(number)) for number in range(HELD_EACH)]
        route = lab.director.routes.get(w.id)
        assert route
        async with asyncio.timeout(10):
            while len(route.waiting) < HELD_EACH:
                await asyncio.sleep(0.005)
        assert lab.ide.requests == []
        await lab.put(w, "RUNNING", desired_state="RUNNING")
        assert await asyncio.gather(*asked) == [200] * HELD_EACH
        assert len(lab.ide.requests) == HELD_EACH


async def test_a_template_may_let_anything_wake_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        template = lab.services.templates.require(w.template)
        anything = dataclasses.replace(template, wake_on=WakeOn.ANY)
        monkeypatch.setattr(lab.director, "_templates", Templates({w.template: anything}, pathlib.Path("/nowhere")))
        asked = asyncio.create_task(browser.get(f"{url}api"))
        await lab.known(w, desired=Desired.RUNNING)
        await lab.put(w, "RUNNING", desired_state="RUNNING")
        assert (await asked).status == 200
    assert await requests(lab, w) == 1


@pytest.mark.parametrize(
    ("observed", "columns", "code", "words"),
    [
        ("PENDING", {"archive_key": "k"}, "ARCHIVED", ("restore needed", "복원 필요")),
        ("PENDING", {}, "PENDING", ("start needed", "시작 필요")),
        (
            "STANDBY",
            {"health_status": "ERROR", "error_info": BROKEN},
            "ERROR",
            ("wrong", "오류 발생"),
        ),
    ],
)
async def test_what_cannot_be_woken_says_what_is_needed(
    lab: Lab, observed: str, columns: dict[str, object], code: str, words: tuple[str, str]
) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        await lab.put(w, observed, desired_state="ARCHIVED", **columns)
        await lab.known(w, phase=Phase(code) if code != "ERROR" else Phase.ERROR)
        async with browser.get(f"{url}api") as answer:
            assert await problem(answer) == (502, code)
        for language, word in zip(("en", "ko"), words, strict=True):
            async with browser.get(url, headers={**PAGE, "Accept-Language": language}) as answer:
                assert answer.status == 502
                assert word.lower() in (await answer.text()).lower()
    assert await requests(lab, w) == 0


async def test_over_the_limit_is_said_and_nothing_is_lost(lab: Lab) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        for _ in range(lab.services.settings.limits.max_running_per_user):
            await lab.running()
        async with browser.get(url, headers=PAGE) as answer:
            assert answer.status == 502
            assert "text/html" in answer.headers["Content-Type"]
    assert await requests(lab, w) == 0


async def test_buttons_act_for_the_owner_and_only_on_this_workspace(lab: Lab) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        await lab.put(w, "PENDING", desired_state="ARCHIVED")
        other = await lab.workspace()
        here, same = lab.origin(w.id), {"Sec-Fetch-Site": "same-origin"}
        for id_, headers, status in ((other.id, same, 404), (w.id, {"Sec-Fetch-Site": "same-site"}, 403)):
            async with browser.post(f"{here}/_codehub/act/{id_}", data={"action": "start"}, headers=headers) as answer:
                assert answer.status == status
        sent = {"action": "start", "next": url.removeprefix(here)}
        async with browser.post(
            f"{here}/_codehub/act/{w.id}", data=sent, headers=same, allow_redirects=False
        ) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, f"/w/{w.id}/")
    assert await desired(lab, w) == (Desired.RUNNING, DesiredBy.USER)


async def test_a_guest_may_wake_and_nothing_else(lab: Lab) -> None:
    await lab.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with lab.browser("admin") as owner, lab.browser("mina") as guest:
        w, _ = await asleep(lab, owner)
        await owner.post(f"{lab.url}/api/v1/workspaces/{w.id}/shares", json={"user": "mina"})
        async with guest.get(f"{lab.url}/w/{w.id}/", headers=PAGE) as answer:
            assert answer.status == 503
        assert await desired(lab, w) == (Desired.RUNNING, DesiredBy.WAKE)
        await lab.put(w, "RUNNING", desired_state="RUNNING")
        same = {"Sec-Fetch-Site": "same-origin"}
        act = f"{lab.origin(w.id)}/_codehub/act/{w.id}"
        async with guest.post(act, data={"action": "stop"}, headers=same, allow_redirects=False) as answer:
            assert answer.status == 303
        async with guest.post(act, data={"action": "cancel"}, headers=same, allow_redirects=False) as answer:
            assert answer.status == 303
        assert (await desired(lab, w))[0] is Desired.RUNNING
        async with guest.patch(f"{lab.url}/api/v1/workspaces/{w.id}", json={"desired_state": "STANDBY"}) as answer:
            assert answer.status == 403


async def test_a_few_requests_of_one_person_wait_for_it_and_the_others_are_told_so(lab: Lab) -> None:
    """Each that waits is a connection; programs send as many as they like."""
    token = await Site(lab.url, lab.services).token("admin")
    headers = {"Authorization": f"Bearer {token}"}
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        await browser.get(url, headers=PAGE)
        await lab.known(w, desired=Desired.RUNNING)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as program:

        async def ask() -> int:
            async with program.get(f"{lab.url}/w/{w.id}/api", headers=headers) as answer:
                assert "Retry-After" in answer.headers or answer.status != 503
                return answer.status

        asking = [asyncio.create_task(ask()) for _ in range(4 * HELD_EACH)]
        async with asyncio.timeout(20):
            while sum(task.done() for task in asking) < 3 * HELD_EACH:
                await asyncio.sleep(0.01)
        assert [task.result() for task in asking if task.done()] == [503] * 3 * HELD_EACH
        await lab.put(w, "RUNNING", desired_state="RUNNING")
        await lab.known(w, phase="RUNNING")
        assert sorted(await asyncio.gather(*asking)) == [200] * HELD_EACH + [503] * 3 * HELD_EACH


async def test_a_start_that_is_called_off_leads_to_a_page_that_does_not_wake_it_again(lab: Lab) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        async with browser.get(url, headers=PAGE) as answer:
            assert 'id="cancel"' in await answer.text()
        assert (await desired(lab, w))[0] is Desired.RUNNING
        here, same = lab.origin(w.id), {"Sec-Fetch-Site": "same-origin"}
        for _ in range(2):  # a double click
            async with browser.post(
                f"{here}/_codehub/act/{w.id}", data={"action": "cancel"}, headers=same, allow_redirects=False
            ) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, f"/_codehub/cancelled/{w.id}")
        async with browser.get(f"{here}/_codehub/cancelled/{w.id}", headers=PAGE) as answer:
            assert answer.status == 200
            assert "It sleeps." in await answer.text()
        assert (await desired(lab, w))[0] is Desired.STANDBY


async def test_the_waking_page_says_that_it_is_tried_again(lab: Lab) -> None:
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        await lab.put(w, "STANDBY", desired_state="RUNNING", failures=2)
        async with browser.get(url, headers=PAGE) as answer:
            assert "It did not work 2 times." in await answer.text()
        async with browser.get(f"{lab.origin(w.id)}/_codehub/status/{w.id}") as answer:
            assert (await answer.json())["failures"] == 2


async def test_an_ide_that_is_there_in_a_moment_comes_without_a_waking_page(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(director, "BLINK_SECONDS", 20.0)
    async with lab.browser("admin") as browser:
        w, url = await asleep(lab, browser)
        asked = asyncio.create_task(browser.get(url, headers=PAGE))
        await lab.known(w, desired=Desired.RUNNING)
        await lab.put(w, "RUNNING", desired_state="RUNNING")
        assert (await asked).status == 200
    assert await requests(lab, w) == 1
    assert [request["path"] for request in lab.ide.requests] == [f"/w/{w.id}/"]


async def test_it_wakes_while_the_login_travels(lab: Lab) -> None:
    async with lab.browser("admin") as browser:
        w = await lab.workspace()
        await lab.put(w, "STANDBY")
        url = f"{lab.url}/w/{w.id}/"
        async with browser.head(url, headers=PAGE, allow_redirects=False) as answer:
            assert answer.status == 303
        async with browser.get(url, headers={**PAGE, "Sec-Purpose": "prefetch"}, allow_redirects=False) as answer:
            assert answer.status == 303
        assert await requests(lab, w) == 0
        async with browser.get(url, headers=PAGE, allow_redirects=False) as answer:
            assert answer.status == 303
        assert await desired(lab, w) == (Desired.RUNNING, DesiredBy.WAKE)


async def test_a_page_that_waits_is_told(lab: Lab) -> None:
    async with lab.browser("admin") as browser, lab.browser() as stranger:
        w, url = await asleep(lab, browser)
        await browser.get(url, headers=PAGE)
        news = f"{lab.origin(w.id)}/_codehub/news/{w.id}"
        async with stranger.get(news) as answer:
            assert answer.status == 404
        async with browser.get(news) as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            assert (await said(answer))["ready"] is False
            await lab.put(w, "STANDBY", desired_state="RUNNING", operation="STARTING")
            while (status := await said(answer))["operation"] != "STARTING":
                pass
            assert status["ready"] is False
            await lab.put(w, "RUNNING", desired_state="RUNNING")
            while not (await said(answer))["ready"]:
                pass


async def said(stream: aiohttp.ClientResponse) -> dict[str, Any]:
    """The next that it says."""
    async for line in stream.content:
        if line.startswith(b"data: "):
            found: dict[str, Any] = json.loads(line[6:])
            return found
    raise AssertionError("the stream ended")
