"""Access tokens: what is kept of them, what they allow, when they end; and how fast everybody hears of an end."""

import asyncio
from dataclasses import replace

import pytest

from codehub.auth.service import FROM_THE_START
from codehub.command import operator
from codehub.errors import ForbiddenError, NotFoundError, UnauthenticatedError
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import ALL_SCOPES, Principal, Role, Scope
from codehub.settings import Settings
from codehub.web.services import Services
from codehub.wiring.api import open_services
from tests.auth.helpers import BROWSER, add, deactivate, eventually, everything_stored, log_in, make_token, who
from tests.virtual_time import ManualClock

DAY = 86400


@pytest.fixture(autouse=True)
async def mina(services: Services) -> None:
    await services.people.ensure_first_admin()
    await add(services, "mina")


async def test_a_token_stands_for_its_person_with_its_scopes(services: Services) -> None:
    made = await make_token(services, "mina", scopes=frozenset({Scope.READ}))
    caller = await services.credentials.by_token(made.secret)
    assert (caller.name, caller.role, caller.scopes) == ("mina", Role.LEARNER, frozenset({Scope.READ}))
    assert caller.token_id == made.token.id


async def test_no_secret_of_a_token_is_stored_or_shown_by_accident(services: Services) -> None:
    made = await make_token(services, "mina")
    secret = made.secret.split("_", 2)[2]
    await services.credentials.by_token(made.secret)
    assert made.secret not in repr(made)
    assert secret not in await everything_stored(services)


async def test_a_right_id_with_a_wrong_secret_is_refused(services: Services) -> None:
    made, other = await make_token(services, "mina"), await make_token(services, "mina")
    for wrong in (f"chp_{made.token.id}_", made.secret[:-1], f"chp_{made.token.id}_{other.secret.split('_', 2)[2]}"):
        with pytest.raises(UnauthenticatedError):
            await services.credentials.by_token(wrong)


@pytest.mark.parametrize("token", ["", "chp", "chp__", "chp_\0_x", "chp_UPPER_x", "basic", "é", "x" * 10_000])
async def test_what_is_no_token_is_refused_without_asking_the_database(services: Services, token: str) -> None:
    await services.database.close()
    with pytest.raises(UnauthenticatedError):
        await services.credentials.by_token(token)


async def test_a_token_expires(services: Services, clock: ManualClock) -> None:
    short, usual = await make_token(services, "mina", days=1), await make_token(services, "mina")
    await clock.advance(DAY)
    with pytest.raises(UnauthenticatedError):
        await services.credentials.by_token(short.secret)
    await clock.advance(89 * DAY - 1)
    await services.credentials.by_token(usual.secret)
    await clock.advance(4)
    with pytest.raises(UnauthenticatedError):
        await services.credentials.by_token(usual.secret)


async def test_the_last_use_is_written_down_at_most_once_a_minute(services: Services, clock: ManualClock) -> None:
    made = await make_token(services, "mina")
    written = set()
    for _ in range(30):  # two and a half minutes of use
        await services.credentials.by_token(made.secret)
        (token,) = await services.people.page_tokens(operator(), "mina", after=FROM_THE_START, limit=5)
        written.add(token.last_used_at)
        await clock.advance(5)
    assert len(written) == 3


async def test_nobody_makes_a_token_for_somebody_else_or_with_more_than_they_hold(services: Services) -> None:
    await add(services, "jun")
    mina = Principal("mina", Role.LEARNER, ALL_SCOPES)
    with pytest.raises(NotFoundError):
        await make_token(services, "jun", by=mina)
    with pytest.raises(ForbiddenError):
        await make_token(services, "mina", by=mina, scopes=frozenset({Scope.ADMIN}))
    assert (await make_token(services, "mina", by=mina)).token.scopes == ["read", "write"]


async def test_an_admins_token_without_the_admin_scope_is_no_admins(services: Services) -> None:
    made = await make_token(services, "admin", scopes=frozenset({Scope.READ, Scope.WRITE}))
    caller = await services.credentials.by_token(made.secret)
    assert caller.role is Role.ADMIN
    with pytest.raises(ForbiddenError):
        await services.people.create_user(caller, "jun", Role.LEARNER)


