"""Every page in every state, language, scheme and width is seen, heard and used by everybody (`looking`)."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from fastapi import Request
from playwright.async_api import Browser, Page, expect
from starlette.responses import HTMLResponse, Response

from codehub.command import operator
from codehub.gate import hosts
from codehub.policy.model import Principal, Role
from codehub.sessions import blueprint
from codehub.sessions.service import NewPlan, NewSession
from codehub.settings import Settings
from codehub.web import entry_pages
from codehub.web.app import create_app
from codehub.web.operator_view import RANGES
from codehub.web.services import Services
from codehub.wiring.api import open_services
from codehub.workspaces import history
from codehub.workspaces.admission import NoPlace, OwnLimit, Running, admitted
from codehub.workspaces.model import Desired, Workspace
from codehub.workspaces.service import NewWorkspace
from tests.browser.conftest import IN_ONE_LOOP
from tests.browser.looking import FEW, LOOKS, PICTURES, Scheme, look, look_from
from tests.browser.school import TEACHER, School, open_school
from tests.courses.archives import zipped
from tests.i18n.test_sentences import every_data
from tests.monitoring import figures
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving
from tests.workspaces.bulks import loop_of

pytestmark = IN_ONE_LOOP
ERROR = {"operation": "STARTING", "is_terminal": True, "error_count": 4, "occurred_at": "2026-01-01T00:00:00+00:00"}
LONG = "A-name-without-any-place-to-break-it-which-somebody-pasted-from-somewhere-and-never-looked-at-again"
LONGEST_NAME = "n" * 63  # of a person
STATES: dict[str, dict[str, Any]] = {
    "Week 3: Recursion": {"observed_status": "RUNNING"},
    "데이터 분석 기초": {"observed_status": "STANDBY", "desired_state": "STANDBY"},
    "Final project": {"observed_status": "PENDING", "desired_state": "ARCHIVED", "archive_key": "a/b/1/home.tar.zst"},
    "Thesis": {
        "observed_status": "PENDING",
        "archive_key": "a/b/1/home.tar.zst",
        "operation": "RESTORING",
        "progress": {"bytes": 420_000_000, "total": 900_000_000},
    },
    "Robotics": {"observed_status": "STANDBY", "operation": "STARTING"},
    "Not yet": {"desired_state": "STANDBY"},
    "Chatbot": {
        "observed_status": "STANDBY",
        "health_status": "ERROR",
        "error_info": {**ERROR, "reason": "StartFailed", "last_error": "ModuleNotFoundError: No module named 'numpy'"},
    },
    LONG: {
        "observed_status": "RUNNING",
        "operation": "STOPPING",
        "desired_state": "STANDBY",
    },
    "Old notes": {"observed_status": "STANDBY", "desired_state": "STANDBY", "deleted": True},
}


@dataclass(frozen=True)
class Gallery:
    site: Site
    ids: dict[str, str]
    school: School


@pytest_asyncio.fixture(loop_scope="session")
async def gallery(settings: Settings, clock: ManualClock) -> AsyncIterator[Gallery]:
    async with open_services(settings, clock) as services:
        await services.people.ensure_first_admin()
        for name in ("mina", "jun", LONGEST_NAME):
            await services.people.create_user(operator(), name, Role.LEARNER)
        ids = await furnish(services, clock)
        await clock.advance(2)
        await share(services, ids)
        await learn(services, clock)
        await tell_everything(services, ids["Final project"])
        school = await open_school(services, ["mina", "jun", LONGEST_NAME])
        app = create_app(services)
        app.add_api_route("/entry/{kind}", entry_page, include_in_schema=False)
        app.state.ids = ids
        async with serving(services, app) as site:
            yield Gallery(site, ids, school)


async def furnish(services: Services, clock: ManualClock) -> dict[str, str]:
    """Workspaces in every state, put there by hand: no coordinator runs that would move them on."""
    mina = Principal("mina", Role.LEARNER, operator().scopes)
    ids = {}
    for number, (name, state) in enumerate(STATES.items()):
        await clock.advance(0.01)  # the order they are shown in
        template = ("jupyterlab", "terminal")[number % 2]
        made = admitted(await services.workspaces.create(mina, NewWorkspace(name, template, Desired.STANDBY)))
        ids[name] = made.id
        values = {"desired_state": "RUNNING", **state, "op_started_at": clock.now() - timedelta(seconds=2)}
        values["desired_at"] = clock.now() - timedelta(seconds=3)
        values |= {"op_id": "b"} if values.get("operation") else {}
        values |= {"deleted_at": clock.now()} if values.pop("deleted", False) else {}
        assignments = ", ".join(f"{column} = ${place}" for place, column in enumerate(values, 2))
        async with services.database.connection() as c:
            await c.execute(f"UPDATE workspaces SET {assignments} WHERE id = $1", made.id, *values.values())
    return ids


async def share(services: Services, ids: Mapping[str, str]) -> None:
    """With somebody who came, and somebody who did not; and somebody's with mina."""
    mina, jun = (Principal(name, Role.LEARNER, operator().scopes) for name in ("mina", "jun"))
    for guest in ("jun", LONGEST_NAME):
        await services.sharing.share(mina, ids["Week 3: Recursion"], guest)
    await services.access.arrive(replace(jun, session_id="s"), ids["Week 3: Recursion"])
    made = admitted(await services.workspaces.create(jun, NewWorkspace("Group work", "terminal", Desired.STANDBY)))
    await services.sharing.share(jun, made.id, "mina")


