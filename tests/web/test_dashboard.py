"""The dashboard's pages and forms as any browser sends them, without JavaScript: by POST and 303."""

import asyncio
import html
import re
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from codehub.command import operator
from codehub.db import Connection
from codehub.policy.model import Principal, Role, Scope
from codehub.workspaces import store
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, Operation, Workspace
from codehub.workspaces.service import NewWorkspace
from tests.virtual_time import ManualClock
from tests.web.server import Site

TEMPLATE = "jupyterlab"
HOSTILE = '<script>alert("x")</script>'


def person(name: str) -> Principal:
    return Principal(name, Role.LEARNER, operator().scopes)


@pytest.fixture(autouse=True)
async def people(site: Site) -> None:
    for name in ("mina", "jun"):
        await site.services.people.create_user(operator(), name, Role.LEARNER)


@pytest.fixture
async def mina(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    async with site.browser("mina") as browser:
        yield browser


async def make(site: Site, name: str = "Week 3", owner: str = "mina") -> Workspace:
    return admitted(await site.services.workspaces.create(person(owner), NewWorkspace(name, TEMPLATE, Desired.STANDBY)))


async def put(site: Site, w: Workspace, **columns: object) -> None:
    """A state that only the coordinator would bring about; none runs here."""
    named = ", ".join(f"{column} = ${place}" for place, column in enumerate(columns, 2))
    async with site.services.database.connection() as c:
        await c.execute(f"UPDATE workspaces SET {named} WHERE id = $1", w.id, *columns.values())


async def post(browser: aiohttp.ClientSession, path: str, **form: str) -> tuple[int, str, dict[str, str]]:
    """(status, path it leads to, what its address says)"""
    async with browser.post(path, data=form, allow_redirects=False) as answer:
        target = urlsplit(answer.headers.get("location", ""))
        said = {name: values[0] for name, values in parse_qs(target.query, keep_blank_values=True).items()}
        return answer.status, target.path, said


async def page(browser: aiohttp.ClientSession, path: str = "/", status: int = 200) -> str:
    async with browser.get(path) as answer:
        assert answer.status == status
        return html.unescape(await answer.text())


async def now(site: Site, w: Workspace) -> Workspace:
    return await site.services.workspaces.get(operator(), w.id)


async def test_creating_leads_straight_into_the_workspace(site: Site, mina: aiohttp.ClientSession) -> None:
    assert "Your first workspace" in await page(mina)
    status, path, _ = await post(mina, "/do/create", name="  Week\t3 ", template=TEMPLATE)
    found = re.fullmatch(r"/open/([a-z0-9]+)", path)
    assert status == 303
    assert found
    w = await site.services.workspaces.get(operator(), found[1])
    assert (w.name, w.owner, w.template, w.desired_state) == ("Week 3", "mina", TEMPLATE, Desired.RUNNING)
    assert "Week 3" in await page(mina)


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"name": "", "template": TEMPLATE}, "NAME"),
        ({"name": "x" * 101, "template": TEMPLATE}, "NAME"),
        ({"name": "a\u202eb", "template": TEMPLATE}, "NAME"),
        ({"name": "fine", "template": "nothing-like-it"}, "TEMPLATE"),
        ({"name": "fine"}, "TEMPLATE"),
        ({}, "NAME"),
    ],
)
async def test_what_was_typed_comes_back_when_creating_is_refused(
    site: Site, mina: aiohttp.ClientSession, form: dict[str, str], problem: str
) -> None:
    status, path, said = await post(mina, "/do/create", **form)
    assert (status, path, said["problem"]) == (303, "/", problem)
    assert said.get("name", "") == form.get("name", "")[:100]
    assert said.get("template", "") == form.get("template", "")
    shown = await page(mina, f"/?problem={problem}&name=typed+before&template={TEMPLATE}")
    assert 'value="typed before"' in shown
    assert "Your first workspace" in shown


