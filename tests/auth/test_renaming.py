"""A person can be renamed: what is theirs and what they did stays theirs, and no other person gets the old name."""

import asyncio

import pytest

from codehub.auth.service import People
from codehub.command import operator
from codehub.errors import NameKeptError, UserExistsError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.web.services import Services
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import Filters, NewWorkspace
from tests.auth.helpers import add

BEGINNING = 2**62


async def rename(people: People, name: str, new_name: str) -> None:
    await people.rename_user(operator(), name, new_name)


async def test_workspaces_shares_history_and_audit_go_with_the_person(services: Services) -> None:
    await add(services, "mina")
    await add(services, "jun")
    mina, jun = (Principal(name, Role.LEARNER, ALL_SCOPES) for name in ("mina", "jun"))
    theirs = admitted(await services.workspaces.create(mina, NewWorkspace("Lab", "terminal", Desired.STANDBY)))
    shared = admitted(await services.workspaces.create(jun, NewWorkspace("Group", "terminal", Desired.STANDBY)))
    await services.sharing.share(jun, shared.id, "mina")
    await rename(services.people, "mina", "mina-kim")
    renamed = Principal("mina-kim", Role.LEARNER, ALL_SCOPES)
    after = (services.clock.now().replace(year=2000), "")
    assert [w.id for w in await services.workspaces.page(renamed, Filters(), after=after, limit=9)] == [theirs.id]
    assert [w.id for w in await services.sharing.shared_with(renamed, after=after, limit=9)] == [shared.id]
    assert [s.user_name for s in await services.sharing.shares(jun, shared.id, after="", limit=9)] == ["mina-kim"]
    assert {e.actor for e in await services.workspaces.history(renamed, theirs.id, before=BEGINNING, limit=9)} == {
        "mina-kim"
    }
    (shared_line, *_) = await services.workspaces.history(jun, shared.id, before=BEGINNING, limit=9)
    assert shared_line.data == {"user": "mina-kim"}
    about = await services.audit.page(operator(), before=None, actor=None, subject="mina-kim", limit=9)
    assert [e.code for e in about] == ["user.rename", "user.create"]
    await services.sharing.unshare(jun, shared.id, "mina-kim")
    assert await services.sharing.shares(jun, shared.id, after="", limit=9) == []


async def test_a_name_that_was_given_is_never_given_to_another_person(services: Services) -> None:
    await add(services, "mina")
    await add(services, "jun")
    await rename(services.people, "mina", "mina-kim")
    with pytest.raises(UserExistsError):
        await add(services, "mina")
    for taken in ("mina", "mina-kim"):
        with pytest.raises(UserExistsError):
            await rename(services.people, "jun", taken)
    await rename(services.people, "mina-kim", "mina")  # their own: they may be called so again
    assert (await services.people.get_user(operator(), "mina")).name == "mina"


async def test_a_share_with_a_name_that_nobody_had_lets_nobody_in_later(services: Services) -> None:
    await add(services, "jun")
    jun = Principal("jun", Role.LEARNER, ALL_SCOPES)
    w = admitted(await services.workspaces.create(jun, NewWorkspace("Group", "terminal", Desired.STANDBY)))
    await services.sharing.share(jun, w.id, "late")
    await add(services, "late")
    after = (services.clock.now().replace(year=2000), "")
    late = Principal("late", Role.LEARNER, ALL_SCOPES)
    assert await services.sharing.shared_with(late, after=after, limit=9) == []
    await services.sharing.unshare(jun, w.id, "late")
    assert await services.sharing.shares(jun, w.id, after="", limit=9) == []


@pytest.mark.parametrize("name", ["ttl", "wake", "codehub", "waiting-room"])
async def test_nobody_is_called_like_a_part_of_the_platform(services: Services, name: str) -> None:
    with pytest.raises(UserExistsError):
        await add(services, name)


async def test_two_who_want_one_name_do_not_both_get_it(services: Services) -> None:
    for name in ("mina", "jun", "sora"):
        await add(services, name)
    tries = [rename(services.people, name, "kim") for name in ("mina", "jun", "sora")]
    found = await asyncio.gather(*tries, add(services, "kim"), return_exceptions=True)
    assert [type(each) for each in found if each] == [UserExistsError] * 3


async def test_the_admin_keeps_its_name(services: Services) -> None:
    await services.people.ensure_first_admin()
    with pytest.raises(NameKeptError, match="CODEHUB_ADMIN_TOKEN"):
        await rename(services.people, "admin", "root")
