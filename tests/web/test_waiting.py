"""The waiting page and the pages that lead to it, over HTTP and without a script: one click joins, and what was wanted
opens after entering; nobody waits by looking, or for another person.
"""

import html
import re
import urllib.parse
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import aiohttp
import pytest
import yarl

from codehub.command import operator
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.virtual_time import ManualClock
from tests.waiting_room.queue_site import QueueSite
from tests.web.server import serving

IN_LINE = 'id="position"'
LINK = re.compile(r'href="([^"]*/wait/lab\?[^"]*)"')
FORM = re.compile(r'<form method="post" action="/wait/lab/join"[^>]*>(.*?)</form>', re.DOTALL)
FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


@pytest.fixture
async def queue(settings: Settings, clock: ManualClock) -> AsyncIterator[QueueSite]:
    """One place for all, which jun has."""
    full = replace(settings, limits=replace(settings.limits, max_running_global=1))
    async with open_services(full, clock) as services:
        await services.people.ensure_first_admin()
        for name in ("mina", "jun"):
            await services.people.create_user(operator(), name, Role.LEARNER)
        async with serving(services) as site:
            made = QueueSite.of(site, clock)
            await workspace(made, "jun", Desired.RUNNING)
            yield made


async def workspace(queue: QueueSite, owner: str, state: Desired) -> str:
    caller = Principal(owner, Role.LEARNER, ALL_SCOPES)
    new = NewWorkspace(f"of {owner}", "terminal", state)
    return admitted(await queue.site.services.workspaces.create(caller, new)).id


async def make_room(queue: QueueSite) -> None:
    """Jun's goes to sleep, and the pump sees it."""
    async with queue.site.services.database.connection() as c:
        await c.execute("UPDATE workspaces SET desired_state = 'STANDBY' WHERE name = 'of jun'")
    await queue.tick(2)


async def running(queue: QueueSite) -> list[str]:
    async with queue.site.services.database.connection() as c:
        rows = await c.fetch("SELECT name FROM workspaces WHERE desired_state = 'RUNNING' ORDER BY name")
    return [row["name"] for row in rows]


async def page(browser: aiohttp.ClientSession, path: str, **form: str) -> str:
    sent: Any = browser.post(path, data=form) if form else browser.get(path)
    async with sent as answer:
        return html.unescape(await answer.text())


async def leads(browser: aiohttp.ClientSession, path: str, **form: str) -> str:
    """Where a form sends one."""
    async with browser.post(path, data=form, allow_redirects=False) as answer:
        assert answer.status == 303, await answer.text()
        return answer.headers["location"]


async def waiting(queue: QueueSite, event: str = "lab") -> int:
    return int((await queue.call("GET", f"/events/{event}", "admin")).body["waiting"])


async def test_all_places_are_taken_is_a_line_that_one_click_joins_and_the_wanted_workspace_opens(
    queue: QueueSite,
) -> None:
    mine = await workspace(queue, "mina", Desired.STANDBY)
    async with queue.site.browser("mina") as browser:
        full = await page(browser, f"/_codehub/act/{mine}", action="start")
        assert "You can wait in line" in full
        (link,) = LINK.findall(full)
        line = await page(browser, link)
        assert IN_LINE in line
        assert '<meta http-equiv="refresh"' in line
        assert await waiting(queue) == 1
        await make_room(queue)
        ready = await page(browser, "/wait/lab")
        assert "It's your turn" in ready
        assert "Enter and open “of mina”" in ready
        assert await running(queue) == []
        assert await leads(browser, "/wait/lab/enter", x="") == f"/open/{mine}"
    assert await running(queue) == ["of mina"]
    assert await waiting(queue) == 0