async def test_a_double_click_on_create_makes_one_workspace(site: Site, mina: aiohttp.ClientSession) -> None:
    key = re.findall(r'name="once" value="([^"]+)"', await page(mina))[0]
    first = await post(mina, "/do/create", name="Lab", template=TEMPLATE, once=key)
    second = await post(mina, "/do/create", name="Lab", template=TEMPLATE, once=key)
    assert first == second
    another = await post(mina, "/do/create", name="Another", template=TEMPLATE, once=key)  # by the back button
    assert another != first
    fresh = re.findall(r'name="once" value="([^"]+)"', await page(mina))[0]
    assert fresh != key
    third = await post(mina, "/do/create", name="Lab", template=TEMPLATE, once=fresh)
    assert third != first


@pytest.mark.parametrize(
    ("verb", "wanted"), [("start", Desired.RUNNING), ("stop", Desired.STANDBY), ("archive", Desired.ARCHIVED)]
)
async def test_a_request_is_recorded_and_leads_back(
    site: Site, mina: aiohttp.ClientSession, verb: str, wanted: Desired
) -> None:
    w = await make(site)
    assert await post(mina, f"/do/{w.id}/{verb}") == (303, "/", {})
    assert (await now(site, w)).desired_state is wanted
    assert await post(mina, f"/do/{w.id}/{verb}", then="page") == (303, f"/workspaces/{w.id}", {})


async def test_starting_may_lead_into_the_workspace(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site)
    assert await post(mina, f"/do/{w.id}/start", then="open") == (303, f"/open/{w.id}", {})
    assert await post(mina, f"/do/{w.id}/start", then="https://evil.example/") == (303, "/", {})


async def test_deleting_can_be_undone_right_there(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site)
    status, path, said = await post(mina, f"/do/{w.id}/delete")
    assert (status, path, said) == (303, "/", {"at": w.id, "done": "deleted"})
    shown = await page(mina, f"/?at={w.id}&done=deleted")
    assert "“Week 3” is in the trash." in shown
    assert f'action="/do/{w.id}/undelete"' in shown
    assert f'id="w-{w.id}"' not in shown
    await post(mina, f"/do/{w.id}/undelete")
    assert f'id="w-{w.id}"' in await page(mina)


async def test_a_click_during_an_operation_waits_for_its_end(
    site: Site, mina: aiohttp.ClientSession, clock: ManualClock
) -> None:
    w = await make(site)
    await put(site, w, operation=Operation.PROVISIONING, op_id="op")
    asked = asyncio.create_task(post(mina, f"/do/{w.id}/stop"))
    while not clock._sleepers:
        await asyncio.sleep(0.01)
    await put(site, w, operation=Operation.NONE)
    await clock.advance(0.25)
    assert await asked == (303, "/", {})


async def test_one_that_takes_too_long_is_refused_in_words(
    site: Site, mina: aiohttp.ClientSession, clock: ManualClock
) -> None:
    w = await make(site)
    await put(site, w, operation=Operation.PROVISIONING, op_id="op")
    asked = asyncio.create_task(post(mina, f"/do/{w.id}/stop"))
    while not asked.done():
        await asyncio.sleep(0.01)
        await clock.advance(0.25)
    assert await asked == (303, "/", {"at": w.id, "problem": "OPERATION_IN_PROGRESS"})
    assert "Something is still under way here." in await page(mina, f"/?at={w.id}&problem=OPERATION_IN_PROGRESS")


async def test_one_that_is_to_be_opened_leads_to_the_page_that_waits_for_it(
    site: Site, mina: aiohttp.ClientSession, clock: ManualClock
) -> None:
    w = await make(site)
    await put(site, w, operation=Operation.PROVISIONING, op_id="op")
    asked = asyncio.create_task(post(mina, f"/do/{w.id}/start", then="open"))
    while not asked.done():
        await asyncio.sleep(0.01)
        await clock.advance(0.25)
    assert await asked == (303, f"/open/{w.id}", {})


