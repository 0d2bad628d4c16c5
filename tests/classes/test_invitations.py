"""Invitations by the API: made, followed, counted exactly, over."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from codehub.classes import invitations
from codehub.classes.code_tries import MOST_HELD_OF_A_NETWORK
from codehub.command import operator
from codehub.db.redis import open_redis
from codehub.policy.model import Role
from tests.auth import helpers
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site

PASSWORD = "seven green boats sail"


async def invite(teacher: Learner, class_id: str, **wanted: Any) -> Any:
    body = {"expires_in_seconds": 3600, **wanted}
    status, made = await teacher.ask("POST", f"/classes/{class_id}/invitations", body)
    assert status == 201, made
    return made


async def join(site: Site, code: str, name: str, **more: str) -> tuple[int, Any]:
    """As a browser that nobody is logged in with."""
    async with site.client() as browser:
        body = {"code": code, "name": name, "display_name": name.title(), "password": PASSWORD, **more}
        async with browser.post("/api/v1/join", json=body) as answer:
            return answer.status, await answer.json()


async def test_who_follows_an_invitation_is_logged_in_and_a_learner_of_the_class(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    invitation = await invite(kim, made["id"], max_uses=40)
    assert set(invitation) >= {"id", "code", "url", "expires_at", "max_uses", "uses"}
    assert invitation["url"] == f"{site.url}/join/{invitation['code']}"
    typed = f" {invitation['code'][:3].lower()}-{invitation['code'][3:].lower()} "
    async with site.client() as browser:
        body = {"code": typed, "name": "mina", "display_name": "김민아", "password": PASSWORD}
        async with browser.post("/api/v1/join", json=body) as answer:
            assert answer.status == 201, await answer.text()
            joined = await answer.json()
        assert (joined["name"], joined["class"]["title"]) == ("mina", "Python, Mondays")
        async with browser.get("/api/v1/me") as answer:
            me = await answer.json()
        assert (me["name"], me["role"]) == ("mina", "learner")
    (member,) = [m for m in (await kim.get(f"/classes/{made['id']}/members"))["items"] if m["role"] == "learner"]
    assert (member["name"], member["display_name"], member["came"]) == ("mina", "김민아", "joined")
    (listed,) = (await kim.get(f"/classes/{made['id']}/invitations"))["items"]
    assert listed["uses"] == 1
    (entry,) = [e for e in await helpers.entries(site.services, "login") if e.subject == "mina"]
    assert entry.data["way"] == "invitation"
    assert PASSWORD not in await helpers.everything_stored(site.services)


async def test_of_sixty_at_once_exactly_forty_come_in(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"], max_uses=40))["code"]
    answers = await asyncio.gather(*[join(site, code, f"learner-{n}") for n in range(60)])
    assert Counter(status for status, _ in answers) == {201: 40, 404: 20}
    assert {body["code"] for status, body in answers if status == 404} == {"INVITATION_NOT_FOUND"}
    assert (await kim.get(f"/classes/{made['id']}"))["learners"] == 40
    people = {
        person.name
        for person in await site.services.people.page_users(operator(), after="", role=Role.LEARNER, limit=200)
    }
    assert len(people) == 40  # nobody has an account who was not let in


async def test_wrong_used_up_expired_and_revoked_codes_get_the_same_answer(
    site: Site, kim: Learner, clock: ManualClock
) -> None:
    made = await a_class(kim)
    full = await invite(kim, made["id"], max_uses=1)
    assert (await join(site, full["code"], "first"))[0] == 201
    revoked = await invite(kim, made["id"])
    path = f"/classes/{made['id']}/invitations"
    assert (await kim.request("DELETE", f"{path}/{revoked['id']}")).status == 204
    assert (await kim.ask("DELETE", f"{path}/{revoked['id']}"))[0] == 404
    old = await invite(kim, made["id"], expires_in_seconds=60)
    other = await a_class(kim, title="Over")
    over = await invite(kim, other["id"])
    await kim.ask("PATCH", f"/classes/{other['id']}", {"archived": True})
    await clock.advance(61)
    answers = [await join(site, i["code"], "late") for i in (full, revoked, old, over)]
    answers += [await join(site, code, "late") for code in ("BBBBBB", "nonsense", "")]
    assert {(status, body["code"], body["detail"]) for status, body in answers} == {
        (404, "INVITATION_NOT_FOUND", answers[0][1]["detail"])
    }


async def test_a_code_ends_by_its_letters_too_and_only_by_its_class(kim: Learner, lee: Learner) -> None:
    made, other = await a_class(kim), await a_class(lee)
    code = (await invite(kim, made["id"]))["code"]
    for teacher, class_id in ((lee, made["id"]), (lee, other["id"])):
        assert (await teacher.ask("DELETE", f"/classes/{class_id}/invitations/{code}"))[0] == 404
    assert (await lee.ask("GET", f"/classes/{made['id']}/invitations"))[0] == 404
    assert (await lee.ask("POST", f"/classes/{made['id']}/invitations", {}))[0] == 404
    assert (await kim.request("DELETE", f"/classes/{made['id']}/invitations/{code.lower()}")).status == 204
    assert (await kim.get(f"/classes/{made['id']}/invitations"))["items"] == []


async def test_a_name_that_is_taken_is_refused_and_another_one_offered(site: Site, kim: Learner, mina: Learner) -> None:
    code = (await invite(kim, (await a_class(kim))["id"], max_uses=2))["code"]
    status, problem = await join(site, code, "mina")
    assert (status, problem["code"], problem["suggestion"]) == (409, "USER_EXISTS", "mina2")
    assert (await join(site, code, problem["suggestion"]))[0] == 201
    status, problem = await join(site, code, "ttl")
    assert (status, problem["code"]) == (409, "USER_EXISTS")
    assert (await join(site, code, "jun"))[0] == 201  # what was refused used nothing up


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "Mina Kim"}, "name"),
        ({"name": "-mina"}, "name"),
        ({"password": "short"}, "password"),
        ({"password": "password123"}, "password"),
        ({"display_name": "a\u202eb"}, "display_name"),
        ({"display_name": "x" * 101}, "display_name"),
    ],
)
async def test_what_is_wrong_is_named_by_its_field_and_uses_nothing_up(
    site: Site, kim: Learner, body: dict[str, str], field: str
) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"]))["code"]
    status, problem = await join(site, code, **{"name": "mina", **body})
    assert (status, problem["code"], problem["errors"][0]["field"]) == (400, "INVALID_REQUEST", field)
    assert (await kim.get(f"/classes/{made['id']}/invitations"))["items"][0]["uses"] == 0


async def test_a_learner_who_is_logged_in_joins_with_the_code_alone_and_is_counted_once(
    site: Site, kim: Learner, mina: Learner
) -> None:
    made = await a_class(kim)
    code = (await invite(kim, made["id"], max_uses=1))["code"]
    answers = await asyncio.gather(*[mina.ask("POST", "/join", {"code": code}) for _ in range(5)])
    assert {status for status, _ in answers} == {201}
    (listed,) = (await kim.get(f"/classes/{made['id']}/invitations"))["items"]
    assert (listed["uses"], (await kim.get(f"/classes/{made['id']}"))["learners"]) == (1, 1)
    assert [k["id"] for k in (await mina.get("/classes"))["items"]] == [made["id"]]


async def test_teachers_and_admins_do_not_join_by_a_code_and_are_told_so(
    kim: Learner, lee: Learner, admin: Learner, site: Site
) -> None:
    code = (await invite(kim, (await a_class(kim))["id"]))["code"]
    for who in (lee, admin):
        status, problem = await who.ask("POST", "/join", {"code": code})
        assert (status, problem["code"]) == (409, "NOT_A_LEARNER")
    async with site.client() as nobody, nobody.post("/api/v1/join", json={"code": code}) as answer:
        assert answer.status == 401


async def test_wrong_codes_are_slowed_down_and_right_ones_are_not(site: Site, kim: Learner, clock: ManualClock) -> None:
    code = (await invite(kim, (await a_class(kim))["id"]))["code"]
    for n in range(20):
        assert (await join(site, "BCDFGH", f"guesser-{n}"))[0] == 404
    held = asyncio.create_task(join(site, "BCDFGH", "guesser"))
    assert await _still_waits(held)
    await clock.advance(3)
    assert (await held)[0] == 404
    assert (await join(site, code, "mina"))[0] == 201  # at once


async def test_no_session_is_replaced_by_an_invitation_unasked(site: Site, kim: Learner, mina: Learner) -> None:
    code = (await invite(kim, (await a_class(kim))["id"]))["code"]
    body = {"code": code, "name": "jun", "display_name": "Jun", "password": PASSWORD}
    async with site.browser("mina") as browser:
        for told in ({}, {"instead_of": "ana"}):
            async with browser.post("/api/v1/join", json={**body, **told}) as answer:
                assert (answer.status, (await answer.json())["code"]) == (409, "LOGGED_IN_AS_ANOTHER")
        async with browser.get("/api/v1/me") as answer:
            assert (await answer.json())["name"] == "mina"
        async with browser.post("/api/v1/join", json={**body, "instead_of": "mina"}) as answer:
            assert answer.status == 201
        async with browser.get("/api/v1/me") as answer:
            assert (await answer.json())["name"] == "jun"


async def test_a_flood_of_wrong_codes_closes_nobodys_door_for_longer_than_a_few_seconds(
    site: Site, kim: Learner, clock: ManualClock
) -> None:
    """Each that is looked up costs its network three seconds: of many at once, few are looked up. And few are held: the
    front door has room for a few strangers of one address, and those who want to log in are among them.
    """
    code = (await invite(kim, (await a_class(kim))["id"]))["code"]
    guesses = [asyncio.create_task(join(site, "BCDFGH", f"guesser-{n}")) for n in range(200)]
    async with asyncio.timeout(60):
        while sum(not guess.done() for guess in guesses) > MOST_HELD_OF_A_NETWORK:
            await asyncio.sleep(0.01)
    while not all(guess.done() for guess in guesses):
        await clock.advance(1)
        await asyncio.sleep(0.01)
    await clock.advance(6)
    assert (await join(site, code, "mina"))[0] == 201


async def test_without_redis_no_more_codes_are_looked_up_than_can_be_held(
    site: Site, kim: Learner, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (await invite(kim, (await a_class(kim))["id"]))["code"]

    away = open_redis("redis://127.0.0.1:1")
    monkeypatch.setattr(site.services.joining._tries, "_client", away)
    guesses = [asyncio.create_task(join(site, "BCDFGH", f"guesser-{n}")) for n in range(40)]
    async with asyncio.timeout(60):
        while sum(not guess.done() for guess in guesses) > MOST_HELD_OF_A_NETWORK:
            await asyncio.sleep(0.01)
    assert {guess.result()[0] for guess in guesses if guess.done()} == {429}
    assert (await join(site, code, "mina"))[0] == 429, "the answer to a right one says nothing either"
    while not all(guess.done() for guess in guesses):
        await clock.advance(1)
        await asyncio.sleep(0.01)
    assert Counter(guess.result()[0] for guess in guesses)[404] == MOST_HELD_OF_A_NETWORK
    assert (await join(site, code, "mina"))[0] == 201
    await away.aclose()


async def test_many_wrong_codes_at_once_are_sent_away_and_the_network_recovers(
    site: Site, kim: Learner, clock: ManualClock
) -> None:
    code = (await invite(kim, (await a_class(kim))["id"]))["code"]
    guesses = [asyncio.create_task(join(site, "BCDFGH", f"guesser-{n}")) for n in range(60)]
    while not all(guess.done() for guess in guesses):
        await clock.advance(1)
        await asyncio.sleep(0.01)
    statuses = Counter(guess.result()[0] for guess in guesses)
    assert set(statuses) <= {404, 429}
    assert statuses[429] >= 10
    await clock.advance(600)
    assert (await join(site, code, "mina"))[0] == 201


async def _still_waits(task: "asyncio.Task[Any]") -> bool:
    """It had time to be answered, were it not held: another request that came later is."""
    for _ in range(50):
        await asyncio.sleep(0.01)
    return not task.done()


async def test_a_class_has_no_more_codes_than_it_may(kim: Learner) -> None:
    made = await a_class(kim)
    for _ in range(20):
        await invite(kim, made["id"])
    status, problem = await kim.ask("POST", f"/classes/{made['id']}/invitations", {})
    assert (status, problem["code"]) == (429, "INVITATION_LIMIT")


@pytest.mark.parametrize(
    "body",
    [
        {"expires_in_seconds": 0},
        {"expires_in_seconds": 10**9},
        {"max_uses": 0},
        {"max_uses": 1.5},
        {"max_uses": "4"},
        {"uses": 3},
    ],
)
async def test_wrong_numbers_of_an_invitation_are_refused(kim: Learner, body: Any) -> None:
    made = await a_class(kim)
    status, problem = await kim.ask("POST", f"/classes/{made['id']}/invitations", body)
    assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    assert problem["errors"][0]["field"] == next(iter(body))


async def test_learners_of_a_class_do_not_see_or_make_its_codes(kim: Learner, person: Enrol) -> None:
    jun = await person("jun")
    made = await a_class(kim, "jun")
    for method in ("GET", "POST"):
        assert (await jun.ask(method, f"/classes/{made['id']}/invitations"))[0] == 403


async def test_codes_that_are_long_over_are_removed(site: Site, kim: Learner, clock: ManualClock) -> None:
    made = await a_class(kim)
    await invite(kim, made["id"])
    kept = await invite(kim, made["id"], expires_in_seconds=90 * 86400)
    await clock.advance(31 * 86400)
    async with site.services.database.transaction() as c:
        assert await invitations.prune(c, clock.now(), 100) == 1
        assert await c.fetchval("SELECT code FROM invitations") == kept["code"]
