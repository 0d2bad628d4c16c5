"""What `/templates` and the API say of an IDE that is being installed, in every state that it can be in."""

import html
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role
from tests.web.server import Site

BASE: dict[str, Any] = {"status": "RUNNING", "steps": [], "lines": [], "problem": None, "cancelled": False}
STEPS = [
    {"code": "node", "title": "Fetching Node", "data": {}, "before": True},
    {"code": "building", "title": "Building", "data": {"n": 2, "of": 9, "name": "<argon2>"}, "before": False},
    {"code": "of-a-later-version", "title": "Something new", "data": {}, "before": False},
]


async def put(site: Site, **changed: Any) -> None:
    """As the loop would leave it, 125 seconds after it began."""
    now = site.services.clock.now()
    row = {**BASE, **changed}
    begun = now - timedelta(seconds=125)
    steps = [{**step, "at": begun.isoformat()} for step in row["steps"]]
    ended = now if row["status"] in {"DONE", "FAILED", "CANCELLED"} else None
    async with site.services.database.connection() as c:
        await c.execute("DELETE FROM ide_installs")
        await c.execute(
            "INSERT INTO ide_installs (name, status, actor, cancelled, steps, lines, problem, asked_at, started_at,"
            " ended_at) VALUES ('code-server', $1, 'cli:root', $2, $3, $4, $5, $6, $6, $7)",
            *(row["status"], row["cancelled"], steps, row["lines"], row["problem"], begun, ended),
        )


async def page(site: Site, language: str = "en") -> str:
    async with (
        site.browser("admin") as admin,
        admin.get("/templates", headers={"accept": "text/html", "accept-language": language}) as answer,
    ):
        assert answer.status == 200
        return html.unescape(await answer.text())


def failed(code: str, **data: Any) -> dict[str, Any]:
    return {"status": "FAILED", "problem": {"code": code, **data}}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"status": "WAITING"}, ["about to be installed", "Stop installing"]),
        ({}, ["is being installed", "2 min 5 s so far", "Stop installing"]),
        ({"steps": STEPS, "lines": ["<b>g++</b>"]}, ["Building 2 of 9: <argon2>", "Something new", "<b>g++</b>"]),
        ({"cancelled": True}, ["Installing VS Code is being stopped"]),
        ({"status": "CANCELLED", "steps": STEPS}, ["was stopped", "Install VS Code"]),
        ({"status": "DONE"}, ["VS Code is not installed"]),  # its folder was removed since
        (failed("tools", missing=["g++", "make"]), ["g++, make is not installed on this machine", "apt-get install"]),
        (failed("step", step=STEPS[1], said="no.h"), ["A step failed: Building 2 of 9: <argon2>", "no.h", "Try again"]),
        (failed("busy"), ["from a shell"]),
        (failed("time"), ["two hours"]),
        (failed("gave_up"), ["interrupted three times"]),
        (failed("other", said="OSError"), ["OSError"]),
    ],
)
async def test_every_state_is_said(site: Site, row: dict[str, Any], words: list[str]) -> None:
    await put(site, **row)
    shown = await page(site)
    for word in words:
        assert word in shown
    assert 'lang="ko"' in await page(site, "ko")


async def test_admins_ask_and_nobody_else(site: Site, admin: aiohttp.ClientSession) -> None:
    await site.services.people.create_user(operator(), "kim", Role.TEACHER)
    async with site.client(await site.token("kim")) as kim:
        for method, path in (("GET", ""), ("POST", "/code-server/install"), ("POST", "/code-server/cancel")):
            async with kim.request(method, f"/api/v1/admin/ides{path}") as answer:
                assert answer.status == 403
    async with site.browser("kim") as kim:
        for path in ("/templates/install", "/templates/cancel"):
            async with kim.post(path, data={"ide": "code-server"}, headers={"accept": "text/html"}) as answer:
                assert answer.status == 403
        async with kim.get("/", headers={"accept": "text/html"}) as answer:
            assert "Install VS Code" not in await answer.text()
    async with admin.post("/api/v1/admin/ides/code-server/install") as answer:
        assert answer.status == 202
        assert (await answer.json())["installation"]["status"] == "WAITING"
    async with admin.post("/api/v1/admin/ides/emacs/install") as answer:
        assert answer.status == 404
    async with admin.post("/api/v1/admin/ides/code-server/cancel") as answer:
        assert (await answer.json())["installation"]["status"] == "CANCELLED"
    async with admin.get("/api/v1/admin/audit?code=ide.cancel") as answer:
        assert [entry["subject"] for entry in (await answer.json())["items"]] == ["code-server"]
