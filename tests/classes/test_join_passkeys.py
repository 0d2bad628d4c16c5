"""Joining a class with a passkey as the only way in, by the API and by the page's form: all of it, or nothing."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from tests.auth import helpers
from tests.classes.test_classes import a_class
from tests.classes.test_invitations import PASSWORD, invite
from tests.classes.test_join_pages import once_of
from tests.passkeys.authenticator import PRESENT, Authenticator
from tests.passkeys.conftest import Reply, Visitor, stranger
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site


async def ask(visitor: Visitor, code: str, name: str, **more: str) -> Reply:
    return await visitor.ask("POST", "/join/passkey-question", {"code": code, "name": name, **more})


async def question(visitor: Visitor, code: str, name: str, **more: str) -> Any:
    status, found = await ask(visitor, code, name, **more)
    assert status == 200, found
    return found


async def send(visitor: Visitor, code: str, name: str, credential: object, **more: str) -> Reply:
    return await visitor.ask("POST", "/join", {"code": code, "name": name, "credential": credential, **more})


async def learners(site: Site) -> set[str]:
    found = await site.services.people.page_users(operator(), after="", role=Role.LEARNER, limit=200)
    return {person.name for person in found}


async def uses(kim: Learner, class_id: str) -> int:
    (listed,) = (await kim.get(f"/classes/{class_id}/invitations"))["items"]
    return int(listed["uses"])


async def nothing_came_of_it(site: Site, kim: Learner, class_id: str) -> bool:
    none = await learners(site) == set() and await uses(kim, class_id) == 0
    async with site.services.database.connection() as c:
        return none and await c.fetchval("SELECT count(*) FROM passkeys") == 0


async def test_who_joins_with_a_passkey_is_in_and_comes_back_with_nothing_else(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"], max_uses=1))["code"]
    passkey = Authenticator()
    async with stranger(site) as visitor:
        asked = await question(visitor, f" {code.lower()}", "mina", display_name="김민아")
        user = asked["options"]["user"]
        assert (user["name"], user["displayName"]) == ("mina", "김민아")
        status, joined = await send(visitor, code, "mina", passkey.create(asked), display_name="김민아")
        assert status == 201, joined
        assert (joined["name"], joined["class"]["id"]) == ("mina", made["id"])
        assert await visitor.who() == "mina"
        (kept,) = await Visitor(visitor.client, "mina").passkeys()
        status, refused = await visitor.ask("DELETE", f"/users/mina/passkeys/{kept['id']}")
        assert (status, refused["code"]) == (409, "LAST_WAY_IN")
    async with stranger(site) as visitor:
        assert (await visitor.log_in(passkey))[0] == 200
        assert await visitor.who() == "mina"
    (member,) = [m for m in (await kim.get(f"/classes/{made['id']}/members"))["items"] if m["role"] == "learner"]
    assert (member["name"], member["display_name"], member["came"]) == ("mina", "김민아", "joined")
    assert await uses(kim, made["id"]) == 1
    (added,) = await helpers.entries(site.services, "passkey.add")
    assert (added.actor, added.subject) == ("mina", "mina")


async def test_an_answer_makes_one_account_however_often_it_is_sent(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"]))["code"]
    async with stranger(site) as visitor:
        credential = Authenticator().create(await question(visitor, code, "mina"))
        answers = await asyncio.gather(*[send(visitor, code, "mina", credential) for _ in range(8)])
        late = await send(visitor, code, "mina", credential)
    assert Counter(status for status, _ in answers) == {201: 1, 409: 7}
    assert {said["code"] for status, said in answers if status == 409} == {"PASSKEY_CHALLENGE"}
    assert (late[0], late[1]["code"]) == (409, "LOGGED_IN_AS_ANOTHER")  # as the one who was made
    assert await learners(site) == {"mina"}
    assert await uses(kim, made["id"]) == 1


async def test_an_answer_is_worth_nothing_for_another_name_code_browser_or_purpose(
    site: Site, kim: Learner, mina: Learner
) -> None:
    made, other = await a_class(kim), await a_class(kim)
    code, code2 = (await invite(kim, made["id"]))["code"], (await invite(kim, other["id"]))["code"]
    async with stranger(site) as visitor, stranger(site) as another:
        credential = Authenticator().create(await question(visitor, code, "jun"))
        await question(another, code, "jun")
        login = Authenticator()
        asked = await visitor.login_question()
        asked["options"]["user"] = {"id": "dTE"}
        wrong = [
            await send(visitor, code, "jin", credential),
            await send(visitor, code2, "jun", credential),
            await send(another, code, "jun", credential),
            await send(visitor, code, "jun", login.create(asked)),
        ]
        assert [(status, said["code"]) for status, said in wrong] == [(409, "PASSKEY_CHALLENGE")] * 4
        assert await learners(site) == {"mina"}
        assert (await send(visitor, code, "jun", credential))[0] == 201


async def test_a_question_that_waited_too_long_is_asked_anew(
    site: Site, kim: Learner, clock: ManualClock, settings: Settings
) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"]))["code"]
    async with stranger(site) as visitor:
        credential = Authenticator().create(await question(visitor, code, "mina"))
        await clock.advance(settings.auth.passkey_seconds)
        status, said = await send(visitor, code, "mina", credential)
    assert (status, said["code"]) == (409, "PASSKEY_CHALLENGE")
    assert await nothing_came_of_it(site, kim, made["id"])


async def test_what_no_passkey_of_ours_would_say_leaves_nothing_behind(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"]))["code"]
    wrong = [
        (Authenticator(origin="http://w.localhost:8000"), 403),
        (Authenticator(client={"crossOrigin": True}), 403),
        (Authenticator(flags=PRESENT), 401),  # touched, and not unlocked
    ]
    async with stranger(site) as visitor:
        for passkey, expected in wrong:
            status, said = await send(visitor, code, "mina", passkey.create(await question(visitor, code, "mina")))
            assert status == expected, said
        both = Authenticator().create(await question(visitor, code, "mina"))
        assert (await send(visitor, code, "mina", both, password=PASSWORD))[0] == 400
        assert await visitor.who() is None
    assert await nothing_came_of_it(site, kim, made["id"])


async def test_a_passkey_of_another_account_makes_no_second_one(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"]))["code"]
    passkey = Authenticator()
    async with stranger(site) as visitor:
        assert (await send(visitor, code, "mina", passkey.create(await question(visitor, code, "mina"))))[0] == 201
    async with stranger(site) as visitor:
        status, said = await send(visitor, code, "jun", passkey.create(await question(visitor, code, "jun")))
        assert (status, said["code"]) == (409, "PASSKEY_EXISTS")
    assert await learners(site) == {"mina"}
    assert await uses(kim, made["id"]) == 1


async def test_a_name_that_is_taken_or_wrong_is_said_before_a_device_makes_a_passkey(
    site: Site, kim: Learner, mina: Learner
) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"]))["code"]
    async with stranger(site) as visitor:
        status, said = await ask(visitor, code, "mina")
        assert (status, said["code"], said["suggestion"]) == (409, "USER_EXISTS", "mina2")
        assert (await ask(visitor, code, "admin"))[1]["code"] == "USER_EXISTS"
        assert (await ask(visitor, code, "민아"))[0] == 400
        assert (await ask(visitor, "BCDFGH", "jun"))[1]["code"] == "INVITATION_NOT_FOUND"
        # Between the question and the answer another person takes the name.
        credential = Authenticator().create(await question(visitor, code, "jun"))
        await site.services.people.create_user(operator(), "jun", Role.LEARNER)
        assert (await send(visitor, code, "jun", credential))[1]["code"] == "USER_EXISTS"
    assert await uses(kim, made["id"]) == 0


async def test_of_many_at_once_as_many_come_in_as_may(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"], max_uses=4))["code"]
    async with contextlib.AsyncExitStack() as stack:
        visitors = [await stack.enter_async_context(stranger(site)) for _ in range(9)]
        sent = [
            send(v, code, f"n{i}", Authenticator().create(await question(v, code, f"n{i}")))
            for i, v in enumerate(visitors)
        ]
        answers = await asyncio.gather(*sent)
    assert Counter(status for status, _ in answers) == {201: 4, 404: 5}
    assert len(await learners(site)) == 4
    async with site.services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM passkeys") == 4


async def test_where_passkeys_do_not_work_the_question_says_why(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"]))["code"]
    async with stranger(site, Host="192.168.0.10:8000") as visitor:
        status, said = await ask(visitor, code, "mina")
    assert (status, said["code"]) == (409, "PASSKEYS_UNAVAILABLE")


# --- the page's form, which `passkeys.js` sends


@contextlib.asynccontextmanager
async def form_of(site: Site, code: str) -> AsyncIterator[tuple[Visitor, dict[str, str]]]:
    async with stranger(site) as visitor, visitor.client.get(f"/join/{code}") as answer:
        once = once_of(await answer.text())
        yield visitor, {"display_name": "김민아", "name": " Mina ", "way": "passkey", "credential": "", "once": once}


async def test_the_form_sent_twice_at_once_makes_one_person(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"], max_uses=1))["code"]
    async with form_of(site, code) as (visitor, form):
        form["credential"] = json.dumps(Authenticator().create(await question(visitor, code, "mina")))

        async def click() -> tuple[str, str]:
            async with visitor.client.post(f"/join/{code}", data=form) as answer:
                return answer.url.path, await answer.text()

        clicks = list(await asyncio.gather(click(), click()))
        clicks.append(await click())  # the back button
    assert {path for path, _ in clicks} == {f"/classes/{made['id']}"}
    assert "log in with your passkey" in clicks[0][1]
    assert await uses(kim, made["id"]) == 1


async def test_a_form_whose_browser_got_no_question_says_what_is_wrong_and_keeps_what_was_typed(
    site: Site, kim: Learner, mina: Learner
) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"]))["code"]
    async with form_of(site, code) as (visitor, form):
        async with visitor.client.post(f"/join/{code}", data=form) as answer:
            page = await answer.text()
            assert (answer.status, "mina2" in page, "김민아" in page) == (409, True, True)
            assert 'data-chosen="passkey"' in page
        async with visitor.client.post(f"/join/{code}", data={**form, "name": "jun"}) as answer:
            assert (answer.status, "did not work with a passkey" in await answer.text()) == (401, True)
        async with visitor.client.post(f"/join/{code}", data={**form, "name": "jun", "credential": "{}"}) as answer:
            assert (answer.status, "did not work with a passkey" in await answer.text()) == (400, True)
    assert await learners(site) == {"mina"}