async def test_a_link_that_joins_is_its_persons_alone_and_no_preview_follows_it(queue: QueueSite) -> None:
    mine = await workspace(queue, "mina", Desired.STANDBY)
    async with queue.site.browser("mina") as browser, queue.site.browser("jun") as other:
        (link,) = LINK.findall(await page(browser, f"/_codehub/act/{mine}", action="start"))
        assert IN_LINE not in await page(other, link)
        for forged in (link[:-1] + ("A" if link[-1] != "A" else "B"), f"/wait/lab?workspace={mine}&ticket=x.y"):
            assert IN_LINE not in await page(browser, forged)
        async with browser.get(link, headers={"Sec-Purpose": "prefetch"}) as answer:
            assert answer.status == 200
        async with browser.head(link) as answer:
            assert answer.status == 200
        await queue.clock.advance(3601)
        assert IN_LINE not in await page(browser, link)
        assert await waiting(queue) == 0
        assert IN_LINE in await page(browser, "/wait/lab/join", workspace=mine)


async def test_a_link_that_joins_joins_the_lab_and_no_other_event(queue: QueueSite) -> None:
    await queue.event(capacity=0)
    mine = await workspace(queue, "mina", Desired.STANDBY)
    async with queue.site.browser("mina") as browser:
        (link,) = LINK.findall(await page(browser, f"/_codehub/act/{mine}", action="start"))
        assert IN_LINE not in await page(browser, link.replace("/wait/lab", "/wait/workshop"))
    assert await waiting(queue, "workshop") == 0


async def test_what_is_no_event_becomes_no_cookie_and_no_mistake_of_ours(queue: QueueSite) -> None:
    async with queue.site.browser("mina") as browser:
        for event in ("x;%20Domain=evil.example", "a%0d%0aX-Evil:%201", "%E2%82%AC", "a%00b"):
            for verb in ("leave", "enter", "join", "open", "back"):
                url = yarl.URL(f"/wait/{event}/{verb}", encoded=True)
                async with browser.post(url, data={"x": ""}, allow_redirects=False) as answer:
                    assert answer.status == 303, (event, verb)
                    assert not [c for c in answer.headers.getall("set-cookie", []) if c.startswith("codehub_wait")]


async def test_a_token_of_another_person_in_the_cookie_is_nobodys_place(queue: QueueSite) -> None:
    """As a page of a workspace's origin could put one there, for the whole domain."""
    await queue.event(capacity=0)
    theirs = await queue.token("jae")
    async with queue.site.browser("mina") as browser:
        assert IN_LINE in await page(browser, "/wait/workshop/join", x="")
        (cookie,) = [c for c in browser.cookie_jar if c.key == "codehub_wait_workshop"]
        kept = dict(parse_qsl(cookie.value)) | {"token": theirs}
        browser.cookie_jar.clear(lambda c: c.key == "codehub_wait_workshop")
        browser.cookie_jar.update_cookies({"codehub_wait_workshop": urlencode(kept)})
        assert IN_LINE not in await page(browser, "/wait/workshop")
        await page(browser, "/wait/workshop/leave", x="")
    assert (await queue.status(theirs)).status == 200


async def test_a_cursor_that_is_no_event_is_the_clients_mistake(queue: QueueSite) -> None:
    async with queue.site.browser("mina") as browser, browser.get(yarl.URL("/lines?cursor=%00", encoded=True)) as found:
        assert found.status == 400


async def test_the_dashboard_leads_into_the_line_from_the_card_and_from_the_form(queue: QueueSite) -> None:
    mine = await workspace(queue, "mina", Desired.STANDBY)
    async with queue.site.browser("mina") as browser:
        refused = await page(browser, f"/do/{mine}/start", then="")
        (fields,) = [dict(FIELD.findall(form)) for form in FORM.findall(refused)]
        assert fields == {"workspace": mine}
        refused = await page(browser, "/do/create", name="New & shiny", template="terminal", once="1")
        (fields,) = [dict(FIELD.findall(form)) for form in FORM.findall(refused)]
        assert fields == {"template": "terminal", "name": "New & shiny"}
        assert await leads(browser, "/wait/lab/join", **fields) == "/wait/lab"
        await make_room(queue)
        assert "Enter and open “New & shiny”" in await page(browser, "/wait/lab")
        opened = await leads(browser, "/wait/lab/enter", x="")
        assert re.fullmatch(r"/open/[a-z0-9]+", opened)
        again = await page(browser, "/wait/lab")  # by the back button, or in another tab
        assert "No need to wait" in again
        assert f'href="{opened}"' in again
        assert await leads(browser, "/wait/lab/open", x="") == "/wait/lab", "there is nothing to make any more"
    assert await running(queue) == ["New & shiny"]