async def learn(services: Services, clock: ManualClock) -> None:
    """She is at the second of three sessions."""
    mina = Principal("mina", Role.LEARNER, operator().scopes)
    lesson = blueprint.parse(
        {"steps": ["LEARN", "LEARN", "COMPLETE"], "learningContent": ["#"], "encouragement": "Yes"}
    )
    days = enumerate(("Say hello", "Repeat things", "A grade book"), -1)
    new = [NewSession(title, clock.now().date() + timedelta(days=day), lesson) for day, title in days]
    plan = await services.sessions.create_plan(mina, NewPlan("Python for beginners", new))
    for session, steps in zip(plan.sessions, (3, 1), strict=False):
        await clock.advance(1)
        run = json.loads((await services.runs.start(mina, session.id)).body)
        for index in range(steps):
            await services.runs.complete_step(mina, run["id"], index, run["fence"], {})


async def tell_everything(services: Services, id_: str) -> None:
    """A line of every code in one history."""
    add = (
        "INSERT INTO workspace_history (workspace_id, at, actor, code, data, to_state, took_seconds)"
        " VALUES ($1, $2, 'mina', $3, $4, 'STANDBY', 61)"
    )
    async with services.database.connection() as c:
        for code, kind in history.CODES.items():
            data = every_data(history.names(kind))[0]
            await c.execute(add, id_, services.clock.now(), code, data)


HOME: dict[str, Any] = {"home_url": "http://localhost:1/"}
LIMIT = OwnLimit(1, (Running("robotics", "Robotics"),))
FULL = NoPlace(100, waiting=False, running=())
LOST = {**ERROR, "reason": "DataLost", "last_error": "its files vanished"}
Named = Mapping[str, Workspace]


def waking(
    request: Request, w: Workspace, now: datetime, *, position: int | None = None, may_stop: bool = False
) -> Response:
    return entry_pages.waking(request, entry_pages.Waking(w, now, 4.2, position, may_stop=may_stop), **HOME)


ENTRIES: Mapping[str, Callable[[Request, Named, datetime], Response]] = {
    "waking": lambda r, w, now: waking(r, w["Robotics"], now),
    "falling": lambda r, w, now: waking(r, w[LONG], now),
    "restoring": lambda r, w, now: waking(r, w["Thesis"], now, position=3),
    "slow": lambda r, w, now: waking(r, w["Robotics"], now + timedelta(minutes=5)),
    "again": lambda r, w, now: waking(r, replace(w["Robotics"], failures=2), now, may_stop=True),
    "cancelled": lambda r, w, _: entry_pages.cancelled(r, w["Robotics"], **HOME),
    "restore": lambda r, w, _: entry_pages.restore_needed(r, w["Final project"], **HOME),
    "start": lambda r, w, _: entry_pages.start_needed(r, w["Not yet"], **HOME, mine=False),
    "wrong": lambda r, w, _: entry_pages.went_wrong(r, w["Chatbot"], **HOME, log="Traceback …\n" * 20),
    "lost": lambda r, w, _: entry_pages.went_wrong(r, replace(w["Chatbot"], error_info=LOST), **HOME),
    "limit": lambda r, w, _: entry_pages.over_limit(r, w["Final project"], LIMIT, mine=True, **HOME),
    "full": lambda r, w, _: entry_pages.over_limit(r, w["Final project"], FULL, mine=True, **HOME),
    "missing": lambda r, _w, _: entry_pages.not_found(r, **HOME),
    "origin": lambda r, _w, _: entry_pages.only_owners(r, **HOME),
    "shared": lambda r, w, _: entry_pages.share_origin(r, w[LONG], **HOME),
    "admin": lambda r, _w, _: entry_pages.admins_stay_out(r, **HOME),
    "misdirected": lambda r, _w, _: misdirected(r),
}