async def test_an_address_cannot_put_words_into_our_mouth(site: Site, mina: aiohttp.ClientSession) -> None:
    await make(site)
    async with mina.get("/", params={"problem": HOSTILE, "at": HOSTILE, "name": HOSTILE, "template": "x"}) as answer:
        shown = await answer.text()
    assert HOSTILE not in shown
    assert "That did not work." in shown


async def test_names_are_text_wherever_they_are_shown(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site, HOSTILE)
    for path in ("/", f"/workspaces/{w.id}", f"/workspaces/{w.id}/log"):
        async with mina.get(path) as answer:
            assert HOSTILE not in await answer.text()


async def test_somebody_elses_is_not_there(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site, "Jun's", "jun")
    assert "Jun's" not in await page(mina, "/?everybody=1")
    for path in (f"/workspaces/{w.id}", f"/workspaces/{w.id}/log"):
        await page(mina, path, status=404)
    for verb in ("start", "delete", "rename", "share", "purge", "restore", "recover", "keep_awake"):
        _, path, said = await post(mina, f"/do/{w.id}/{verb}", name="mine", user="mina", sure="yes")
        assert (path, said) == ("/", {"at": w.id, "problem": "NOT_FOUND"})
    assert (await now(site, w)).name == "Jun's"


async def test_an_unknown_verb_or_id_is_not_found(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site)
    assert (await post(mina, f"/do/{w.id}/explode"))[0] == 404
    assert (await post(mina, "/do/NO SUCH ID/start"))[2]["problem"] == "NOT_FOUND"


async def test_whoever_is_not_logged_in_is_led_to_where_it_says_how(site: Site) -> None:
    w = await make(site)
    async with site.client() as stranger:
        for path in ("/do/create", f"/do/{w.id}/delete"):
            assert await post(stranger, path) == (303, "/", {})
        async with stranger.get(f"/workspaces/{w.id}", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["location"]) == (303, "/")
    assert (await now(site, w)).deleted_at is None


async def test_another_sites_page_cannot_send_the_forms(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site)
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "same-site"}):
        async with mina.post(f"/do/{w.id}/delete", headers=headers) as answer:
            assert answer.status == 403
    assert (await now(site, w)).deleted_at is None


async def test_a_token_that_may_only_read_cannot_send_forms(site: Site) -> None:
    w = await make(site)
    async with site.client(await site.token("mina", scopes=frozenset({Scope.READ}))) as reader:
        assert "Week 3" in await page(reader)
        async with reader.post(f"/do/{w.id}/delete") as answer:
            assert answer.status == 403


async def test_renaming_keeping_awake_and_purging(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site)
    said = {"at": w.id, "done": "renamed"}
    assert await post(mina, f"/do/{w.id}/rename", name="Week 4", then="page") == (303, f"/workspaces/{w.id}", said)
    assert (await now(site, w)).name == "Week 4"
    await post(mina, f"/do/{w.id}/keep_awake")
    kept = (await now(site, w)).keep_awake_until
    assert kept
    assert (kept - site.services.clock.now()).total_seconds() == 3600
    assert (await post(mina, f"/do/{w.id}/purge"))[2]["problem"] == "INVALID_REQUEST"
    assert not (await now(site, w)).purge
    await post(mina, f"/do/{w.id}/purge", sure="yes")
    assert (await now(site, w)).purge
    assert "Trash (" not in await page(mina)


async def test_lost_files_are_only_given_up_when_the_person_says_so(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site)
    info = {"reason": "DataLost", "operation": "NONE", "is_terminal": True, "error_count": 1, "last_error": "gone"}
    info["occurred_at"] = site.services.clock.now().isoformat()
    await put(site, w, health_status="ERROR", error_info=info)
    shown = await page(mina, f"/workspaces/{w.id}")
    assert "Begin with an empty home" in shown
    assert "Your files are safe" not in shown
    assert (await post(mina, f"/do/{w.id}/recover"))[2]["problem"] == "DATA_LOST"
    assert await post(mina, f"/do/{w.id}/recover", accept_loss="yes") == (303, "/", {})


