"""Joining a class by its page, as a browser without JavaScript does it."""

import asyncio
import re
from typing import Any

from codehub.auth import hashing
from tests.classes.test_classes import a_class
from tests.classes.test_invitations import PASSWORD, invite, join
from tests.sessions.learning import Learner
from tests.web.server import Site


def once_of(page: str) -> str:
    found = re.search(r'name="once" value="([^"]+)"', page)
    assert found
    return found[1]


async def an_invitation(kim: Learner, **wanted: Any) -> tuple[Any, str]:
    made = await a_class(kim)
    return made, (await invite(kim, made["id"], **wanted))["code"]


async def test_a_code_that_is_typed_leads_to_the_class_then_to_being_in_it(site: Site, kim: Learner) -> None:
    made, code = await an_invitation(kim)
    async with site.client() as browser:
        async with browser.get("/join") as answer:
            assert 'name="code"' in await answer.text()
        async with browser.post("/join", data={"code": f" {code[:3].lower()} {code[3:]}"}) as answer:
            assert answer.url.path == f"/join/{code}"
            page = await answer.text()
            assert "Python, Mondays" in page
        form = {"display_name": "김민아", "name": " Mina ", "password": PASSWORD, "once": once_of(page)}
        async with browser.post(f"/join/{code}", data=form) as answer:
            assert answer.url.path == f"/classes/{made['id']}", await answer.text()
            assert "You are in" in await answer.text()
        async with browser.get("/classes") as answer:
            assert "Python, Mondays" in await answer.text()


async def test_the_same_form_sent_twice_makes_one_person_who_is_counted_once(site: Site, kim: Learner) -> None:
    made, code = await an_invitation(kim, max_uses=1)
    async with site.client() as browser, browser.get(f"/join/{code}") as answer:
        form = {"display_name": "Mina", "name": "mina", "password": PASSWORD, "once": once_of(await answer.text())}
    for _ in range(2):  # two clicks: the second does not know of the first's cookie
        async with site.client() as browser:
            async with browser.post(f"/join/{code}", data=form) as answer:
                assert answer.url.path == f"/classes/{made['id']}"
            async with browser.post(f"/join/{code}", data=form) as answer:  # and the back button does
                assert answer.url.path == f"/classes/{made['id']}"
    (listed,) = (await kim.get(f"/classes/{made['id']}/invitations"))["items"]
    assert listed["uses"] == 1
    assert (await kim.get(f"/classes/{made['id']}"))["learners"] == 1


async def test_the_secret_of_a_form_lets_nobody_be_another_person(site: Site, kim: Learner) -> None:
    _, code = await an_invitation(kim)
    assert (await join(site, code, "mina"))[0] == 201
    async with site.client() as browser:
        form = {"display_name": "", "name": "mina", "password": "another good password", "once": "A" * 43}
        async with browser.post(f"/join/{code}", data=form) as answer:
            assert answer.status == 409
            assert "mina2" in await answer.text()
        async with browser.get("/api/v1/me") as answer:
            assert answer.status == 401


async def test_what_is_wrong_is_said_beside_its_field_and_what_was_typed_stays(site: Site, kim: Learner) -> None:
    _, code = await an_invitation(kim)
    wrong = [
        ({"name": "민아"}, "letters a to z"),
        ({"password": "short"}, "10"),
        ({"display_name": "a\u202eb"}, "all of which can be seen"),
    ]
    async with site.client() as browser:
        for typed, said in wrong:
            form = {"display_name": "Mina K", "name": "mina", "password": PASSWORD, **typed}
            async with browser.post(f"/join/{code}", data=form) as answer:
                page = await answer.text()
                assert (answer.status, said in page) == (400, True), page
                assert PASSWORD not in page
                assert form["name"] in page


async def test_a_user_name_in_hangul_is_written_in_latin_letters_for_the_learner_to_take(
    site: Site, kim: Learner
) -> None:
    made, code = await an_invitation(kim)
    async with site.client() as browser:
        for typed, like in (("민아", "mina"), ("Mina_01", "mina-01")):
            form = {"display_name": "김민아", "name": typed, "password": PASSWORD}
            async with browser.post(f"/join/{code}", data=form) as answer:
                page = await answer.text()
                assert answer.status == 400
                assert f'name="name" value="{like}"' in page
                assert f"“{typed}” became {like}" in page
        async with browser.post(f"/join/{code}", data={**form, "name": "mina-01"}) as answer:
            assert answer.url.path == f"/classes/{made['id']}"


