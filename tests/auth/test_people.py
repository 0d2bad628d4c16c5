"""People and who may change them, on the real database; what two at once do; what the audit log keeps."""

import asyncio

import pytest

from codehub import ids
from codehub.auth.logins import Browser
from codehub.auth.service import FROM_THE_START
from codehub.command import operator
from codehub.errors import (
    CodeHubError,
    DeactivatedError,
    ForbiddenError,
    InvalidRequestError,
    LastAdminError,
    NotFoundError,
    UserExistsError,
)
from codehub.policy.model import ALL_SCOPES, Principal, Role, Scope
from codehub.settings import Settings
from codehub.web.services import Services
from codehub.wiring.api import open_services
from tests.auth.helpers import add, deactivate, entries, log_in, make_link, make_token
from tests.virtual_time import ManualClock


async def test_the_first_admin_is_made_once_even_when_two_processes_start_together(
    services: Services, settings: Settings, clock: ManualClock
) -> None:
    async with open_services(settings, clock) as other:
        both = await asyncio.gather(*[s.people.ensure_first_admin() for s in (services, other) * 5])
    assert {(person.name, person.role) for person in both} == {("admin", Role.ADMIN)}
    assert len(await entries(services, "user.create")) == 1


async def test_a_name_can_be_taken_once_even_when_twenty_ask_at_the_same_time(services: Services) -> None:
    tries = [services.people.create_user(operator(), "mina", Role.LEARNER) for _ in range(20)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(result, UserExistsError) for result in results) == 19
    assert len(await entries(services, "user.create")) == 1


@pytest.mark.parametrize("name", ["", "Mina", "mina kim", "-mina", "mina-", "민아", "a" * 64, "mina\n", "mina\0"])
async def test_a_name_that_is_no_dns_label_is_refused(services: Services, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="name"):
        await services.people.create_user(operator(), name, Role.LEARNER)


async def test_only_admins_manage_people(services: Services) -> None:
    await add(services, "mina", Role.TEACHER)
    mina = Principal("mina", Role.TEACHER, ALL_SCOPES)
    with pytest.raises(ForbiddenError):
        await services.people.create_user(mina, "jun", Role.LEARNER)
    with pytest.raises(ForbiddenError):
        await services.people.change_user(mina, "mina", role=Role.ADMIN, active=None)
    await add(services, "jun")
    with pytest.raises(NotFoundError):
        await services.people.make_login_link(mina, "jun")
    with pytest.raises(ForbiddenError):
        await services.people.page_users(mina, after="", role=None, limit=10)


async def test_somebody_elses_things_are_not_there(services: Services) -> None:
    await add(services, "mina")
    await add(services, "jun")
    token = (await make_token(services, "jun")).token
    mina = Principal("mina", Role.LEARNER, ALL_SCOPES)
    refusals = []
    for name in ("jun", "nobody-of-that-name", "NOT A NAME"):
        with pytest.raises(NotFoundError) as caught:
            await services.people.get_user(mina, name)
        refusals.append(caught.value.detail)
    assert len(set(refusals)) == 1  # one cannot even tell which of them exist
    with pytest.raises(NotFoundError):
        await services.people.revoke_token(mina, "jun", token.id)
    with pytest.raises(NotFoundError):
        await services.people.revoke_token(mina, "mina", token.id)


@pytest.mark.parametrize("demotion", [{"role": Role.TEACHER, "active": None}, {"role": None, "active": False}])
async def test_the_last_admin_stays(services: Services, demotion: dict[str, None]) -> None:
    await services.people.ensure_first_admin()
    with pytest.raises(LastAdminError):
        await services.people.change_user(operator(), "admin", **demotion)
    assert (await services.people.get_user(operator(), "admin")).role is Role.ADMIN


async def test_a_deactivated_admin_does_not_count_as_one(services: Services) -> None:
    await services.people.ensure_first_admin()
    await add(services, "mina", Role.ADMIN)
    await deactivate(services, "mina")
    with pytest.raises(LastAdminError):
        await deactivate(services, "admin")


