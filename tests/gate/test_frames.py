"""A workspace in the frame of our own page: whom the pass is for, what the IDE's answers become, who stays outside."""

import asyncio
import html
import re
from dataclasses import replace
from datetime import timedelta

import aiohttp
import pytest
from yarl import URL

from codehub.command import operator
from codehub.gate import director
from codehub.policy.model import Role
from codehub.web import frame_view
from codehub.workspaces.model import Workspace
from tests.gate.lab import PAGE, Lab
from tests.virtual_time import ManualClock

IN_FRAME = {**PAGE, "Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "cross-site"}


async def open_page(lab: Lab, browser: aiohttp.ClientSession, id_: str, **headers: str) -> tuple[int, str, str]:
    """Status, policy and text of the page around it."""
    async with browser.get(f"{lab.url}/open/{id_}", headers={**PAGE, **headers}, allow_redirects=False) as answer:
        return answer.status, answer.headers.get("Content-Security-Policy", ""), await answer.text()


def first_address(text: str) -> str:
    found = re.search(r'<iframe id="ide" src="([^"]+)"', text)
    assert found, text
    return html.unescape(found[1])


async def enter(browser: aiohttp.ClientSession, address: str, **headers: str) -> aiohttp.ClientResponse:
    async with browser.get(
        URL(address, encoded=True), headers={**IN_FRAME, **headers}, allow_redirects=False
    ) as answer:
        return answer


async def pass_of(lab: Lab, browser: aiohttp.ClientSession, w: Workspace) -> str:
    """By the frame, as a browser keeps it: the cookie's name and value."""
    _, _, text = await open_page(lab, browser, w.id)
    answer = await enter(browser, first_address(text), Referer=f"{lab.url}/")
    assert answer.status == 303
    kept = answer.headers["Set-Cookie"]
    assert kept.startswith("codehub-pass=")
    assert kept.partition("; ")[2].partition("; Max-Age")[0] == "Path=/; HttpOnly; SameSite=None; Secure; Partitioned"
    return kept.partition(";")[0]


async def test_the_page_around_it_may_show_this_workspace_and_nothing_else(lab: Lab) -> None:
    w = await lab.running()
    async with lab.browser("admin") as browser:
        status, policy, text = await open_page(lab, browser, w.id)
    assert status == 200
    assert f"frame-src 'self' {lab.origin(w.id)}" in policy.split("; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy
    assert first_address(text).startswith(f"{lab.origin(w.id)}/_codehub/enter?ticket=")


async def test_an_ide_in_the_frame_answers_for_that_frame_alone(lab: Lab) -> None:
    w = await lab.running()
    lab.ide.answer = {
        "Content-Security-Policy": "default-src 'self'; frame-ancestors 'self'; report-uri /x",
        "X-Frame-Options": "SAMEORIGIN",
        "Set-Cookie": "_xsrf=1; Path=/w; SameSite=Lax",
    }
    async with lab.browser("admin") as browser:
        cookie = await pass_of(lab, browser, w)
        async with browser.get(f"{lab.origin(w.id)}/w/{w.id}/lab", headers={**IN_FRAME, "Cookie": cookie}) as answer:
            assert answer.status == 200
            assert answer.headers.getall("Content-Security-Policy") == [
                "default-src 'self'; report-uri /x",
                f"frame-ancestors 'self' {lab.url}",
            ]
            assert "X-Frame-Options" not in answer.headers
            assert answer.headers["Set-Cookie"] == "_xsrf=1; Path=/w; SameSite=None; Secure; Partitioned"


async def test_an_ide_in_a_tab_of_its_own_answers_as_it_likes(lab: Lab) -> None:
    w = await lab.running()
    lab.ide.answer = {"X-Frame-Options": "SAMEORIGIN", "Set-Cookie": "_xsrf=1; SameSite=Lax"}
    async with lab.browser("admin") as browser, browser.get(f"{lab.url}/w/{w.id}/lab", headers=PAGE) as answer:
        assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
        assert answer.headers["Set-Cookie"] == "_xsrf=1; SameSite=Lax"
        assert "Content-Security-Policy" not in answer.headers


@pytest.mark.parametrize(
    ("what", "headers"),
    [
        ("another page's frame", {"Referer": "http://evil.example/"}),
        ("nobody's frame", {"Referer": ""}),
        ("another workspace's page", {"Referer": "http://other.localhost:1/"}),
        ("a page of its own", {"Sec-Fetch-Dest": "document"}),
        ("a browser that says nothing", {"Sec-Fetch-Dest": ""}),
    ],
)
async def test_a_ticket_for_our_frame_fits_nowhere_else(lab: Lab, what: str, headers: dict[str, str]) -> None:
    w = await lab.running()
    async with lab.browser("admin") as browser:
        _, _, text = await open_page(lab, browser, w.id)
        answer = await enter(browser, first_address(text), **{"Referer": f"{lab.url}/", **headers})
        assert "Set-Cookie" not in answer.headers, what


async def test_a_ticket_for_our_frame_works_once_and_for_its_workspace(lab: Lab) -> None:
    w, other = await lab.running(), await lab.running()
    async with lab.browser("admin") as browser:
        _, _, text = await open_page(lab, browser, w.id)
        address = first_address(text)
        elsewhere = await enter(browser, address.replace(lab.origin(w.id), lab.origin(other.id)), Referer=f"{lab.url}/")
        assert "Set-Cookie" not in elsewhere.headers
        assert "Set-Cookie" in (await enter(browser, address, Referer=f"{lab.url}/")).headers
        browser.cookie_jar.clear()
        assert "Set-Cookie" not in (await enter(browser, address, Referer=f"{lab.url}/")).headers


WORKER = {"Service-Worker": "script", "Sec-Fetch-Dest": "serviceworker", "Sec-Fetch-Site": "same-origin"}


async def worker_pass_of(lab: Lab, browser: aiohttp.ClientSession, w: Workspace) -> str:
    """What a browser keeps for the script of a service worker in the frame."""
    _, _, text = await open_page(lab, browser, w.id)
    answer = await enter(browser, first_address(text) + "&worker=1", Referer=f"{lab.url}/")
    assert answer.status == 200  # a page that asks the browser for a service worker, and goes on
    assert f"frame-ancestors {lab.url};" in answer.headers["Content-Security-Policy"]
    partitioned, kept = answer.headers.getall("Set-Cookie")
    assert "Partitioned" in partitioned
    assert re.fullmatch(r"codehub-worker-pass=\S+; Path=/; HttpOnly; SameSite=None; Secure; Max-Age=\d+", kept)
    return kept.partition(";")[0]


async def test_a_service_worker_in_the_frame_gets_its_script_and_nothing_else(lab: Lab) -> None:
    """Browsers ask for it without the cookies of the frame, which are for pages inside of ours alone."""
    w, other = await lab.running(), await lab.running()
    async with lab.browser("admin") as browser, lab.browser() as bare:
        cookie = await worker_pass_of(lab, browser, w)
        script = f"{lab.origin(w.id)}/w/{w.id}/worker.js"

        async def asked(url: str, method: str = "GET", **headers: str) -> int:
            async with bare.request(method, url, headers={"Cookie": cookie, **WORKER, **headers}) as answer:
                return answer.status

        assert await asked(script) == 200
        assert "Cookie" not in lab.ide.requests[-1]["headers"]
        before = len(lab.ide.requests)
        assert await asked(script, **{"Sec-Fetch-Dest": "empty"}) == 401
        assert await asked(script, **{"Sec-Fetch-Site": "cross-site"}) == 401
        assert await asked(script, "POST") == 401
        assert await asked(script, Cookie=cookie.replace("worker-pass", "pass")) == 401
        assert await asked(f"{lab.origin(other.id)}/w/{other.id}/worker.js") == 401
        assert len(lab.ide.requests) == before


async def test_only_an_ide_that_needs_a_service_worker_gets_a_pass_for_one(lab: Lab) -> None:
    w, code = await lab.running(), await lab.running()
    await lab.put(code, "RUNNING", desired_state="RUNNING", template="code-server")  # which need not be installed here
    async with lab.browser("admin") as browser:
        assert "worker=1" not in first_address((await open_page(lab, browser, w.id))[2])
        assert "worker=1" in first_address((await open_page(lab, browser, code.id))[2])


async def test_a_pass_of_a_tab_opens_no_frame(lab: Lab) -> None:
    """Browsers do not send it there; and if one did, another site's page would use it."""
    w = await lab.running()
    async with lab.browser("admin") as browser:
        await browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE)
        before = len(lab.ide.requests)
        async with browser.get(f"{lab.origin(w.id)}/w/{w.id}/", headers=IN_FRAME) as answer:
            assert answer.status == 403
        assert len(lab.ide.requests) == before


async def test_a_frame_without_a_pass_tells_the_page_around_it(lab: Lab) -> None:
    w = await lab.running()
    address, port = f"{lab.origin(w.id)}/w/{w.id}/", URL(lab.url).port
    async with lab.browser() as stranger, stranger.get(address, headers=IN_FRAME, allow_redirects=False) as answer:
        assert answer.status == 403
        ours = f"http://localhost:{port} http://127.0.0.1:{port} http://[::1]:{port}"
        assert f"frame-ancestors {ours};" in answer.headers["Content-Security-Policy"]
        assert "frame_over.js" in await answer.text()
    assert lab.ide.requests == []


async def test_a_look_is_no_visit_and_wakes_nothing(lab: Lab) -> None:
    w = await lab.workspace()
    await lab.put(w, "STANDBY", desired_state="STANDBY")
    async with lab.browser("admin") as browser:
        status, _, text = await open_page(lab, browser, w.id, **{"X-Requested-With": "fetch"})
        assert (status, 'data-cover="asleep"' in text, "<iframe" in text) == (200, True, False)
        assert (await lab.services.workspaces.get(operator(), w.id)).desired_state == "STANDBY"
        status, _, text = await open_page(lab, browser, w.id)
        assert (status, "is waking up" in text) == (503, True)
        assert (await lab.services.workspaces.get(operator(), w.id)).desired_state == "RUNNING"


async def test_somebody_elses_is_not_there_either(lab: Lab) -> None:
    w = await lab.running()
    await lab.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with lab.browser("mina") as browser:
        assert [(await open_page(lab, browser, id_))[0] for id_ in (w.id, "nothing", "NOT-A-LABEL")] == [404] * 3
    async with lab.browser() as stranger:
        assert (await open_page(lab, stranger, w.id))[0] == 303


async def test_the_bar_warns_two_minutes_before_it_sleeps_and_is_calmed_by_keeping_it_awake(
    lab: Lab, clock: ManualClock
) -> None:
    w = await lab.running()
    w, now = await lab.services.workspaces.get(operator(), w.id), lab.services.clock.now()
    for seconds, warns in ((600, False), (121, False), (120, True), (1, True), (-30, True)):
        assert frame_view.warns(w, now + timedelta(seconds=seconds), now) is warns
        until = now + timedelta(seconds=seconds)
        assert frame_view.warns(replace(w, keep_awake_until=until), until, now) is warns  # until then it was kept awake
    assert not frame_view.warns(w, None, now)
    await clock.advance(lab.services.settings.ttl.standby_seconds - 60)
    async with lab.browser("admin") as browser:
        assert "Goes to sleep in less than 2 minutes" in (await open_page(lab, browser, w.id))[2]
        async with browser.post(
            f"{lab.url}/do/{w.id}/keep_awake", data={"then": "frame"}, headers=PAGE, allow_redirects=False
        ) as answer:
            assert URL(answer.headers["Location"]).path == f"/open/{w.id}"
        assert "Goes to sleep in less than 2 minutes" not in (await open_page(lab, browser, w.id))[2]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"session": "s1", "run": "r1", "fence": "3"}, "/sessions/s1?run=r1&fence=3"),
        ({"session": "s1", "run": "r1"}, ""),
        ({"session": "../account", "run": "r1", "fence": "3"}, ""),
        ({"session": "//evil.example", "run": "r1", "fence": "3"}, ""),
        ({"session": "s1", "run": "r1", "fence": "3&x=javascript:"}, ""),
    ],
)
def test_only_a_sessions_page_stands_beside_an_ide(query: dict[str, str], shown: str) -> None:
    assert frame_view.panel(query) == shown