async def test_while_too_many_join_at_once_what_was_typed_stays(site: Site, kim: Learner) -> None:
    _, code = await an_invitation(kim)
    turns = site.services.passwords._hashing._turns
    for _ in range(hashing.AT_ONCE):
        await turns.take("others")
    others = [asyncio.create_task(turns.take(f"{n}")) for n in range(hashing.MOST_IN_ALL)]
    await asyncio.sleep(0)
    async with site.client() as browser:
        form = {"display_name": "김민아", "name": "mina", "password": PASSWORD}
        async with browser.post(f"/join/{code}", data=form) as answer:
            page = await answer.text()
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    assert answer.status == 503
    assert 'value="김민아"' in page
    assert 'value="mina"' in page


async def test_a_wrong_code_leads_back_to_the_first_step(site: Site, kim: Learner) -> None:
    async with site.client() as browser:
        for path in ("/join/BCDFGH", "/join/nonsense", "/join/%00"):
            async with browser.get(path) as answer:
                assert answer.status == 404, path
                assert "This code is wrong" in await answer.text()
        for typed in ("nonsense", "BCDFGH", ""):
            async with browser.post("/join", data={"code": typed}) as answer:
                assert answer.status == 404, typed
        async with browser.post("/join/BCDFGH", data={"name": "mina", "password": PASSWORD}) as answer:
            assert answer.status == 404


async def test_who_is_logged_in_joins_with_one_button_and_may_be_another_person(
    site: Site, kim: Learner, mina: Learner
) -> None:
    made, code = await an_invitation(kim)
    async with site.browser("mina") as browser:
        async with browser.get(f"/join/{code}") as answer:
            page = await answer.text()
            assert "Join as mina" in page
            assert "can give you a new login link or password" in page
            assert 'name="password"' not in page
        form = {
            "display_name": "Jun",
            "name": "jun",
            "password": PASSWORD,
            "once": "A" * 43,
        }  # a tab of before the login
        async with browser.post(f"/join/{code}", data=form) as answer:
            assert answer.status == 409
        async with browser.post(f"/join/{code}", data={"as": "jun"}) as answer:  # a tab of when jun was logged in
            assert answer.status == 409
            assert "Join as mina" in await answer.text()
        assert (await kim.get(f"/classes/{made['id']}"))["learners"] == 0
        async with browser.post(f"/join/{code}", data={"as": "mina"}) as answer:
            assert answer.url.path == f"/classes/{made['id']}"
        async with browser.post(f"/join/{code}/log-out") as answer:
            assert answer.url.path == f"/join/{code}"
            assert 'name="password"' in await answer.text()


async def test_who_is_in_the_class_already_is_led_there_and_joins_nothing(
    site: Site, kim: Learner, mina: Learner
) -> None:
    made, code = await an_invitation(kim)
    async with site.browser("mina") as browser:
        async with browser.post(f"/join/{code}", data={"as": "mina"}) as answer:
            assert "You are in, mina." in await answer.text()
        async with browser.get(f"/join/{code}") as answer:
            page = await answer.text()
    assert "You are in this class already." in page
    assert f'href="/classes/{made["id"]}"' in page
    assert "Join as mina" not in page


async def test_a_teacher_who_follows_a_code_is_told_that_only_learners_do(
    site: Site, kim: Learner, lee: Learner
) -> None:
    _, code = await an_invitation(kim)
    async with site.browser("lee") as browser:
        async with browser.get(f"/join/{code}") as answer:
            assert "Only learners join a class by a code" in await answer.text()
        async with browser.post(f"/join/{code}", data={"as": "lee"}) as answer:
            assert answer.status == 409


async def test_one_with_an_account_logs_in_first_and_comes_back_to_the_code(
    site: Site, kim: Learner, mina: Learner
) -> None:
    _, code = await an_invitation(kim)
    link = await site.login_link("mina")
    async with site.client() as browser:
        async with browser.get(f"/join/{code}/login") as answer:
            assert answer.url.path == "/"
        async with browser.post(link.url("")) as answer:
            assert answer.url.path == f"/join/{code}"
