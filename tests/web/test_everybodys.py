"""`/workspaces` and `/bulk/…`, by HTTP as a browser without JavaScript uses them; the coordinator's ticks by hand."""

import html
import itertools
import re
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from codehub.classes.model import MemberRole
from codehub.command import operator
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.settings import Settings
from codehub.workspaces.admission import admitted
from codehub.workspaces.bulk import AT_MOST, BATCH, OPEN_AT_MOST, PATIENCE
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving_with
from tests.workspaces.bulks import loop_of

NUMBERS = itertools.count()
HOSTILE = "<script>alert(1)</script>"
RUNNING = {"observed_status": "RUNNING", "desired_state": "RUNNING", "volume_generation": "g"}
ASLEEP = {"observed_status": "STANDBY", "desired_state": "STANDBY", "volume_generation": "g"}
STORED = {"observed_status": "PENDING", "desired_state": "ARCHIVED", "archive_key": "a/b/1/home.tar.zst"}
BROKEN = {**ASLEEP, "health_status": "ERROR", "error_info": {"reason": "StartFailed", "operation": "STARTING"}}
LOST = {**BROKEN, "error_info": {"reason": "DataLost", "operation": "STARTING"}}
BUSY = {**RUNNING, "operation": "STOPPING", "op_id": "o"}


@pytest.fixture(autouse=True)
async def people(site: Site) -> None:
    for name, called in (("mina", "김미나"), ("jun", "")):
        await site.services.people.create_user(operator(), name, Role.LEARNER, called)


async def make(site: Site, name: str, state: dict[str, Any], owner: str = "mina", template: str = "terminal") -> str:
    """As the controller would have left it."""
    person = Principal(owner, Role.LEARNER, ALL_SCOPES)
    made = admitted(await site.services.workspaces.create(person, NewWorkspace(name, template, Desired.STANDBY)))
    in_order = made.created_at + timedelta(milliseconds=next(NUMBERS))
    await change(site, made.id, **{"created_at": in_order, **state})
    return made.id


async def change(site: Site, id_: str, **state: Any) -> None:
    columns = ", ".join(f"{column} = ${place}" for place, column in enumerate(state, 3))
    async with site.services.database.connection() as c:
        now = site.services.clock.now()
        await c.execute(f"UPDATE workspaces SET updated_at = $2, {columns} WHERE id = $1", id_, now, *state.values())


async def page(client: aiohttp.ClientSession, path: str = "/workspaces", status: int = 200) -> str:
    async with client.get(path, headers={"accept": "text/html"}) as answer:
        assert answer.status == status, path
        return html.unescape(await answer.text())


async def ask(client: aiohttp.ClientSession, verb: str, *ids: str, **form: str) -> str:
    data = {"verb": verb, **{f"pick-{id_}": "yes" for id_ in ids}, **form}
    async with client.post("/bulk", data=data, allow_redirects=False) as answer:
        assert answer.status == 303, await answer.text()
        return answer.headers["location"]


def listed(text: str) -> list[str]:
    return re.findall(r'name="pick-([^"]+)"', text)


def totals(text: str) -> dict[str, int]:
    found = re.findall(r"<a href=\"/workspaces\?[^>]*>(?:<span[^>]*>.</span> )?([^<]+) <strong>([\d,]+)</strong>", text)
    return {name: int(n.replace(",", "")) for name, n in found}


def became(text: str) -> dict[str, str]:
    """By name: what the page says of each, and why."""
    rows = re.findall(r'<li data-key="[^"]*">(.*?)</li>', text, re.DOTALL)
    said = {}
    for row in rows:
        name = re.findall(r"<strong>(.*?)</strong>", row)[0]
        why = re.findall(r'<span class="under why">(.*?)</span>', row)
        state = re.findall(r"</span> ([^<]+)</span>\s*$", row.strip())[0]
        said[name] = ": ".join([state, *why])
    return said


