"""The first steps of a new installation, as a browser without JavaScript takes them."""

import html
import re
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from codehub.command import operator
from codehub.db import migrate
from codehub.policy.model import Role
from codehub.web import first_steps_rules as rules
from codehub.web.first_steps_rules import END, Step
from tests.web.server import Site

PASSWORD = "a lamp over the river"


@pytest.mark.parametrize(
    ("done", "begins", "after_workspace"),
    [
        (set(), Step.WAY_IN.path, Step.COURSE.path),
        ({Step.WAY_IN}, Step.WORKSPACE.path, Step.COURSE.path),
        ({Step.WORKSPACE}, Step.WAY_IN.path, Step.COURSE.path),
        ({Step.COURSE}, Step.WAY_IN.path, Step.CLASS.path),
        ({Step.COURSE, Step.CLASS}, Step.WAY_IN.path, END),
        ({Step.WAY_IN, Step.WORKSPACE, Step.COURSE}, Step.CLASS.path, Step.CLASS.path),
        (set(Step), END, END),
    ],
)
def test_one_comes_back_to_the_first_that_is_open_and_goes_on_to_the_next(
    done: set[Step], begins: str, after_workspace: str
) -> None:
    assert rules.first_open(done) == begins
    assert rules.after(Step.WORKSPACE, done) == after_workspace
    assert rules.is_over(done) == (begins == END)
    assert [(mark.step, mark.done, mark.here) for mark in rules.track(done, Step.CLASS)] == [
        (step, step in done, step is Step.CLASS) for step in Step
    ]


async def post(browser: aiohttp.ClientSession, path: str, **form: str) -> tuple[int, str, dict[str, str]]:
    async with browser.post(path, data=form, allow_redirects=False) as answer:
        target = urlsplit(answer.headers.get("location", ""))
        return answer.status, target.path, {k: v[0] for k, v in parse_qs(target.query).items()}


async def page(browser: aiohttp.ClientSession, path: str) -> str:
    async with browser.get(path, allow_redirects=False) as answer:
        assert answer.status == 200, (path, answer.status, answer.headers.get("location"))
        return html.unescape(await answer.text())


async def led(browser: aiohttp.ClientSession, path: str) -> str:
    async with browser.get(path, allow_redirects=False) as answer:
        assert answer.status == 303
        return answer.headers["location"]


def ticked(shown: str) -> int:
    """Steps of the track that are done."""
    return len(re.findall(r'aria-hidden="true">✓</span><a', shown))