async def test_a_demoted_admins_token_loses_the_admins_rights(services: Services) -> None:
    await add(services, "jun", Role.ADMIN)
    made = await make_token(services, "jun")
    assert policy.allows(await services.credentials.by_token(made.secret), Action.USER_LIST)
    await services.people.change_user(operator(), "jun", role=Role.TEACHER, active=None)
    assert not policy.allows(await services.credentials.by_token(made.secret), Action.USER_LIST)


async def test_the_token_of_the_environment_is_admin_whatever_happens_to_the_user_of_that_name(
    services: Services,
) -> None:
    await add(services, "jun", Role.ADMIN)
    await services.people.change_user(operator(), "admin", role=Role.LEARNER, active=False)
    caller = await services.credentials.by_token("an-admin-token-for-tests")
    assert (caller.name, policy.allows(caller, Action.USER_LIST)) == ("admin", True)


async def test_deactivating_in_one_process_ends_sessions_and_tokens_in_another_within_a_second(
    services: Services, settings: Settings, clock: ManualClock
) -> None:
    cookie, token = await log_in(services, "mina"), (await make_token(services, "mina")).secret
    async with open_services(settings, clock) as other:  # whose clock stands: what it remembers does not age
        await eventually(lambda: _both_listen(services), 5)
        await who(other, cookie)
        await other.credentials.by_token(token)
        await deactivate(services, "mina")
        await eventually(lambda: _shuts_out(other, cookie, token), 1)


async def test_without_notifications_an_end_is_noticed_within_three_seconds(
    services: Services, settings: Settings, clock: ManualClock
) -> None:
    cookie, token = await log_in(services, "mina"), (await make_token(services, "mina")).secret
    async with open_services(settings, clock) as other:
        await other.listener.stop()
        await who(other, cookie)
        await other.credentials.by_token(token)
        await deactivate(services, "mina")
        await clock.advance(2.9)
        assert not await _shuts_out(other, cookie, token)  # remembered: this is what a request usually costs
        await clock.advance(0.1)
        assert await _shuts_out(other, cookie, token)


async def test_an_answer_that_was_under_way_while_something_was_revoked_is_not_remembered(services: Services) -> None:
    token = (await make_token(services, "mina")).secret
    async with services.database.transaction() as c:
        # Holds up the look-up after it has read, until the revocation is through.
        await c.execute("LOCK TABLE access_tokens IN SHARE MODE")
        asking = asyncio.create_task(services.credentials.by_token(token))
        await eventually(lambda: c.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"), 5)
        services.credentials.forget()
    await asking
    async with services.database.transaction() as c:
        await c.execute("UPDATE access_tokens SET revoked_at = now()")
    with pytest.raises(UnauthenticatedError):
        await services.credentials.by_token(token)


async def _both_listen(services: Services) -> bool:
    """Do two processes listen to this database?"""
    async with services.database.connection() as c:
        found = await c.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name = 'codehub-listener' AND state = 'idle' AND query LIKE 'LISTEN%'"
        )
    return bool(found == 2)


async def _shuts_out(services: Services, cookie: str, token: str) -> bool:
    """Cookie and token are both refused."""
    results = await asyncio.gather(
        services.credentials.by_cookie(cookie, BROWSER), services.credentials.by_token(token), return_exceptions=True
    )
    return all(isinstance(result, UnauthenticatedError) for result in results)


async def test_a_token_that_may_do_less_than_its_person_makes_no_login_link(services: Services) -> None:
    """A link logs in with everything: a token for reading and writing of an admin would have become an admin's."""
    await add(services, "boss", Role.ADMIN)
    made = await make_token(services, "boss", scopes=frozenset({Scope.READ, Scope.WRITE}))
    weak = await services.credentials.by_token(made.secret)
    with pytest.raises(ForbiddenError, match="admin"):
        await services.people.make_login_link(weak, "boss")
    whole = replace(weak, scopes=ALL_SCOPES)
    assert (await services.people.make_login_link(whole, "boss")).user_name == "boss"