async def wanted(site: Site, *ids: str) -> list[str]:
    found = [await site.services.workspaces.get(operator(), id_) for id_ in ids]
    return ["deleted" if w.deleted_at else w.desired_state.value for w in found]


async def test_workspaces_are_found_by_what_is_known_of_them(site: Site, clock: ManualClock) -> None:
    old = await make(site, "Old essay", ASLEEP)
    await clock.advance(2 * 86400)
    lab = await make(site, "Lab", RUNNING, "jun")
    young = await make(site, "Young essay", ASLEEP, "jun", "jupyterlab")
    broken = await make(site, "Broken", BROKEN)
    gone = await make(site, "Gone", {**ASLEEP, "deleted_at": clock.now()})
    school = await site.services.classes.create(operator(), "1-A")
    await site.services.classes.add_member(operator(), school.id, "jun", MemberRole.LEARNER)
    queries = {
        "": [broken, young, lab, old],
        "?q=ESSAY": [young, old],
        f"?q={lab[:8]}": [lab],
        "?q=미나": [broken, old],
        "?q=jun": [young, lab],
        "?q=%25": [],
        "?phase=ERROR": [broken],
        "?phase=TRASH": [gone],
        "?phase=nonsense&asleep=nonsense&sort=nonsense": [broken, young, lab, old],
        "?owner=jun": [young, lab],
        "?owner=nobody": [],
        "?template=jupyterlab": [young],
        f"?class={school.id}": [young, lab],
        "?asleep=1d": [old],
        "?sort=name": [broken, lab, old, young],
        "?sort=changed&phase=STANDBY": [old, young],
        "?cursor=nonsense": [broken, young, lab, old],
    }
    async with site.browser("admin") as admin:
        found = {query: listed(await page(admin, f"/workspaces{query}")) for query in queries}
    assert found == queries


async def test_numbers_by_phase_are_those_of_what_was_searched_for(site: Site) -> None:
    for number in range(3):
        await make(site, f"Lab {number}", RUNNING if number else BROKEN)
    await make(site, "Essay", STORED, "jun")
    async with site.browser("admin") as admin:
        everything = totals(await page(admin))
        of_labs = totals(await page(admin, "/workspaces?q=lab&phase=RUNNING"))
    assert everything == {
        "All": 4, "Running": 2, "Asleep": 0, "Stored away": 1, "Not started yet": 0, "In error": 1, "Trash": 0,
    }  # fmt: skip
    assert (of_labs["All"], of_labs["Running"], of_labs["In error"], of_labs["Stored away"]) == (3, 2, 1, 0)


@pytest.mark.parametrize("sort", ["new", "name", "changed", "size"])
async def test_every_order_is_shown_page_by_page_with_none_twice_and_none_left_out(site: Site, sort: str) -> None:
    made = {
        await make(site, f"Lab {number % 7}. ~{number}", {**ASLEEP, "disk_bytes": number % 5}) for number in range(60)
    }
    async with site.browser("admin") as admin:
        first = await page(admin, f"/workspaces?sort={sort}&owner=mina")
        (more,) = re.findall(r'href="(/workspaces\?[^"]*cursor=[^"]*)"', first)
        second = await page(admin, more)
    assert (len(listed(first)), len(listed(second))) == (48, 12)
    assert set(listed(first) + listed(second)) == made
    assert "cursor=" not in second.partition("Show all")[2].partition("bulk-bar")[0]


async def test_only_admins_see_it(site: Site, nobody: aiohttp.ClientSession) -> None:
    id_ = await make(site, "Lab", RUNNING)
    async with site.browser("admin") as admin:
        of_admin = await ask(admin, "sleep", id_)
    async with site.browser("jun") as jun:
        for path in ("/workspaces", of_admin):
            await page(jun, path, status=403)
        for path in ("/bulk", f"{of_admin}/undo"):
            async with jun.post(path, data={"verb": "delete", f"pick-{id_}": "yes"}) as answer:
                assert answer.status == 403
    async with nobody.get("/workspaces", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["location"]) == (303, "/")