async def test_a_browser_keeps_no_place_for_the_next_person_who_uses_it(queue: QueueSite) -> None:
    await queue.event(capacity=0)
    async with queue.site.browser("mina") as browser:
        assert IN_LINE in await page(browser, "/wait/workshop/join", x="")
        link = await queue.site.login_link("jun")
        async with browser.post(link.url(""), data={"instead_of": "mina"}, allow_redirects=False) as answer:
            assert answer.status == 303
        assert IN_LINE not in await page(browser, "/wait/workshop")
        await leads(browser, "/wait/workshop/leave", x="")
    assert await waiting(queue, "workshop") == 1


async def test_what_a_cookie_says_is_not_trusted(queue: QueueSite) -> None:
    await queue.event(capacity=0)
    async with queue.site.browser("mina") as browser:
        for kept in ("", "x", "person=&token=a.b.c.d", "%00%ff", "&" * 50, "person=x&since=9" * 3):
            browser.cookie_jar.update_cookies({"codehub_wait_workshop": kept})
            async with browser.get("/wait/workshop") as answer:
                assert answer.status == 200


async def test_leaving_giving_back_and_an_event_that_is_not_there(queue: QueueSite) -> None:
    await queue.event(capacity=1)
    async with queue.site.browser("mina") as browser:
        await leads(browser, "/wait/workshop/join", x="")
        assert await leads(browser, "/wait/workshop/enter", x="") == "/wait/workshop?problem=NOT_YOUR_TURN"
        assert await leads(browser, "/wait/workshop/leave", x="") == "/wait/workshop?done=left"
        assert "You have left the line." in await page(browser, "/wait/workshop?done=left")
        await leads(browser, "/wait/workshop/join", x="")
        await queue.tick()
        assert await leads(browser, "/wait/workshop/enter", x="") == "/wait/workshop"
        assert "It is held for you until" in await page(browser, "/wait/workshop")
        assert await leads(browser, "/wait/workshop/back", x="") == "/"
        async with browser.get("/wait/nothing") as answer:
            assert answer.status == 404
            assert "There is no such line" in await answer.text()
    async with queue.site.client() as stranger, stranger.get("/wait/workshop", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["location"]) == (303, "/")


async def test_a_tab_whose_place_was_left_in_another_is_not_told_that_it_was_silent(queue: QueueSite) -> None:
    """It may look again before the browser has heard that the token is over."""
    async with queue.site.browser("mina") as browser:
        await leads(browser, "/wait/lab/join", x="")
        kept = {c.key: c.value for c in browser.cookie_jar if c.key == "codehub_wait_lab"}
        token = dict(urllib.parse.parse_qsl(kept["codehub_wait_lab"]))["token"]
        await queue.site.services.waiting_room.leave(token)
        shown = await page(browser, "/wait/lab")
        assert "Your place in line is gone" not in shown
        assert IN_LINE not in shown
        assert not await queue.site.services.waiting_room.was_left("no token")