def misdirected(request: Request) -> Response:
    """What every address that is not ours shows."""
    ours = hosts.Hosts(frozenset(), None, "https://codehub.example.org")
    policy = {"content-security-policy": hosts.POLICY}
    return HTMLResponse(ours.page(request.headers["accept-language"]), hosts.STATUS, policy)


async def entry_page(request: Request, kind: str) -> Response:
    """What `entry` answers on a workspace's own origin."""
    services: Services = request.app.state.services
    ids: Mapping[str, str] = request.app.state.ids
    named = {name: await services.workspaces.get(operator(), id_) for name, id_ in ids.items()}
    return ENTRIES[kind](request, named, services.clock.now())


def pages_of(gallery: Gallery) -> dict[str, str]:
    ids = gallery.ids
    return {
        "home": "/",
        "dashboard": f"/?at={ids['Final project']}&problem=RUNNING_LIMIT",
        "limit": "/?problem=WORKSPACE_LIMIT&name=Lab",
        "no-place": f"/?at={ids['Final project']}&problem=NO_PLACE",
        "no-place-new": "/?problem=NO_PLACE&name=Lab&template=terminal",
        "deleted": f"/?at={ids['Old notes']}&done=deleted",
        "wrong-details": f"/workspaces/{ids['Chatbot']}",
        "details": f"/workspaces/{ids['Week 3: Recursion']}",
        "history": f"/workspaces/{ids['Final project']}",
        "log": f"/workspaces/{ids['Week 3: Recursion']}/log",
        "trashed": f"/workspaces/{ids['Old notes']}",
        "frame": f"/open/{ids['Week 3: Recursion']}",
        **{f"entry-{kind}": f"/entry/{kind}" for kind in ENTRIES},
        "account": "/account",
        "way-in": "/account/way-in?problem=PASSWORD_COMMON",
        "sign-in-another": "/login",
        "docs": "/docs",
        "nowhere": "/nowhere",
    }


PEOPLE_PAGES = {
    "courses-admin": "/courses",
    "people": "/people",
    "people-refused": "/people?problem=USER_EXISTS&name=mina&display_name=%EA%B9%80%EB%AF%B8%EB%82%98",
    "people-done": "/people?q=mina&at=mina&done=deactivate",
    "people-kept": "/people?q=admin&at=admin&problem=USER_KEPT",
    "people-nobody": "/people?q=nobody-like-that",
    "workspaces": "/workspaces",
    "workspaces-searched": "/workspaces?q=mina&owner=mina&sort=size&problem=BULK_NONE",
    "workspaces-none": "/workspaces?q=nothing-like-that",
    "workspaces-trash": "/workspaces?phase=TRASH",
    "audit": "/audit",
    "audit-wrong": "/audit?person=mina&since=yesterday",
    "settings": "/settings",
    "settings-all": "/settings?all=1",
    "template-files": "/templates",
    "storage": "/storage",
    "account-admin": "/account?at=profile&problem=DISPLAY_NAME",
    "account-token": "/account?at=tokens&show=seen-before",
}
OPERATOR_PAGES = {
    **{f"operator-{name}": f"/operator?range={name}" for name in RANGES},
    "operator-what-if": "/operator?range=hour&standby=15m&archive=2h&days=7",
    "operator-refused": "/operator?range=hour&standby=soon&days=99",
}