@pytest.fixture
async def admin(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    async with site.client() as browser:
        link = (await site.login_link("admin")).url("")
        assert (await post(browser, link))[:2] == (303, "/welcome")
        yield browser


async def test_each_step_is_done_in_turn_and_ticked_by_what_there_is(site: Site, admin: aiohttp.ClientSession) -> None:
    assert await led(admin, "/welcome") == "/welcome/way-in"
    assert ticked(await page(admin, "/welcome/way-in")) == 0
    refused = await post(admin, "/do/account/password", password="1234567890", then="welcome")
    assert refused == (303, "/welcome/way-in", {"problem": "PASSWORD_COMMON"})
    assert "one of the most common passwords" in await page(admin, "/welcome/way-in?problem=PASSWORD_COMMON")
    assert (await post(admin, "/do/account/password", password=PASSWORD, then="welcome"))[1] == "/welcome/workspace"
    shown = await page(admin, "/welcome/workspace")
    assert "of memory" in shown
    assert ticked(shown) == 1
    assert (await post(admin, "/do/welcome/workspace", name="Lab", template="terminal"))[1] == "/welcome/course"
    shown = await page(admin, "/welcome/course")
    assert ticked(shown) == 2
    assert "Lab" in shown  # which starts meanwhile
    assert "There is no course here" in shown  # none came with this one
    assert (await post(admin, "/do/welcome/class", title="Python 101"))[1] == "/welcome/class"
    shown = await page(admin, "/welcome/class")
    assert "Python 101" in shown
    assert "<svg" in shown
    assert re.search(r"/join/[A-Z0-9]{6}", shown)
    assert "○ <a" not in shown
    assert "1 of 4" not in await page(admin, "/")
    assert "3 of 4 first steps are done" in await page(admin, "/")


async def test_steps_can_be_left_out_and_come_back_to_until_it_is_enough(
    site: Site, admin: aiohttp.ClientSession
) -> None:
    walk = ["/welcome/way-in"]
    while walk[-1] != END:
        found = re.search(r'id="skip" href="([^"]+)"', await page(admin, walk[-1]))
        assert found
        walk.append(found[1])
    assert walk == [*(step.path for step in Step), END]
    assert "What is left can wait" in await page(admin, END)
    assert 'href="/welcome"' in await page(admin, "/")
    assert await led(admin, "/welcome") == "/welcome/way-in"
    assert (await post(admin, "/do/welcome/dismiss"))[:2] == (303, "/")
    for path in ("/welcome", "/welcome/class", END):
        assert await led(admin, path) == "/"
    assert "/welcome" not in await page(admin, "/")
    assert (await post(admin, "/do/welcome/dismiss"))[:2] == (303, "/")  # a double click


async def test_a_later_login_goes_to_the_start_page_which_leads_back(site: Site, admin: aiohttp.ClientSession) -> None:
    await post(admin, "/do/account/password", password=PASSWORD, then="welcome")
    async with site.client() as browser:
        assert (await post(browser, "/login", name="admin", password=PASSWORD))[:2] == (303, "/")
        assert "1 of 4 first steps are done" in await page(browser, "/")
        assert await led(browser, "/welcome") == "/welcome/workspace"
        link = (await site.login_link("admin")).url("")
    async with site.client() as browser:
        assert (await post(browser, link))[:2] == (303, "/")


@pytest.mark.parametrize("role", [Role.ADMIN, Role.TEACHER, Role.LEARNER])
async def test_nobody_else_is_shown_them(site: Site, role: Role) -> None:
    await site.services.people.create_user(operator(), "second", role)
    async with site.client() as browser:
        link = (await site.login_link("second")).url("")
        assert (await post(browser, link))[1] == ("/account/way-in" if role is Role.ADMIN else "/")
        for path in ("/welcome", "/welcome/class"):
            assert await led(browser, path) == "/"
        assert "/welcome" not in await page(browser, "/")


async def test_a_double_click_makes_one_workspace_and_one_class(site: Site, admin: aiohttp.ClientSession) -> None:
    key = re.findall(r'name="once" value="([^"]+)"', await page(admin, "/welcome/workspace"))[0]
    form = {"name": "Lab", "template": "terminal", "once": key}
    both = [await post(admin, "/do/welcome/workspace", **form) for _ in range(2)]
    assert both[0] == both[1] == (303, "/welcome/course", {})
    key = re.findall(r'name="once" value="([^"]+)"', await page(admin, "/welcome/class"))[0]
    for _ in range(2):
        assert (await post(admin, "/do/welcome/class", title="Class", once=key))[1] == "/welcome/class"
    assert (await page(admin, "/")).count('class="card workspace"') == 1
    assert (await page(admin, "/classes")).count("Class</a>") == 1


async def test_a_class_without_an_invitation_is_given_one(site: Site, admin: aiohttp.ClientSession) -> None:
    await post(admin, "/do/classes", title="Half made")
    shown = await page(admin, "/welcome/class")
    assert "“Half made” is there" in shown
    class_id = re.findall(r'name="class" value="([^"]+)"', shown)[0]
    await post(admin, "/do/welcome/class", **{"class": class_id})
    assert "Show this on the wall" in await page(admin, "/welcome/class")


async def test_what_was_typed_comes_back_when_a_step_is_refused(site: Site, admin: aiohttp.ClientSession) -> None:
    assert await post(admin, "/do/welcome/workspace", name="Lab", template="none") == (
        303,
        "/welcome/workspace",
        {"problem": "TEMPLATE", "name": "Lab", "template": "none"},
    )
    assert 'value="Lab"' in await page(admin, "/welcome/workspace?problem=TEMPLATE&name=Lab&template=none")
    status, path, said = await post(admin, "/do/welcome/class", title="x" * 101)
    assert (status, path, said["problem"]) == (303, "/welcome/class", "NAME")
    assert (await post(admin, "/do/welcome/course", course="nothing"))[1] == "/welcome/course"


async def test_there_is_no_other_step(site: Site, admin: aiohttp.ClientSession) -> None:
    async with admin.get("/welcome/tea") as answer:
        assert answer.status == 404


async def test_an_installation_where_people_have_logged_in_is_past_its_first_steps(site: Site) -> None:
    """By the migration, which is done here once more on rows of before."""
    text = next(m.sql for m in migrate.available() if m.name == "first_steps")
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.services.database.transaction() as c:
        await c.execute("ALTER TABLE users DROP COLUMN first_steps_over_at")
        await c.execute("UPDATE users SET last_login_at = now() WHERE name = 'mina'")
        await c.execute(text)
    async with site.client() as browser:
        assert (await post(browser, (await site.login_link("admin")).url("")))[1] == "/account/way-in"
        assert await led(browser, "/welcome") == "/"
