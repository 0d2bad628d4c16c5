"""What a teacher has in hand of an account ends when it becomes more than a learner's, and when they teach no more."""

import pytest

from codehub.auth import rules
from codehub.auth.profiles import Profile
from codehub.auth.rules import Ends
from codehub.command import operator
from codehub.errors import NotFoundError
from codehub.policy.model import Role
from tests.classes.test_classes import a_class
from tests.sessions.learning import Learner
from tests.web.server import Site

PASSWORD = "four words of a song"


async def jun_of(kim: Learner) -> str:
    """A class with an account that its teacher has made."""
    found = await a_class(kim)
    status, _ = await kim.ask("POST", f"/classes/{found['id']}/people", {"display_name": "Jun", "name": "jun"})
    assert status == 201
    return str(found["id"])


async def link_of(kim: Learner, class_id: str) -> str:
    _, sheet = await kim.ask("POST", f"/classes/{class_id}/login-links")
    url = str(sheet["items"][0]["url"])
    return url[url.index("/login/") :]


async def by_password(site: Site) -> int:
    sent = {"name": "jun", "password": PASSWORD}
    async with site.client() as browser, browser.post("/api/v1/login", json=sent) as answer:
        return answer.status


@pytest.mark.parametrize("role", [Role.TEACHER, Role.ADMIN])
async def test_what_a_teacher_has_of_an_account_ends_when_it_becomes_more(
    site: Site, kim: Learner, admin: Learner, role: Role
) -> None:
    class_id = await jun_of(kim)
    assert (await kim.request("PUT", "/users/jun/password", {"password": PASSWORD})).status == 204
    token = await site.token("jun")
    async with site.client() as browser:
        async with browser.post(await link_of(kim, class_id), allow_redirects=False) as answer:
            assert answer.status == 303
        unused = await link_of(kim, class_id)
        assert (await admin.ask("PATCH", "/users/jun", {"role": role}))[0] == 200
        async with browser.get("/api/v1/workspaces") as answer:
            assert answer.status == 401
    async with site.client() as browser, browser.post(unused, allow_redirects=False) as answer:
        assert answer.status != 303
        assert "codehub" not in answer.cookies
    async with site.client(token) as program, program.get("/api/v1/workspaces") as answer:
        assert answer.status == 401
    assert await by_password(site) == 401
    async with site.browser("jun") as browser, browser.get("/api/v1/workspaces") as answer:
        assert answer.status == 200  # by a link that an admin makes


async def test_links_end_with_a_teacher_who_is_taken_out(site: Site, kim: Learner, lee: Learner) -> None:
    class_id = await jun_of(kim)
    await kim.ask("POST", f"/classes/{class_id}/members", {"name": "lee", "role": "teacher"})
    in_hand = await link_of(lee, class_id)
    assert (await kim.request("DELETE", f"/classes/{class_id}/members/lee")).status == 204
    async with site.client() as browser, browser.post(in_hand, allow_redirects=False) as answer:
        assert answer.status != 303
    async with site.client() as browser, browser.post(await link_of(kim, class_id), allow_redirects=False) as answer:
        assert answer.status == 303


async def test_a_password_that_a_person_or_an_admin_has_set_stays(site: Site, kim: Learner, admin: Learner) -> None:
    await jun_of(kim)
    assert (await admin.request("PUT", "/users/jun/password", {"password": PASSWORD})).status == 204
    assert (await admin.ask("PATCH", "/users/jun", {"role": "teacher"}))[0] == 200
    assert await by_password(site) == 200


async def test_a_teacher_whose_rights_were_read_before_a_promotion_changes_nothing_after_it(
    site: Site, kim: Learner
) -> None:
    """Between the question who asks, and the change, another process may have changed the role."""
    await jun_of(kim)
    async with site.services.database.connection() as c:
        caller = await site.services.credentials.by_token(kim.client.headers["Authorization"].removeprefix("Bearer "))
        assert "jun" in caller.manages
        await c.execute("UPDATE users SET role = 'admin' WHERE name = 'jun'")
    people, profiles = site.services.people, site.services.profiles
    with pytest.raises(NotFoundError):
        await people.make_login_link(caller, "jun")
    with pytest.raises(NotFoundError):
        await profiles.change(caller, "jun", Profile(display_name="Mine"))
    assert (await people.make_login_link(operator(), "jun")).user_name == "jun"


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (Role.LEARNER, Role.LEARNER, Ends.NONE),
        (Role.LEARNER, Role.TEACHER, Ends.ALL),
        (Role.LEARNER, Role.ADMIN, Ends.ALL),
        (Role.TEACHER, Role.ADMIN, Ends.SESSIONS),
        (Role.ADMIN, Role.TEACHER, Ends.SESSIONS),
        (Role.ADMIN, Role.LEARNER, Ends.SESSIONS),
        (Role.TEACHER, Role.LEARNER, Ends.LINKS),
        (Role.TEACHER, Role.TEACHER, Ends.NONE),
    ],
)
def test_which_logins_end_with_a_role(before: Role, now: Role, expected: Ends) -> None:
    assert rules.ended_by(before, now) is expected