async def test_only_who_runs_a_line_sees_names_and_changes_it(queue: QueueSite) -> None:
    await queue.site.services.people.create_user(operator(), "kim", Role.TEACHER)
    async with queue.site.browser("kim") as teacher, queue.site.browser("mina") as learner:
        assert 'href="/lines"' in await page(teacher, "/")
        assert 'href="/lines"' not in await page(learner, "/")
        assert await leads(teacher, "/lines", id="workshop", capacity="2") == "/lines/workshop"
        assert await leads(learner, "/lines", id="mine", capacity="2") == "/lines?problem=FORBIDDEN&id=mine&capacity=2"
        await leads(learner, "/wait/workshop/join", x="")
        assert ">mina<" in await page(teacher, "/lines/workshop")
        seen = await page(learner, "/lines/workshop")
        assert "Who waits" not in seen
        assert "line-pause" not in seen
        assert await leads(learner, "/lines/workshop/pause", x="") == "/lines/workshop?problem=FORBIDDEN"
        assert await leads(teacher, "/lines/workshop/pause", x="") == "/lines/workshop"
        assert "Paused" in await page(teacher, "/lines/workshop")
        assert await leads(teacher, "/lines/workshop/open", x="") == "/lines/workshop"
        for wrong, code in (({"capacity": "many"}, "LINE_CAPACITY"), ({"capacity": "9" * 9}, "LINE_CAPACITY")):
            assert (await leads(teacher, "/lines/workshop/capacity", **wrong)).endswith(f"problem={code}")
        refused = await page(teacher, await leads(teacher, "/lines", id="not a name", capacity="17"))
        assert "A line's name has" in refused
        assert 'value="not a name"' in refused  # what was typed comes back
        assert 'value="17"' in refused
        async with teacher.post("/lines/workshop/nothing", data={"x": ""}) as answer:
            assert answer.status == 404


async def test_a_new_line_changes_none_that_is_there(queue: QueueSite) -> None:
    await queue.event("others", capacity=1)
    await queue.site.services.people.create_user(operator(), "kim", Role.TEACHER)
    async with queue.site.browser("kim") as teacher:
        for _ in range(2):  # a double click
            assert await leads(teacher, "/lines", id="workshop", capacity="2") == "/lines/workshop"
        for name in ("workshop", "others", "lab"):
            refused = await page(teacher, await leads(teacher, "/lines", id=name, capacity="7"))
            assert "There is a line of that name already." in refused
            assert '<details class="fold" open>' in refused
    assert (await queue.call("GET", "/events/workshop", "admin")).body["capacity"] == 2


async def test_the_end_of_a_pause_takes_back_nothing_else_and_the_page_says_both(queue: QueueSite) -> None:
    await queue.site.services.people.create_user(operator(), "kim", Role.TEACHER)
    async with queue.site.browser("kim") as teacher, queue.site.browser("mina") as learner:
        await leads(teacher, "/lines", id="workshop", capacity="1")
        await leads(learner, "/wait/workshop/join", x="")
        await queue.tick()
        assert "1 of them heard of lately" in await page(teacher, "/lines/workshop"), "who is offered a place is there"
        for verb in ("drain", "pause"):
            await leads(teacher, f"/lines/workshop/{verb}", x="")
        assert "Paused · Takes nobody new" in await page(teacher, "/lines/workshop")
        await leads(teacher, "/lines/workshop/resume", x="")
        assert "Takes nobody new" in await page(teacher, "/lines/workshop")
    found = (await queue.call("GET", "/events/workshop", "admin")).body
    assert (found["paused"], found["draining"]) == (False, True)


async def test_the_start_page_leads_back_to_the_line_from_any_browser_while_one_waits(queue: QueueSite) -> None:
    back = "You are in line for a place."
    async with queue.site.browser("mina") as one, queue.site.browser("mina") as other:
        assert back not in await page(one, "/")
        assert IN_LINE in await page(one, "/wait/lab/join", template="terminal", name="mine")
        for browser in (one, other):
            shown = await page(browser, "/")
            assert back in shown
            assert 'href="/wait/lab"' in shown.partition(back)[2]
        async with queue.site.browser("jun") as jun:
            assert back not in await page(jun, "/")
        await page(one, "/wait/lab/leave", leave="yes")
        assert back not in await page(one, "/")