# --- while it wakes


async def frame_of_a_sleeper(lab: Lab, browser: aiohttp.ClientSession) -> tuple[Workspace, dict[str, str]]:
    """One that opening its page has woken, and what its frame asks with once it has its pass."""
    w = await lab.workspace()
    await lab.put(w, "STANDBY", desired_state="STANDBY")
    given = await pass_of(lab, browser, w)
    return w, {**IN_FRAME, "Cookie": given}


async def held(lab: Lab, w: Workspace) -> None:
    async with asyncio.timeout(20):
        while (route := lab.director.routes.get(w.id)) is None or not route.waiting:
            await asyncio.sleep(0.005)


async def test_the_frame_is_held_while_it_wakes_and_gets_the_ide_itself(lab: Lab) -> None:
    async with lab.browser("admin") as browser, lab.browser() as frame:
        w, headers = await frame_of_a_sleeper(lab, browser)
        asked = asyncio.create_task(frame.get(f"{lab.origin(w.id)}/w/{w.id}/", headers=headers, allow_redirects=False))
        await held(lab, w)
        assert lab.ide.requests == []
        await lab.put(w, "RUNNING", desired_state="RUNNING")
        assert (await asked).status == 200
    assert [request["path"] for request in lab.ide.requests] == [f"/w/{w.id}/"]


