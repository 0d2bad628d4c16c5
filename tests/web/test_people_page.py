"""`/people`, by HTTP as a browser without JavaScript uses it."""

import re

import aiohttp
import pytest

from codehub.auth.profiles import Profile
from codehub.command import operator
from codehub.policy.model import Role
from tests.web.server import Site

PEOPLE = (("mina", Role.LEARNER, "김미나"), ("jun", Role.LEARNER, "Jun <b>Lee"), ("kim", Role.TEACHER, ""))


@pytest.fixture(autouse=True)
async def people(site: Site) -> None:
    for name, role, called in PEOPLE:
        await site.services.people.create_user(operator(), name, role, called)


async def page(client: aiohttp.ClientSession, path: str = "/people") -> str:
    async with client.get(path, headers={"accept": "text/html"}) as answer:
        assert answer.status == 200, path
        return await answer.text()


async def send(client: aiohttp.ClientSession, path: str, **form: str) -> str:
    async with client.post(f"/do/people/{path}", data=form, allow_redirects=False) as answer:
        assert answer.status == 303, await answer.text()
        return answer.headers["location"]


def listed(text: str) -> list[str]:
    return re.findall(r'<li id="p-([^"]+)"', text)


def shown_link(text: str) -> str:
    (found,) = set(re.findall(r'value="(http[^"]*/login/[^"]+)"', text))
    return str(found)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["admin", "jun", "kim", "mina"]),
        ("?q=MIN", ["admin", "mina"]),
        ("?q=미나", ["mina"]),
        ("?q=%25", []),
        ("?q=%00", ["admin", "jun", "kim", "mina"]),
        ("?role=teacher", ["kim"]),
        ("?state=inactive", ["jun"]),
        ("?state=active&role=learner", ["mina"]),
        ("?role=nonsense&state=nonsense", ["admin", "jun", "kim", "mina"]),
        ("?cursor=jun", ["kim", "mina"]),
        ("?q=nobody-like-that", []),
    ],
)
async def test_people_are_found_by_name_role_and_state(site: Site, query: str, names: list[str]) -> None:
    await site.services.people.change_user(operator(), "jun", role=None, active=False)
    async with site.browser("admin") as admin:
        assert listed(await page(admin, f"/people{query}")) == names


async def test_the_api_finds_people_as_the_page_does(admin: aiohttp.ClientSession) -> None:
    async with admin.get("/api/v1/users", params={"q": "미나", "active": "true"}) as answer:
        assert [user["name"] for user in (await answer.json())["items"]] == ["mina"]


async def test_many_people_are_shown_page_by_page(site: Site) -> None:
    for number in range(60):
        await site.services.people.create_user(operator(), f"p{number:02}", Role.LEARNER)
    async with site.browser("admin") as admin:
        first = await page(admin, "/people?role=learner")
        (more,) = re.findall(r'href="(/people\?[^"]*cursor=[^"]*)"', first)
        second = await page(admin, more.replace("&amp;", "&"))
    assert (len(listed(first)), len(listed(second))) == (50, 12)
    assert not set(listed(first)) & set(listed(second))


async def test_a_person_is_added_and_their_link_is_shown_once(site: Site) -> None:
    async with site.browser("admin") as admin:
        (number,) = re.findall(r'name="once" value="([^"]*)"', await page(admin))
        form = {"name": "seo", "display_name": "서연", "role": "teacher", "once": number}
        both = [await send(admin, "add", **form) for _ in range(2)]  # a double click
        assert both[0] == both[1]
        text = await page(admin, both[0])
        link = shown_link(text)
        assert "서연" in text
        again = await page(admin, both[0])
        assert "/login/" not in again
        assert "shown already" in again
    async with site.client() as browser:
        async with browser.post(link.removeprefix(site.url), allow_redirects=False) as answer:
            assert answer.status == 303
        async with browser.get("/api/v1/me") as answer:
            me = await answer.json()
    assert (me["name"], me["display_name"], me["role"]) == ("seo", "서연", "teacher")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"name": "mina", "role": "learner"}, "That user name is taken"),
        ({"name": "Mina Kim", "role": "learner"}, "small letters"),
        ({"name": "", "role": "learner"}, "small letters"),
        ({"name": "seo", "role": "king"}, "Choose one of the roles"),
        ({"name": "seo", "role": "learner", "display_name": "\u202e"}, "all of which can be seen"),
    ],
)
async def test_what_was_typed_comes_back_with_what_is_wrong(site: Site, form: dict[str, str], said: str) -> None:
    async with site.browser("admin") as admin:
        text = await page(admin, await send(admin, "add", **form))
    assert said in text
    assert f'value="{form["name"]}"' in text
    assert "/login/" not in text


async def test_an_admin_changes_what_a_person_is_called(site: Site) -> None:
    async with site.browser("admin") as admin:
        text = await page(admin, await send(admin, "mina/called", display_name="김미나"))
        assert "The display name is changed." in text
        assert "<strong>김미나</strong>" in text
        text = await page(admin, await send(admin, "mina/called", display_name="\u202e"))
        assert "all of which can be seen" in text
        assert "<strong>김미나</strong>" in text


async def test_role_activity_link_and_removal_by_forms(site: Site) -> None:
    async with site.browser("admin") as admin:
        assert "role is changed" in await page(admin, await send(admin, "mina/role", role="teacher"))
        assert "They are out" in await page(admin, await send(admin, "mina/deactivate"))
        assert "Activate them first" in await page(admin, await send(admin, "mina/link"))
        assert "log in again" in await page(admin, await send(admin, "mina/activate"))
        assert shown_link(await page(admin, await send(admin, "mina/link")))
        assert "Say that you are sure" in await page(admin, await send(admin, "mina/remove"))
        assert "is removed" in await page(admin, await send(admin, "mina/remove", sure="yes"))
        assert await send(admin, "mina/remove", sure="yes") == "/people?q=mina&at=mina&problem=NOT_FOUND"
        assert listed(await page(admin)) == ["admin", "jun", "kim"]
        assert "account stays" in await page(admin, await send(admin, "admin/remove", sure="yes"))
        assert "only active admin" in await page(admin, await send(admin, "admin/deactivate"))
        async with admin.post("/do/people/jun/promote", data={}) as answer:
            assert answer.status == 404


async def test_the_page_and_its_forms_are_for_admins_alone(site: Site) -> None:
    for name in ("kim", "mina"):
        async with site.browser(name) as client:
            assert 'href="/people"' not in await page(client, "/")
            async with client.get("/people", headers={"accept": "text/html"}) as answer:
                assert answer.status == 403
            for verb in ("jun/remove", "jun/role", "jun/link", "add"):
                form = {"sure": "yes", "role": "admin", "name": "new"}
                async with client.post(f"/do/people/{verb}", data=form, allow_redirects=False) as answer:
                    assert answer.status in {303, 403}
                    assert "show=" not in answer.headers.get("location", "")
    assert (await site.services.people.get_user(operator(), "jun")).role is Role.LEARNER


async def test_names_are_text_and_the_page_has_no_shell_command(site: Site) -> None:
    await site.services.profiles.change(operator(), "mina", Profile('"><script>alert(1)</script>'))
    async with site.browser("admin") as admin:
        text, home = await page(admin), await page(admin, "/")
    assert "Jun &lt;b&gt;Lee" in text
    assert "<script>alert" not in text
    assert "user add" not in text + home