@pytest.mark.parametrize(("language", "scheme", "width"), LOOKS if PICTURES else FEW)
async def test_every_page_is_whole_named_and_legible(
    gallery: Gallery, chromium: Browser, language: str, scheme: Scheme, width: int
) -> None:
    page = await look_from(chromium, gallery.site.url, language, scheme, width)
    found: list[str] = []
    await page.goto("/login/nothing")
    found += await look(page, "link-used", language, scheme, width)
    await page.goto("/")
    found += await look(page, "sign-in", language, scheme, width)
    await page.get_by_role("textbox").first.fill(LONGEST_NAME)
    await page.locator("input[type=password]").fill("not the right one")
    await page.locator("main form button").first.click()
    await expect(page.locator("#wrong-password")).to_be_visible()
    found += await look(page, "sign-in-wrong", language, scheme, width)
    for name, path in gallery.school.for_strangers().items():
        await page.goto(path)
        found += await look(page, name, language, scheme, width)
    for name, state in ((LONGEST_NAME, "link"), ("mina", "link-of-another")):
        link = (await gallery.site.login_link(name)).url(gallery.site.url)
        await page.goto(link)
        found += await look(page, state, language, scheme, width)
        await page.get_by_role("button").click()
        await page.wait_for_url("**/")
        if name == LONGEST_NAME:
            found += await look(page, "first", language, scheme, width)
    await page.goto((await gallery.site.login_link("mina")).url(gallery.site.url))
    found += await look(page, "link-again", language, scheme, width)
    await page.goto("/")
    await page.locator("details.adding > summary").click()
    await page.locator("details.menu > summary").first.click()
    found += await look(page, "open", language, scheme, width)
    for name, path in {**pages_of(gallery), **gallery.school.for_a_learner()}.items():
        await page.goto(path)
        found += await look(page, name, language, scheme, width)
    found += await look_at_covers(gallery, page, language, scheme, width)
    found += await look_as_admin(gallery, page, language, scheme, width)
    await page.context.close()
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("language", "scheme", "width"), LOOKS if PICTURES else FEW)
async def test_every_page_of_a_teacher_is_whole_named_and_legible(
    gallery: Gallery, chromium: Browser, language: str, scheme: Scheme, width: int
) -> None:
    page = await look_from(chromium, gallery.site.url, language, scheme, width)
    found: list[str] = []
    await page.goto((await gallery.site.login_link(TEACHER)).url(gallery.site.url))
    await page.get_by_role("button").click()
    await page.wait_for_url("**/")
    for name, path in gallery.school.for_a_teacher().items():
        await page.goto(path)
        for closed in await page.locator("main details:not(.menu, .sure)").all():
            await closed.evaluate("e => e.open = true")
        found += await look(page, name, language, scheme, width)
    await page.goto(f"/classes/{gallery.school.class_id}/import")
    await page.locator("textarea").fill(f"이름,아이디,학번\n김민아,,7\nlee,lee,\n{'x' * 120}\n,,9\n{LONGEST_NAME}\n")
    await page.locator("main form button").click()
    found += await look(page, "class-import-preview", language, scheme, width)
    found += await look_at_wrong_course(page, language, scheme, width)
    await page.goto(f"/classes/{gallery.school.class_id}/sheet")
    await page.locator("main form button").click()
    await expect(page.locator(".slips li").first).to_be_visible()
    found += await look(page, "class-sheet-made", language, scheme, width)
    if PICTURES:
        await page.pdf(path=f"{PICTURES}/sheet-{language}.pdf", prefer_css_page_size=True)
    await page.context.close()
    assert not found, "\n".join(found)


async def look_at_covers(gallery: Gallery, page: Page, language: str, scheme: Scheme, width: int) -> list[str]:
    """What lies over an IDE that does not run, as the page around it finds out by looking again."""
    found: list[str] = []
    await page.set_extra_http_headers({"x-requested-with": "fetch"})
    for name in ("데이터 분석 기초", LONG, "Robotics", "Chatbot", "Final project"):
        await page.goto(f"/open/{gallery.ids[name]}")
        await expect(page.locator("[data-cover]")).to_be_visible()
        found += await look(page, f"frame-{name[:8]}", language, scheme, width)
    await page.set_extra_http_headers({})
    return found