async def test_a_start_that_is_called_off_is_not_begun_again_by_the_frame_that_waits(lab: Lab) -> None:
    async with lab.browser("admin") as browser, lab.browser() as frame:
        w, headers = await frame_of_a_sleeper(lab, browser)
        asked = asyncio.create_task(frame.get(f"{lab.origin(w.id)}/w/{w.id}/", headers=headers, allow_redirects=False))
        await held(lab, w)
        await lab.put(w, "STANDBY", desired_state="STANDBY")
        assert (await asked).status == 503
        assert (await lab.services.workspaces.get(operator(), w.id)).desired_state == "STANDBY"
    assert lab.ide.requests == []


async def test_a_start_that_fails_is_said_in_the_frame_that_waits(lab: Lab) -> None:
    async with lab.browser("admin") as browser, lab.browser() as frame:
        w, headers = await frame_of_a_sleeper(lab, browser)
        asked = asyncio.create_task(frame.get(f"{lab.origin(w.id)}/w/{w.id}/", headers=headers, allow_redirects=False))
        await held(lab, w)
        info = {"reason": "Timeout", "operation": "STARTING", "is_terminal": True, "error_count": 1}
        info |= {"last_error": "it did not answer", "occurred_at": "2026-03-02T09:00:00Z"}
        await lab.put(w, "STANDBY", desired_state="RUNNING", health_status="ERROR", error_info=info)
        answer = await asked
        assert (answer.status, "Something went wrong" in await answer.text()) == (502, True)


async def test_what_takes_longer_is_shown_in_the_frame_as_anywhere(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(director, "HOLD_SECONDS", 0.05)
    async with lab.browser("admin") as browser, lab.browser() as frame:
        w, headers = await frame_of_a_sleeper(lab, browser)
        async with frame.get(f"{lab.origin(w.id)}/w/{w.id}/", headers=headers, allow_redirects=False) as answer:
            assert (answer.status, 'id="waking"' in await answer.text()) == (503, True)