async def test_sharing_shows_it_to_the_guest_and_to_nobody_else(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site)
    for user, problem in (("Nobody Here", "NOBODY"), ("", "NOBODY"), ("mina", "OWNS_IT_ALREADY")):
        assert (await post(mina, f"/do/{w.id}/share", user=user, then="page"))[2]["problem"] == problem
    assert await post(mina, f"/do/{w.id}/share", user=" jun ", then="page") == (303, f"/workspaces/{w.id}", {})
    async with site.browser("jun") as jun:
        shown = await page(jun)
        assert "Shared with you" in shown
        assert "mina's" in shown
        assert f'href="/open/{w.id}"' in shown
        await page(jun, f"/workspaces/{w.id}", status=403)  # its history is not a guest's to read
        assert await post(jun, f"/do/{w.id}/unshare", user="jun") == (303, "/", {})
        assert "Shared with you" not in await page(jun)
    await post(mina, f"/do/{w.id}/share", user="jun", then="page")
    await post(mina, f"/do/{w.id}/unshare", user="jun", then="page")
    async with site.browser("jun") as jun:
        assert "Shared with you" not in await page(jun)


async def test_an_admin_sees_their_own_first_and_everybodys_on_a_page_of_its_own(site: Site) -> None:
    await make(site, "Lab 1")
    async with site.browser("admin") as admin:
        mine = await page(admin)
        assert "Lab 1" not in mine
        assert 'href="/workspaces"' in mine
        everybodys = await page(admin, "/?everybody=1")  # the address that it had
        assert "Lab 1" in everybodys
        assert 'href="/open/' not in everybodys  # only the owner, and whom they share with, can open it
        id_ = re.findall(r'href="/workspaces/([a-z0-9]+)"', everybodys)[0]
        assert 'href="/open/' not in await page(admin, f"/workspaces/{id_}")


async def test_times_are_those_of_the_browsers_zone(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site)  # at nine o'clock UTC
    for zone, shown in (("Asia%2FSeoul", "18:00"), ("America%2FNew_York", "04:00"), ("UTC", "09:00")):
        async with mina.get(
            f"/workspaces/{w.id}", headers={"Cookie": f"codehub_zone={zone}; {cookies(mina)}"}
        ) as answer:
            assert shown in await answer.text()


def cookies(browser: aiohttp.ClientSession) -> str:
    return "; ".join(f"{cookie.key}={cookie.value}" for cookie in browser.cookie_jar)


async def test_a_workspaces_page_reads_its_row_once(
    site: Site, mina: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    w, find = await make(site), store.find
    read: list[str] = []

    async def counted(c: Connection, id_: str) -> Workspace | None:
        read.append(id_)
        return await find(c, id_)

    monkeypatch.setattr(store, "find", counted)
    assert "Week 3" in await page(mina, f"/workspaces/{w.id}")
    assert read == [w.id]


async def test_ones_own_sleep_time_is_set_and_given_back_to_its_kind(site: Site, mina: aiohttp.ClientSession) -> None:
    w = await make(site)
    assert "10 min (usual for this kind)" in await page(mina, f"/workspaces/{w.id}")
    for seconds, kept in (("3600", 3600), ("", None)):
        _, path, said = await post(mina, f"/do/{w.id}/sleep_after", then="page", seconds=seconds)
        assert (path, said["done"]) == (f"/workspaces/{w.id}", "sleeps")
        assert (await now(site, w)).standby_ttl_seconds == kept
    for wrong in ("0", "-1", "x", "9" * 9, "٣"):
        _, _, said = await post(mina, f"/do/{w.id}/sleep_after", then="page", seconds=wrong)
        assert said["problem"] == "SLEEP_TIME"
    assert (await now(site, w)).standby_ttl_seconds is None
