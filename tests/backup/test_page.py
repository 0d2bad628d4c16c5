"""`/backups` on a real platform: made by the page, brought back by `codehub restore`; the coordinator killed."""

import asyncio
import contextlib
import html
import os
import pathlib
import re
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from codehub.runtimes.layout import Layout
from tests.places import a_place
from tests.platform import Platform, codehub, running
from tests.workspaces.ides import write_templates
from tests.workspaces.test_lifecycle import _purge_everything, create, until, want

PAGE = {"accept": "text/html", "accept-language": "en"}
BACKUP = re.compile(r"/do/backups/([a-z0-9]+)/download")
LARGE = 150 * 1024 * 1024
TRIES = 10


@pytest.fixture(scope="module")
def folder() -> Iterator[pathlib.Path]:
    with a_place(on_disk=True) as made:
        yield made


@pytest.fixture(scope="module")
def platform(folder: pathlib.Path) -> Iterator[Platform]:
    environment: dict[str, Any] = {
        "CODEHUB_TEMPLATES_DIR": str(write_templates(folder / "templates")),
        "COORDINATOR_IDLE_INTERVAL": "1",
        "COORDINATOR_ACTIVE_INTERVAL": "0.2",
        "CODEHUB_STOP_GRACE_SECONDS": "1",
    }
    with running(folder / "data", **environment) as started:
        yield started
        _purge_everything(started)


@contextlib.asynccontextmanager
async def browser(platform: Platform, name: str, role: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with platform.client() as admin:
        await (await admin.post("/api/v1/users", json={"name": name, "role": role})).read()
        async with admin.post(f"/api/v1/users/{name}/login-links") as answer:
            link = (await answer.json())["url"]
    async with platform.client(token=None) as client:
        await (await client.post(link, allow_redirects=False)).read()
        yield client


async def shown(client: aiohttp.ClientSession, language: str = "en") -> str:
    async with client.get("/backups", headers={**PAGE, "accept-language": language}) as answer:
        assert answer.status == 200
        return html.unescape(await answer.text())


async def make(client: aiohttp.ClientSession) -> None:
    async with client.post("/backups", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["location"]) == (303, "/backups")


async def until_shown(client: aiohttp.ClientSession, text: str, seconds: float = 90) -> str:
    async with asyncio.timeout(seconds):
        while text not in (found := await shown(client)):
            await asyncio.sleep(0.1)
        return found


async def test_a_backup_made_by_the_page_comes_back_on_an_empty_machine(
    platform: Platform, folder: pathlib.Path
) -> None:
    async with platform.client() as api, browser(platform, "boss", "admin") as boss:
        id_ = await create(api)
        await until(api, id_, "RUNNING")
        await want(api, id_, "STANDBY")
        (Layout(platform.data_dir).of(id_).home / "note").write_text("of a learner")
        assert "None yet." in await shown(boss)
        assert "아직 없습니다." in await shown(boss, "ko")
        await asyncio.gather(make(boss), make(boss))  # a double click
        page = await until_shown(boss, "made by boss")
        (backup,) = set(BACKUP.findall(page))
        assert "Homes: 1, archives: 0" in page
        async with boss.post(f"/do/backups/{backup}/download") as answer:
            assert answer.status == 200
            assert answer.headers["cache-control"] == "no-store"
            name = re.search(r'filename="([^"]+)"', answer.headers["content-disposition"])
            assert name
            content = await answer.read()
        async with api.get("/api/v1/admin/audit", params={"person": "boss"}) as answer:
            told = {(e["code"], e["subject"]) for e in (await answer.json())["items"]}
    assert {("backup.create", backup), ("backup.download", backup)} <= told
    assert content == (platform.data_dir / "backups" / name[1]).read_bytes()
    (folder / name[1]).write_bytes(content)
    back = codehub("restore", str(folder / name[1]), CODEHUB_DATA_DIR=str(folder / "new"))
    assert back.returncode == 0, back.stderr
    assert "people stay logged in" in back.stdout
    assert (Layout(folder / "new").of(id_).home / "note").read_text() == "of a learner"


async def test_others_than_admins_get_nothing_of_it(platform: Platform) -> None:
    async with browser(platform, "kim", "teacher") as kim, browser(platform, "mina", "learner") as mina:
        for client in (kim, mina):
            async with client.get("/backups", headers=PAGE) as answer:
                assert answer.status == 403
            for path in ("/backups", *(f"/do/backups/x/{verb}" for verb in ("cancel", "delete", "download"))):
                async with client.post(path) as answer:
                    assert answer.status == 403
    async with platform.client(token=None) as nobody, nobody.get("/backups", allow_redirects=False) as answer:
        assert answer.status == 303
    async with browser(platform, "boss", "admin") as boss, boss.get("/do/backups/x/download") as answer:
        assert answer.status == 405
    async with browser(platform, "boss", "admin") as boss, boss.post("/do/backups/x/download") as answer:
        assert answer.status == 404


async def test_a_coordinator_killed_in_the_middle_leaves_no_half_backup_and_says_so(platform: Platform) -> None:
    files = platform.data_dir / "backups"
    async with platform.client() as api, browser(platform, "boss", "admin") as boss:
        id_ = await create(api)
        await until(api, id_, "RUNNING")
        await want(api, id_, "STANDBY")
        large = Layout(platform.data_dir).of(id_).home / "large"
        await asyncio.to_thread(large.write_bytes, os.urandom(LARGE))
        await until_shown(boss, "Make a backup")
        before = {path.name for path in files.iterdir()}
        for _ in range(TRIES):
            await make(boss)
            if await killed_in_the_middle(platform, files, before):
                break
            await until_shown(boss, "Make a backup")
            before = {path.name for path in files.iterdir()}
        else:
            pytest.fail("it was always done before it could be killed")
        await until_shown(boss, "CodeHub was restarted")
        assert {path.name for path in files.iterdir()} == before  # not even the part is left
        await asyncio.to_thread(large.unlink)
        count = len(set(BACKUP.findall(await shown(boss))))
        await make(boss)
        async with asyncio.timeout(90):
            while len(set(BACKUP.findall(await shown(boss)))) == count:
                await asyncio.sleep(0.1)


async def killed_in_the_middle(platform: Platform, files: pathlib.Path, before: set[str]) -> bool:
    """False: it was done before. Stopped first, so that it is certain where it was."""
    async with asyncio.timeout(60):
        while not any(path.name.endswith(".part") for path in files.iterdir()):
            if {path.name for path in files.iterdir()} != before:
                return False
            await asyncio.sleep(0.005)
    pid = platform.children()["coordinator"]
    os.kill(pid, signal.SIGSTOP)
    in_the_middle = any(path.name.endswith(".part") for path in files.iterdir())
    os.kill(pid, signal.SIGKILL if in_the_middle else signal.SIGCONT)
    return in_the_middle