async def test_names_are_text(site: Site) -> None:
    id_ = await make(site, HOSTILE, RUNNING)
    async with site.browser("admin") as admin:
        for path in ("/workspaces", f"/workspaces?q={HOSTILE}", await ask(admin, "sleep", id_)):
            async with admin.get(path) as answer:
                assert HOSTILE not in await answer.text()


async def test_several_are_asked_at_once_and_the_page_says_what_became_of_each(site: Site) -> None:
    runs, sleeps = await make(site, "Runs", RUNNING), await make(site, "Sleeps", ASLEEP)
    stored, broken = await make(site, "Stored", STORED), await make(site, "Broken", BROKEN)
    loop = await loop_of(site.services)
    async with site.browser("admin") as admin:
        path = await ask(admin, "sleep", runs, sleeps, stored, broken)
        before = await page(admin, path)
        await loop.tick()
        after = await page(admin, path)
        history = await page(admin, f"/workspaces/{runs}")
    assert set(became(before).values()) == {"Still to come: As soon as nothing else is under way there."}
    assert "This goes on by itself" in before
    assert became(after) == {
        "Broken": "Not done: It is in error. Recover it first.",
        "Runs": "Done",
        "Sleeps": "Was so already",
        "Stored": "Was so already",
    }
    assert "That was all of them" in after
    assert await wanted(site, runs, stored) == ["STANDBY", "ARCHIVED"]
    assert "admin" in history


async def test_waking_goes_through_admission_one_by_one(settings: Settings, clock: ManualClock) -> None:
    async with serving_with(settings, clock, max_running_global=3, max_running_per_user=2) as site:
        ids = [await make(site, f"{owner} {n}", ASLEEP, owner) for owner in ("mina", "jun") for n in range(3)]
        async with site.browser("admin") as admin:
            path = await ask(admin, "start", *ids)
            await (await loop_of(site.services)).tick()
            said = became(await page(admin, path))
    assert {name: text.partition(":")[0] for name, text in said.items()} == {
        "mina 0": "Done", "mina 1": "Done", "mina 2": "Not done",
        "jun 0": "Done", "jun 1": "Not done", "jun 2": "Not done",
    }  # fmt: skip
    assert "as many running as they may" in said["mina 2"]
    assert "All places are taken" in said["jun 1"]


async def test_what_is_busy_is_done_when_it_is_free_and_no_person_is_sent_away(site: Site, clock: ManualClock) -> None:
    id_ = await make(site, "Busy", BUSY)
    loop = await loop_of(site.services)
    async with site.browser("admin") as admin:
        path = await ask(admin, "archive", id_)
        tick = await loop.tick()
        waits = became(await page(admin, path))
        await change(site, id_, **ASLEEP, operation="NONE")
        await clock.advance(2)
        await loop.tick()
        done = became(await page(admin, path))
    assert tick.again_in is not None
    assert waits == {"Busy": "Still to come: As soon as nothing else is under way there."}
    assert done == {"Busy": "Done"}
    assert await wanted(site, id_) == ["ARCHIVED"]


async def test_what_stays_busy_is_given_up_and_said(site: Site, clock: ManualClock) -> None:
    id_ = await make(site, "Busy", BUSY)
    async with site.browser("admin") as admin:
        path = await ask(admin, "delete", id_)
        await clock.advance(PATIENCE.total_seconds() + 1)
        await (await loop_of(site.services)).tick()
        said = await page(admin, path)
    assert "so this was given up" in became(said)["Busy"]
    assert "OPERATION_IN_PROGRESS" not in said


