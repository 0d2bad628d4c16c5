"""Workspaces without an origin of their own: their scripts are the dashboard's, and act as whoever opens them."""

import dataclasses
import pathlib
import re
import tempfile
from collections.abc import AsyncIterator

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from codehub.workspaces.model import Workspace
from tests.gate.lab import PAGE, Lab, opened
from tests.virtual_time import ManualClock
from tests.web.server import ADMIN_TOKEN

FORM = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
async def lab(settings: Settings, clock: ManualClock) -> AsyncIterator[Lab]:
    away = dataclasses.replace(settings, server=dataclasses.replace(settings.server, host="0.0.0.0"))
    with tempfile.TemporaryDirectory(prefix="codehub-") as folder:
        async with open_services(away, clock) as services, opened(services, pathlib.Path(folder)) as started:
            await services.people.create_user(operator(), "mina", Role.LEARNER)
            yield started


async def look(lab: Lab, browser: aiohttp.ClientSession, w: Workspace, path: str = "") -> tuple[int, str]:
    async with browser.get(f"{lab.url}/w/{w.id}/{path}", headers=PAGE) as answer:
        return answer.status, await answer.text()


async def test_an_owner_enters_after_they_were_told_what_it_means(lab: Lab) -> None:
    w = await lab.running("mina")
    understood = f"{lab.url}/_codehub/understood/{w.id}"
    async with lab.browser("mina") as browser:
        for _ in range(2):
            status, text = await look(lab, browser, w, "tree?a=1")
            assert (status, "Before “Lab” opens" in text) == (403, True)
        assert lab.ide.requests == []
        async with browser.post(understood, headers={**FORM, "Sec-Fetch-Site": "cross-site"}) as answer:
            assert answer.status == 403
        assert (await look(lab, browser, w))[0] == 403
        (next_,) = re.findall(r'name="next" value="([^"]+)"', text)
        async with browser.post(understood, data={"next": next_}, headers=FORM) as answer:
            assert (answer.status, str(answer.url)) == (200, f"{lab.url}/w/{w.id}/tree?a=1")
        assert (await look(lab, browser, await lab.running("mina")))[0] == 200  # told once
        assert not any("codehub" in r["headers"].get("Cookie", "") for r in lab.ide.requests)
        told = next(c.value for c in browser.cookie_jar if c.key == "codehub-told")
    async with lab.browser("mina") as another:
        cookie = {"codehub-told": told}
        other = await lab.running("mina")
        async with another.get(f"{lab.url}/w/{other.id}/", headers=PAGE, cookies=cookie) as answer:
            assert answer.status == 403  # of another login
        assert (await look(lab, another, other))[0] == 403


async def test_admins_do_not_enter_and_are_told_what_to_do(lab: Lab) -> None:
    w, theirs = await lab.running("admin"), await lab.running("mina")
    async with lab.browser("admin") as browser:
        status, text = await look(lab, browser, w)
        assert (status, "CODEHUB_WORKSPACE_DOMAIN" in text, "codehub user add" in text) == (403, True, True)
        async with browser.post(f"{lab.url}/_codehub/understood/{w.id}", headers=FORM) as answer:
            assert answer.status == 403
        assert (await look(lab, browser, theirs))[0] == 403
        assert not [c for c in browser.cookie_jar if c.key == "codehub-pass"]
    assert lab.ide.requests == []
    async with lab.browser() as program:  # has no dashboard that scripts could act on
        bearer = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        async with program.get(f"{lab.url}/w/{w.id}/api", headers=bearer) as answer:
            assert answer.status == 200


async def test_who_becomes_an_admin_has_no_workspace_open_any_more(lab: Lab) -> None:
    w = await lab.running("mina")
    async with lab.browser("mina") as browser:
        async with browser.post(f"{lab.url}/_codehub/understood/{w.id}", headers=FORM) as answer:
            assert answer.status == 200
        assert (await look(lab, browser, w))[0] == 200
        await lab.services.people.change_user(operator(), "mina", role=Role.ADMIN, active=None)
        await lab.director.close_revoked()
        before = len(lab.ide.requests)
        async with browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["location"].startswith("/?next=")) == (303, True)
        assert len(lab.ide.requests) == before
    async with lab.browser("mina") as browser:
        status, text = await look(lab, browser, w)
        assert (status, "CODEHUB_WORKSPACE_DOMAIN" in text) == (403, True)
