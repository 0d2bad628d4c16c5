"""Login links and browser sessions: once, in time, rotated, never stolen unnoticed."""

import asyncio
from dataclasses import replace

import pytest

from codehub.auth.logins import Browser
from codehub.auth.service import FROM_THE_START
from codehub.command import operator
from codehub.errors import NotFoundError, UnauthenticatedError
from codehub.policy.model import CookieLogin, Role
from codehub.settings import Settings
from codehub.web.services import Services
from codehub.wiring.api import open_services
from tests.auth.helpers import BROWSER, add, deactivate, entries, everything_stored, log_in, make_link, who
from tests.virtual_time import ManualClock

HOUR, DAY = 3600, 86400


@pytest.fixture(autouse=True)
async def mina(services: Services) -> None:
    await add(services, "mina")


async def use(services: Services, cookie: str) -> CookieLogin:
    return await services.credentials.by_cookie(cookie, BROWSER)


async def test_a_link_logs_in_once(services: Services) -> None:
    secret = await make_link(services, "mina")
    assert await services.people.owner_of_link(secret) == "mina"
    cookie = await services.people.log_in(secret, Browser("a browser", BROWSER))
    assert (await who(services, cookie)).name == "mina"
    assert await services.people.owner_of_link(secret) is None
    with pytest.raises(UnauthenticatedError):
        await services.people.log_in(secret, Browser("a browser", BROWSER))


async def test_of_twenty_who_follow_one_link_at_once_exactly_one_gets_in(services: Services) -> None:
    secret = await make_link(services, "mina")
    results = await asyncio.gather(
        *[services.people.log_in(secret, Browser("", BROWSER)) for _ in range(20)], return_exceptions=True
    )
    assert sum(isinstance(result, str) for result in results) == 1
    assert sum(isinstance(result, UnauthenticatedError) for result in results) == 19
    assert len(await entries(services, "login")) == 1


async def test_a_second_link_makes_the_first_worthless(services: Services) -> None:
    first, second = await make_link(services, "mina"), await make_link(services, "mina")
    assert [await services.people.owner_of_link(secret) for secret in (first, second)] == [None, "mina"]


async def test_two_links_asked_for_at_once_leave_one_that_works(services: Services) -> None:
    secrets = await asyncio.gather(*[make_link(services, "mina") for _ in range(10)])
    assert [await services.people.owner_of_link(secret) for secret in secrets].count("mina") == 1


async def test_a_link_is_good_for_a_day(services: Services, clock: ManualClock) -> None:
    secret = await make_link(services, "mina")
    await clock.advance(DAY - 1)
    assert await services.people.owner_of_link(secret)
    await clock.advance(1)
    with pytest.raises(UnauthenticatedError):
        await services.people.log_in(secret, Browser("", BROWSER))


async def test_deactivating_takes_unused_links_away(services: Services) -> None:
    secret = await make_link(services, "mina")
    await deactivate(services, "mina")
    await services.people.change_user(operator(), "mina", role=None, active=True)
    with pytest.raises(UnauthenticatedError):
        await services.people.log_in(secret, Browser("", BROWSER))


@pytest.mark.parametrize("role", [Role.TEACHER, Role.ADMIN])
async def test_a_teacher_makes_no_link_for_a_learner_who_is_none_any_more(services: Services, role: Role) -> None:
    """What a request knows of its caller may be older than the role that it finds."""
    await add(services, "kim", Role.TEACHER)
    kim = replace(await who(services, await log_in(services, "kim")), manages=frozenset({"mina"}))
    assert (await services.people.make_login_link(kim, "mina")).user_name == "mina"
    await services.people.change_user(operator(), "mina", role=role, active=None)
    with pytest.raises(NotFoundError):
        await services.people.make_login_link(kim, "mina")


async def test_another_role_takes_unused_links_away(services: Services) -> None:
    """A teacher who made one for a learner must not become a teacher or an admin by it."""
    secret = await make_link(services, "mina")
    await services.people.change_user(operator(), "mina", role=Role.TEACHER, active=None)
    with pytest.raises(UnauthenticatedError):
        await services.people.log_in(secret, Browser("", BROWSER))


async def test_logging_in_again_on_one_browser_ends_the_session_it_had(services: Services) -> None:
    await add(services, "jun")
    before = await log_in(services, "jun")
    caller = await who(services, before)
    secret = await make_link(services, "mina")
    after = await services.people.log_in(secret, Browser("", BROWSER, caller))
    assert (await who(services, after)).name == "mina"
    with pytest.raises(UnauthenticatedError):
        await who(services, before)