async def test_of_two_admins_who_demote_each_other_at_once_exactly_one_succeeds(
    services: Services, settings: Settings, clock: ManualClock
) -> None:
    await services.people.ensure_first_admin()
    await add(services, "mina", Role.ADMIN)
    async with open_services(settings, clock) as other:
        for _ in range(10):
            results = await asyncio.gather(
                services.people.change_user(operator(), "mina", role=Role.TEACHER, active=None),
                other.people.change_user(operator(), "admin", role=None, active=False),
                return_exceptions=True,
            )
            assert sorted(isinstance(result, LastAdminError) for result in results) == [False, True]
            for name in ("admin", "mina"):
                await services.people.change_user(operator(), name, role=Role.ADMIN, active=True)


async def test_a_log_in_and_a_deactivation_at_once_neither_block_each_other_nor_leave_a_session(
    services: Services,
) -> None:
    await services.people.ensure_first_admin()
    await add(services, "mina")
    for _ in range(20):
        link = await make_link(services, "mina")
        results = await asyncio.gather(
            services.people.log_in(link, Browser("", operator().origin)),
            deactivate(services, "mina"),
            return_exceptions=True,
        )
        assert all(result is None or isinstance(result, str | CodeHubError) for result in results), results
        await services.people.change_user(operator(), "mina", role=None, active=True)
        async with services.database.connection() as c:
            assert await c.fetchval("SELECT count(*) FROM browser_sessions WHERE revoked_at IS NULL") == 0


async def test_a_deactivated_person_comes_back_without_their_old_credentials(services: Services) -> None:
    await add(services, "mina")
    await log_in(services, "mina")
    await make_token(services, "mina")
    await deactivate(services, "mina")
    with pytest.raises(DeactivatedError):
        await make_link(services, "mina")
    with pytest.raises(DeactivatedError):
        await make_token(services, "mina")
    await services.people.change_user(operator(), "mina", role=None, active=True)
    async with services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM browser_sessions WHERE revoked_at IS NULL") == 0
        assert await c.fetchval("SELECT count(*) FROM access_tokens WHERE revoked_at IS NULL") == 0


async def test_every_act_leaves_an_entry_that_says_who_what_and_from_where(services: Services) -> None:
    someone = Principal("boss", Role.ADMIN, ALL_SCOPES, request_id="request-7", address="192.0.2.7")
    people = services.people
    await services.people.ensure_first_admin()
    await people.create_user(someone, "mina", Role.LEARNER)
    await people.change_user(someone, "mina", role=Role.TEACHER, active=None)
    link = await people.make_login_link(someone, "mina")
    await people.log_in(link.secret, Browser("", someone.origin))
    made = await people.create_token(someone, "mina", label="", scopes=frozenset({Scope.READ}), days=None)
    await people.revoke_token(someone, "mina", made.token.id)
    session = (await people.page_sessions(someone, "mina", after=FROM_THE_START, limit=5))[0]
    await people.revoke_session(someone, "mina", session.id)
    found = await services.audit.page(operator(), before=None, actor=None, subject="mina", limit=100)
    assert [(entry.code, entry.actor) for entry in reversed(found)] == [
        ("user.create", "boss"),
        ("user.change", "boss"),
        ("login_link.create", "boss"),
        ("login", "mina"),
        ("token.create", "boss"),
        ("token.revoke", "boss"),
        ("login.revoke", "boss"),
    ]
    assert {(entry.request_id, entry.address) for entry in found} == {("request-7", "192.0.2.7")}
    assert found[1].data == {"id": made.token.id}


async def test_an_act_whose_entry_cannot_be_written_does_not_happen(services: Services) -> None:
    async with services.database.connection() as c:
        await c.execute("ALTER TABLE audit_log ADD CONSTRAINT no_entries CHECK (code = 'nothing')")
    with pytest.raises(Exception, match="no_entries"):
        await add(services, "mina")
    with pytest.raises(NotFoundError):
        await services.people.get_user(operator(), "mina")


async def test_a_page_of_people_begins_behind_the_name_it_is_given(services: Services) -> None:
    for name in ("jun", "mina", "ara"):
        await add(services, name)
    await add(services, "sora", Role.TEACHER)
    page = await services.people.page_users(operator(), after="ara", role=None, limit=2)
    assert [person.name for person in page] == ["jun", "mina"]
    teachers = await services.people.page_users(operator(), after="", role=Role.TEACHER, limit=2)
    assert [person.name for person in teachers] == ["sora"]


def test_ids_are_dns_labels() -> None:
    assert all(ids.is_label(ids.new(length)) for length in (1, 12, 20, 63) for _ in range(100))