async def test_recovering_leaves_what_needs_a_decision_to_a_person(site: Site) -> None:
    ids = [await make(site, name, state) for name, state in (("A", BROKEN), ("B", LOST), ("C", RUNNING))]
    async with site.browser("admin") as admin:
        path = await ask(admin, "recover", *ids)
        await (await loop_of(site.services)).tick()
        said = became(await page(admin, path))
    assert said == {
        "A": "Done",
        "B": "Not done: Its files were lost. Its own page asks how to go on.",
        "C": "Was so already",
    }


async def test_what_was_deleted_comes_back_with_one_click(site: Site) -> None:
    ids = [await make(site, f"Lab {n}", ASLEEP) for n in range(3)]
    loop = await loop_of(site.services)
    async with site.browser("admin") as admin:
        path = await ask(admin, "delete", *ids[:2])
        await loop.tick()
        assert await wanted(site, *ids) == ["deleted", "deleted", "STANDBY"]
        assert "Undo" in await page(admin, path)
        async with admin.post(f"{path}/undo", allow_redirects=False) as answer:
            back = answer.headers["location"]
        await loop.tick()
        assert set(became(await page(admin, back)).values()) == {"Done"}
        assert "Undo" not in await page(admin, path)
    assert await wanted(site, *ids) == ["STANDBY"] * 3


async def test_all_that_match_are_more_than_one_page_and_no_more_than_the_bound(site: Site, clock: ManualClock) -> None:
    first = await make(site, "Lab 0", RUNNING)
    async with site.services.database.connection() as c:
        await c.execute(
            "INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at,"
            " observed_status, desired_state, desired_by, desired_at, last_access_at, volume_generation)"
            " SELECT 'w' || n, 'Lab ' || n, template, owner_id, $2, $2, $2, 'RUNNING', 'RUNNING', 'user', $2, $2, 'g'"
            " FROM workspaces, generate_series(1, 519) AS n WHERE id = $1",
            *(first, clock.now()),
        )
    await make(site, "Other", RUNNING, "jun")
    loop = await loop_of(site.services)
    async with site.browser("admin") as admin:
        assert "All 520 that match" in await page(admin, "/workspaces?q=lab")
        path = await ask(admin, "sleep", all="yes", search="q=lab")
        while (await loop.tick()).again_in is not None:
            pass
        text = await page(admin, path)
    assert set(became(text).values()) == {"Done"}
    assert (len(became(text)), AT_MOST > BATCH) == (500, True)
    assert "500 of the 520" in text


async def test_a_double_click_does_it_once_and_nothing_chosen_is_said(site: Site) -> None:
    id_ = await make(site, "Lab", RUNNING)
    async with site.browser("admin") as admin:
        (number,) = re.findall(r'name="once" value="([^"]*)"', await page(admin))
        both = [await ask(admin, "sleep", id_, once=number) for _ in range(2)]
        nothing = await ask(admin, "sleep", search="q=Lab&phase=RUNNING")
        said = await page(admin, nothing)
    assert both[0] == both[1]
    assert "Choose at least one workspace first" in said
    assert listed(said) == [id_]  # the search is as it was


async def test_an_admin_who_is_none_any_more_is_not_obeyed(site: Site) -> None:
    await site.services.people.create_user(operator(), "kim", Role.ADMIN)
    id_ = await make(site, "Lab", RUNNING)
    async with site.browser("kim") as kim:
        path = await ask(kim, "sleep", id_)
    await site.services.people.change_user(operator(), "kim", role=None, active=False)
    await (await loop_of(site.services)).tick()
    async with site.browser("admin") as admin:
        said = became(await page(admin, path))
    assert said["Lab"].startswith("Not done")
    assert await wanted(site, id_) == ["RUNNING"]


async def test_there_is_a_bound_on_what_is_under_way(site: Site) -> None:
    id_ = await make(site, "Lab", RUNNING)
    async with site.browser("admin") as admin:
        for _ in range(OPEN_AT_MOST):
            assert (await ask(admin, "sleep", id_)).startswith("/bulk/")
        assert "problem=BULK_LIMIT" in await ask(admin, "sleep", id_)