async def test_a_session_ends_when_nobody_used_it_for_two_weeks(services: Services, clock: ManualClock) -> None:
    cookie = await log_in(services, "mina")
    for _ in range(3):  # used every ten days, it lives on
        await clock.advance(10 * DAY)
        cookie = (await use(services, cookie)).new_cookie or cookie
    await use(services, cookie)
    await clock.advance(14 * DAY)
    with pytest.raises(UnauthenticatedError):
        await use(services, cookie)


async def test_a_cookie_is_replaced_after_an_hour_and_the_old_one_ends_a_minute_after_the_new_one_is_used(
    services: Services, clock: ManualClock
) -> None:
    first = await log_in(services, "mina")
    assert (await use(services, first)).new_cookie is None
    await clock.advance(HOUR)
    second = (await use(services, first)).new_cookie
    assert second
    assert (await use(services, second)).new_cookie is None  # from here on the browser surely has it
    await clock.advance(60)
    assert (await use(services, first)).caller.name == "mina"  # a request that was under way
    await clock.advance(5)
    with pytest.raises(UnauthenticatedError):
        await use(services, first)
    with pytest.raises(UnauthenticatedError):  # whoever has the other one is out as well
        await use(services, second)
    (entry,) = await entries(services, "login.stolen")
    assert (entry.subject, entry.address) == ("mina", BROWSER.address)


async def test_a_cookie_lost_on_the_way_is_given_again_and_nobody_is_taken_for_a_thief(
    services: Services, clock: ManualClock
) -> None:
    first = await log_in(services, "mina")
    await clock.advance(HOUR)
    lost = (await use(services, first)).new_cookie
    await clock.advance(DAY)
    again = (await use(services, first)).new_cookie
    assert again
    assert again == lost
    assert (await use(services, again)).caller.name == "mina"


async def test_requests_at_once_at_the_time_of_a_rotation_all_get_the_same_new_cookie(
    services: Services, clock: ManualClock
) -> None:
    first = await log_in(services, "mina")
    await clock.advance(HOUR)
    answers = await asyncio.gather(*[use(services, first) for _ in range(10)])
    assert len({answer.new_cookie for answer in answers}) == 1
    assert answers[0].new_cookie is not None


async def test_a_new_signing_key_keeps_people_logged_in_while_the_old_one_is_named_beside_it(
    services: Services, settings: Settings, clock: ManualClock
) -> None:
    old_cookie = await log_in(services, "mina")
    both = replace(settings, auth=replace(settings.auth, secret_key="a-newer-signing-key,a-signing-key-for-tests"))
    new = replace(settings, auth=replace(settings.auth, secret_key="a-newer-signing-key"))
    async with open_services(both, clock) as rotating, open_services(new, clock) as rotated:
        assert (await who(rotating, old_cookie)).name == "mina"
        new_cookie = await log_in(rotating, "mina")
        assert (await who(rotated, new_cookie)).name == "mina"
        with pytest.raises(UnauthenticatedError):
            await who(rotated, old_cookie)
    with pytest.raises(UnauthenticatedError):
        await who(services, new_cookie)


@pytest.mark.parametrize("cookie", ["", ".", "..", "a.1", "a.1.", "é.1.x", "x" * 5000, "a.1.\ud7ff"])
async def test_a_cookie_that_is_not_ours_is_refused(services: Services, cookie: str) -> None:
    with pytest.raises(UnauthenticatedError):
        await use(services, cookie)


async def test_sessions_can_be_listed_and_ended_one_by_one(services: Services, clock: ManualClock) -> None:
    cookies = []
    for _ in range(3):
        cookies.append(await log_in(services, "mina"))
        await clock.advance(1)
    people = services.people
    listed = await people.page_sessions(operator(), "mina", after=FROM_THE_START, limit=10)
    assert len(listed) == 3
    rest = await people.page_sessions(operator(), "mina", after=(listed[0].created_at, listed[0].id), limit=10)
    assert rest == listed[1:]
    await people.revoke_session(operator(), "mina", listed[1].id)
    assert [await _works(services, cookie) for cookie in cookies] == [True, False, True]


async def test_logging_out_ends_this_session_and_no_other(services: Services) -> None:
    here, there = await log_in(services, "mina"), await log_in(services, "mina")
    await services.people.log_out(await who(services, here))
    assert [await _works(services, cookie) for cookie in (here, there)] == [False, True]


async def test_no_secret_of_a_login_is_stored(services: Services) -> None:
    secret = await make_link(services, "mina")
    used = await make_link(services, "mina")
    cookie = await services.people.log_in(used, Browser("", BROWSER))
    stored = await everything_stored(services)
    for hidden in (secret, used, cookie, cookie.rpartition(".")[2]):
        assert hidden not in stored


async def _works(services: Services, cookie: str) -> bool:
    try:
        await who(services, cookie)
    except UnauthenticatedError:
        return False
    return True
