"""Groups at a provider give roles and classes at each login, and take back what they gave."""

import asyncio
import json

import pytest

from codehub.classes.model import Came
from codehub.command import operator
from codehub.policy.model import Role
from tests.auth.helpers import add, entries
from tests.openid.conftest import Sites
from tests.openid.test_linking import LINK, say_yes
from tests.openid.visits import visit, whoami
from tests.openid.wicked import Wicked
from tests.web.server import Site

ROLES = json.dumps({"cn=staff,ou=people": "teacher", "heads": "admin"})


async def log_in(site: Site, provider: Wicked, *groups: str) -> str:
    """The role that they have then."""
    provider.claims["groups"] = list(groups)
    async with site.client() as browser:
        assert (await visit(browser)).status == 303
        me = await whoami(browser)
        assert me
        return str(me["role"])


async def members(site: Site, class_id: str) -> list[tuple[str, str]]:
    found = await site.services.classes.members(operator(), class_id, after="", limit=100)
    assert {m.came for m in found} <= {Came.ADDED}
    return [(m.name, m.role) for m in found]


async def test_groups_give_a_role_and_take_it_back(sites: Sites, provider: Wicked) -> None:
    site = await sites.open(roles=ROLES)
    assert await log_in(site, provider) == "learner"
    assert await log_in(site, provider, "cn=staff,ou=people") == "teacher"
    assert await log_in(site, provider, "cn=staff,ou=people", "heads") == "admin"
    assert await log_in(site, provider, "cn=staff,ou=people") == "teacher"
    assert await log_in(site, provider, "others") == "learner"
    changes = [(e.actor, e.data["role"]) for e in await entries(site.services, "user.change")]
    assert changes == [("openid", role) for role in ("learner", "teacher", "admin", "teacher")]


async def test_a_role_that_an_admin_gave_is_not_taken(sites: Sites, provider: Wicked) -> None:
    site = await sites.open(roles=ROLES)
    await log_in(site, provider)
    await site.services.people.change_user(operator(), "mina", role=Role.TEACHER, active=None)
    assert await log_in(site, provider, "others") == "teacher"


async def test_the_only_admin_stays_admin(sites: Sites, provider: Wicked) -> None:
    site = await sites.open(roles=ROLES)
    assert await log_in(site, provider, "heads") == "admin"
    await site.services.people.change_user(operator(), "admin", role=Role.LEARNER, active=None)
    assert await log_in(site, provider) == "admin"
    await site.services.people.change_user(operator(), "admin", role=Role.ADMIN, active=None)
    assert await log_in(site, provider) == "learner", "now there is another one"


async def test_a_change_to_or_from_admin_ends_the_other_sessions(sites: Sites, provider: Wicked) -> None:
    site = await sites.open(roles=ROLES)
    async with site.client() as before:
        await visit(before)
        assert await log_in(site, provider, "heads") == "admin"
        assert await whoami(before) is None


async def test_groups_come_from_userinfo_and_may_be_a_single_one(sites: Sites, provider: Wicked) -> None:
    site = await sites.open(roles=ROLES, groups_claim="roles_here")
    provider.userinfo = {"roles_here": "heads"}
    async with site.client() as browser:
        await visit(browser)
        me = await whoami(browser)
    assert me
    assert me["role"] == "admin"


async def test_groups_lead_into_classes_and_out_of_them(sites: Sites, provider: Wicked) -> None:
    first = await sites.open()
    one = (await first.services.classes.create(operator(), "3B")).id
    two = (await first.services.classes.create(operator(), "4A")).id
    site = await sites.open(roles=ROLES, classes=json.dumps({"3b": one, "4a": two, "old": "not-there"}))
    assert await log_in(site, provider, "3b", "old") == "learner"
    assert await members(site, one) == [("mina", "learner")]
    await log_in(site, provider, "3b", "4a")
    await log_in(site, provider, "4a")
    assert (await members(site, one), await members(site, two)) == ([], [("mina", "learner")])


async def test_a_teacher_teaches_the_class_of_their_group(sites: Sites, provider: Wicked) -> None:
    first = await sites.open()
    id_ = (await first.services.classes.create(operator(), "3B")).id
    site = await sites.open(roles=ROLES, classes=json.dumps({"3b": id_}))
    await log_in(site, provider, "3b", "cn=staff,ou=people")
    assert await members(site, id_) == [("mina", "teacher")]
    await log_in(site, provider, "cn=staff,ou=people")
    assert await members(site, id_) == [("mina", "teacher")], "a class keeps its only teacher"


async def test_who_was_in_the_class_already_stays_when_the_group_is_left(sites: Sites, provider: Wicked) -> None:
    first = await sites.open(create="false")
    await add(first.services, "kim")
    id_ = (await first.services.classes.create(operator(), "3B")).id
    await first.services.classes.add_member(operator(), id_, "kim", "learner")  # type: ignore[arg-type]
    async with first.browser("kim") as kim:
        await say_yes(kim, await visit(kim, LINK))
    site = await sites.open(classes=json.dumps({"3b": id_}))
    await log_in(site, provider, "3b")
    await log_in(site, provider)
    assert await members(site, id_) == [("kim", "learner")]


async def test_an_archived_class_keeps_nobody_out(sites: Sites, provider: Wicked) -> None:
    first = await sites.open()
    id_ = (await first.services.classes.create(operator(), "3B")).id
    await first.services.classes.change(operator(), id_, archived=True)
    site = await sites.open(classes=json.dumps({"3b": id_}))
    assert await log_in(site, provider, "3b") == "learner"
    assert await members(site, id_) == []


@pytest.mark.parametrize("round_", range(3))
async def test_a_class_that_comes_at_once_gets_in(sites: Sites, provider: Wicked, round_: int) -> None:
    first = await sites.open()
    one = (await first.services.classes.create(operator(), "3B")).id
    two = (await first.services.classes.create(operator(), "4A")).id
    site = await sites.open(roles=ROLES, classes=json.dumps({"a": one, "b": two}))
    provider.claims = {"groups": ["a", "b"]}

    async def come(n: int) -> int:
        async with site.client() as browser:
            provider.claims |= {"sub": f"s{n % 5}", "preferred_username": f"p{n % 5}"}
            return (await visit(browser)).status

    assert set(await asyncio.gather(*map(come, range(20)))) == {303}
    assert len(await members(site, one)) == len(await members(site, two)) <= 5