async def look_at_wrong_course(page: Page, language: str, scheme: Scheme, width: int) -> list[str]:
    wrong = {f"01-{'x' * 60}/notes.txt": "x", "course.md": "---\ntitle: a: b\n---\n", "02-two/session.md": "---\n---\n"}
    await page.goto("/courses/import")
    await page.locator("input[type=file]").set_input_files(
        {"name": "course.zip", "mimeType": "application/zip", "buffer": zipped(wrong)}
    )
    await page.locator("main form button").click()
    await expect(page.locator("#problems-title")).to_be_visible()
    return await look(page, "course-import-wrong", language, scheme, width)


async def look_as_admin(gallery: Gallery, page: Page, language: str, scheme: Scheme, width: int) -> list[str]:
    await page.goto((await gallery.site.login_link("admin")).url(gallery.site.url))
    await page.get_by_role("button").click()
    await page.wait_for_url(lambda url: "/login/" not in url)
    found: list[str] = []
    await page.goto("/operator")
    found += await look(page, "operator-empty", language, scheme, width)
    services = gallery.site.services
    await figures.furnish(services.database, services.clock.now())
    for name, path in {**PEOPLE_PAGES, **OPERATOR_PAGES}.items():
        await page.goto(path)
        found += await look(page, name, language, scheme, width)
    found += await look_at_bulk(gallery, page, language, scheme, width)
    found += await look_at_backups(gallery, page, language, scheme, width)
    await page.goto("/people")
    await page.locator("#menu-mina > summary").click()
    await page.locator("#menu-mina details.sure > summary").last.click()
    found += await look(page, "people-menu", language, scheme, width)
    await page.keyboard.press("Escape")
    await page.locator('form[action="/do/people/mina/link"] button').click()
    await page.locator("input.copy").wait_for()
    return found + await look(page, "people-link", language, scheme, width)


async def look_at_bulk(gallery: Gallery, page: Page, language: str, scheme: Scheme, width: int) -> list[str]:
    """Asked of all: what is busy waits, what is in error is refused."""
    await page.goto("/workspaces?q=mina")
    await page.locator('input[name="all"]').check()
    await page.locator('button[name="verb"][value="sleep"]').click()
    await page.wait_for_url("**/bulk/*")
    found = await look(page, "bulk-begun", language, scheme, width)
    await (await loop_of(gallery.site.services)).tick()
    await page.reload()
    return found + await look(page, "bulk", language, scheme, width)


BACKUPS = """
INSERT INTO backups (id, state, asked_by, asked_at, begun_at, things_done, things, bytes_done, bytes, file_bytes,
                     contents)
SELECT 'b' || n, CASE n WHEN 3 THEN 'running' ELSE 'done' END, codehub_actor_id($1),
       $2::timestamptz - (4 - n) * interval '1 min', $2::timestamptz - interval '3 min', 61, 240, 4200000000,
       18000000000, 7600000000 * n, '{"homes": 120, "archives": 310, "rows": 48210, "in_use": 4}'
FROM generate_series(1, 3) n
"""
FAILED = """
UPDATE backups SET state = 'failed', failure = 'other', detail = 'no answer', ended_at = $1 WHERE id = 'b3'
"""


async def look_at_backups(gallery: Gallery, page: Page, language: str, scheme: Scheme, width: int) -> list[str]:
    """None yet, one under way, and what is said of one that failed for lack of space."""
    services = gallery.site.services
    await page.goto("/backups")
    found = await look(page, "backups-empty", language, scheme, width)
    async with services.database.connection() as c:
        await c.execute(BACKUPS, LONGEST_NAME, services.clock.now())
    await page.reload()
    found += await look(page, "backups-running", language, scheme, width)
    async with services.database.connection() as c:
        await c.execute(FAILED, services.clock.now())
        lot = "UPDATE workspaces SET volume_generation = 'g', disk_bytes = 2^50 WHERE observed_status = 'STANDBY'"
        await c.execute(f"{lot} AND volume_generation IS NULL")
    await page.goto("/backups?problem=BACKUP_SPACE")
    found += await look(page, "backups-failed", language, scheme, width)
    async with services.database.connection() as c:
        await c.execute("UPDATE workspaces SET volume_generation = NULL, disk_bytes = NULL WHERE disk_bytes = 2^50")
        await c.execute("DELETE FROM backups")
    return found
