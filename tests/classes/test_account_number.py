"""How many accounts one teacher makes is bounded, however they come and wherever they went."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.classes.test_classes import a_class
from tests.classes.test_import import learners, send
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving


@pytest.fixture
async def narrow(settings: Settings, clock: ManualClock) -> AsyncIterator[Site]:
    """A teacher makes ten accounts, ten times what is set."""
    limits = dataclasses.replace(settings.limits, max_accounts_per_user=1)
    async with open_services(dataclasses.replace(settings, limits=limits), clock) as services:
        await services.people.ensure_first_admin()
        await services.people.create_user(operator(), "kim", Role.TEACHER)
        async with serving(services) as site:
            yield site


def names(first: int, last: int) -> str:
    return "".join(f"Learner {n},learner-{n},\n" for n in range(first, last))


async def test_accounts_of_a_teacher_have_a_number_also_of_people_who_left_the_class(narrow: Site) -> None:
    async with narrow.client(await narrow.token("kim")) as client, narrow.admin() as boss:
        kim, admin = Learner(client), Learner(boss)
        made = await a_class(kim)
        assert (await send(kim, made["id"], names(0, 9)))[0] == 200
        for dry_run in ("true", "false"):
            status, problem = await send(kim, made["id"], names(9, 11), dry_run=dry_run)
            assert (status, problem["code"]) == (429, "ACCOUNT_LIMIT")
        assert len(await learners(kim, made["id"])) == 9  # all of a list, or nothing
        assert (await kim.request("DELETE", f"/classes/{made['id']}/members/learner-0")).status == 204
        path, body = f"/classes/{made['id']}/people", {"display_name": "One more"}
        said = await asyncio.gather(*(kim.ask("POST", path, body) for _ in range(4)))
        assert Counter(status for status, _ in said) == {201: 1, 429: 3}
        assert (await send(kim, made["id"], "Learner 0,learner-0,\n"))[0] == 200  # whose account is there
        assert (await admin.request("DELETE", "/users/learner-1")).status == 204
        assert (await kim.ask("POST", path, body))[0] == 201
        assert (await send(admin, made["id"], names(20, 32)))[0] == 200


async def test_a_page_says_what_to_do_when_no_more_accounts_can_be_made(narrow: Site) -> None:
    async with narrow.client(await narrow.token("kim")) as client, narrow.browser("kim") as browser:
        made = await a_class(Learner(client))
        form = aiohttp.FormData({"list": names(0, 11)}, default_to_multipart=True)
        async with browser.post(f"/classes/{made['id']}/import", data=form) as answer:
            page = await answer.text()
        assert (answer.status, "as many accounts as you may" in page) == (429, True)
        assert "learner-10" in page  # what was typed is there again
