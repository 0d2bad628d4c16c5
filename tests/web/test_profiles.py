"""What a person is called, their language and time zone: by HTTP, by themselves and by others."""

import json
from datetime import UTC, datetime

import aiohttp
import pytest

from codehub.classes.model import Came, MemberRole
from codehub.command import operator
from codehub.policy.actions import Action
from codehub.policy.model import Role
from tests.auth.helpers import entries
from tests.web.server import Site


@pytest.fixture(autouse=True)
async def people(site: Site) -> None:
    for name, role in (("mina", Role.LEARNER), ("jun", Role.LEARNER), ("kim", Role.TEACHER)):
        await site.services.people.create_user(operator(), name, role)


async def patch(client: aiohttp.ClientSession, name: str, /, **change: object) -> tuple[int, dict[str, object]]:
    async with client.patch(f"/api/v1/users/{name}", json=change) as answer:
        return answer.status, await answer.json()


async def test_a_person_says_what_they_are_called_and_how_they_read(site: Site) -> None:
    async with site.client(await site.token("mina")) as mina:
        status, person = await patch(mina, "mina", display_name="김미나", language="ko", time_zone="Asia/Seoul")
        assert (status, person["display_name"], person["name"]) == (200, "김미나", "mina")
        async with mina.get("/api/v1/me") as answer:
            me = await answer.json()
        assert (me["display_name"], me["language"], me["time_zone"]) == ("김미나", "ko", "Asia/Seoul")
        _, person = await patch(mina, "mina", language=None)
        assert (person["display_name"], person["language"], person["time_zone"]) == ("김미나", None, "Asia/Seoul")
        _, person = await patch(mina, "mina", display_name="")
        assert person["display_name"] == ""
    (*_, first) = await entries(site.services, "user.profile")
    assert first.data == {"fields": ["display_name", "language", "time_zone"]}  # and not what they say


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"display_name": "a\u202eb"}, "display_name"),
        ({"display_name": "\u3164"}, "display_name"),
        ({"display_name": "x" * 101}, "display_name"),
        ({"language": "tlh"}, "language"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"time_zone": "../../etc/passwd"}, "time_zone"),
        ({"time_zone": ""}, "time_zone"),
    ],
)
async def test_what_is_no_name_language_or_zone_is_refused_with_its_field(
    site: Site, change: dict[str, str], field: str
) -> None:
    async with site.client(await site.token("mina")) as mina:
        status, problem = await patch(mina, "mina", **change)
    assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    assert field in json.dumps(problem["errors"])


async def test_a_person_changes_nothing_else_of_themselves_and_nothing_of_others(site: Site) -> None:
    async with site.client(await site.token("mina")) as mina:
        for change in ({"role": "admin"}, {"active": True}, {"name": "boss"}):
            status, problem = await patch(mina, "mina", display_name="Boss", **change)
            assert (status, problem["code"]) == (403, "FORBIDDEN")
        status, _ = await patch(mina, "jun", display_name="Not Jun")
        assert status == 404
    async with site.client(await site.token("mina", scopes=frozenset({"read"}))) as reader:
        status, _ = await patch(reader, "mina", display_name="Mina")
        assert status == 403
    person = await site.services.people.get_user(operator(), "mina")
    assert (person.display_name, person.role) == ("", Role.LEARNER)


async def test_those_who_look_after_an_account_name_it_and_other_teachers_do_not(
    site: Site, admin: aiohttp.ClientSession
) -> None:
    services = site.services
    async with site.client(await site.token("kim")) as kim:
        assert (await patch(kim, "mina", display_name="Mina Kim"))[0] == 404
        async with kim.post("/api/v1/classes", json={"title": "1-A"}) as answer:
            class_id = (await answer.json())["id"]
        caller = await services.credentials.by_token(await site.token("kim"))
        async with services.database.transaction() as c:
            found = await services.classes.authorized(c, caller, class_id, Action.CLASS_MANAGE, lock=True)
            mina = await services.people.get_user(operator(), "mina")
            await services.classes.admit(c, caller, found, mina, MemberRole.LEARNER, Came.MADE)
        services.credentials.forget()
        assert (await patch(kim, "mina", display_name="Mina Kim"))[0] == 200
        assert (await patch(kim, "mina", role="teacher"))[0] == 403
    assert (await patch(admin, "jun", display_name="Jun", role="teacher"))[1]["role"] == "teacher"


async def test_a_new_person_can_have_a_display_name_at_once(admin: aiohttp.ClientSession) -> None:
    async with admin.post("/api/v1/users", json={"name": "seo", "display_name": "서 연"}) as answer:
        assert (answer.status, (await answer.json())["display_name"]) == (201, "서 연")


async def language(client: aiohttp.ClientSession, path: str = "/account") -> str:
    async with client.get(path, headers={"accept": "text/html"}) as answer:
        return answer.headers["content-language"]


async def test_pages_speak_a_persons_own_language_before_the_browsers(site: Site) -> None:
    async with site.browser("mina", **{"Accept-Language": "en"}) as mina:
        assert await language(mina) == "en"
        await mina.get("/account?lang=en")  # remembered by this browser
        assert (await patch(mina, "mina", language="ko"))[0] == 200
        assert await language(mina) == "ko"
        assert await language(mina, "/") == "ko"
        assert await language(mina, "/nowhere") == "ko"
        form = {"language": "en", "then": "/account"}
        async with mina.post("/do/account/language", data=form, allow_redirects=False) as answer:
            assert answer.headers["location"] == "/account"
        assert await language(mina) == "en"
        for then in ("//evil.example", "https://evil.example/", "/do/x"):
            form = {"language": "ko", "then": then}
            async with mina.post("/do/account/language", data=form, allow_redirects=False) as answer:
                assert answer.headers["location"] == "/"


async def test_times_are_told_in_a_persons_own_time_zone(site: Site) -> None:
    async with site.browser("mina") as mina:
        at = site.services.clock.now()
        for zone, shown in (("Pacific/Kiritimati", 14), ("Etc/GMT+12", -12)):
            await patch(mina, "mina", time_zone=zone)
            async with mina.get("/account") as answer:
                page = await answer.text()
            hour = datetime.fromtimestamp(at.timestamp() + shown * 3600, UTC)
            assert f"{hour:%H:%M}" in page


async def test_a_display_name_is_shown_as_text(site: Site) -> None:
    async with site.browser("mina") as mina:
        await patch(mina, "mina", display_name="<b>Mina</b>")
        async with mina.get("/") as answer:
            page = await answer.text()
        assert "&lt;b&gt;Mina&lt;/b&gt;" in page
        assert "<b>Mina" not in page
