"""`/storage`, by HTTP; the coordinator's look by hand, on a real object store."""

import html
import pathlib
import re
from datetime import timedelta

import aiohttp
import pytest

from codehub.archives import model, process, service
from codehub.archives.objects import open_store
from codehub.command import operator
from codehub.coordinator.leader import Lease
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.retention.gc import Finder
from codehub.retention.preview import PreviewLoop
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.null_runtime import NullRuntime
from tests.virtual_time import ManualClock
from tests.web.server import Site
from tests.workspaces.bulks import loop_of


@pytest.fixture
async def loop(site: Site, tmp_path: pathlib.Path) -> PreviewLoop:
    services = site.services
    await loop_of(services)  # somebody leads
    objects = open_store(f"file://{tmp_path}/objects")
    home = tmp_path / "home"
    home.mkdir()
    (home / "note").write_text("kept")
    await service.archive(
        process.from_folder(home), objects, model.key_base("nobodys", "op", 1), now=services.clock.now()
    )
    finder = Finder(services.database, NullRuntime(), objects, services.settings.archives)
    return PreviewLoop(Lease(services.database, "test", 1), finder, services.clock)


async def page(client: aiohttp.ClientSession, language: str = "en") -> str:
    async with client.get("/storage", headers={"accept": "text/html", "accept-language": language}) as answer:
        assert answer.status == 200
        return html.unescape(await answer.text())


async def ask(client: aiohttp.ClientSession) -> None:
    async with client.post("/storage/look", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["location"]) == (303, "/storage")


async def test_what_would_go_is_shown_with_its_size_its_time_and_its_reason(
    site: Site, loop: PreviewLoop, clock: ManualClock
) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    mina = Principal("mina", Role.LEARNER, ALL_SCOPES)
    made = admitted(await site.services.workspaces.create(mina, NewWorkspace("Lab", "terminal", Desired.STANDBY)))
    await site.services.workspaces.delete(mina, made.id, purge=False)
    async with site.services.database.connection() as c:
        gone = "UPDATE workspaces SET observed_status = 'DELETED', disk_bytes = 42000000 WHERE id = $1"
        await c.execute(gone, made.id)
    async with site.browser("admin") as admin:
        assert "Nobody has looked yet" in await page(admin)
        assert (await loop.tick()).stats == {"found": 0}  # not asked
        await ask(admin)
        assert "Looking …" in await page(admin)
        await clock.advance(1)
        assert (await loop.tick()).stats == {"found": 2}
        shown, korean = await page(admin), await page(admin, "ko")
        assert (await loop.tick()).stats == {"found": 0}  # once is enough
    rows = [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in re.findall(r"<li>(.*?)</li>", shown)]
    (archive,) = [row for row in rows if row.startswith("Archive")]
    (workspace,) = [row for row in rows if row.startswith("Workspace")]
    assert "no workspace has its id" in archive
    assert "MB" in archive
    assert "42 MB" in workspace
    assert "its time in the trash runs out" in workspace
    assert "Looking …" not in shown
    assert "휴지통의 워크스페이스" in korean


async def test_who_asks_while_it_is_looked_gets_another_look(site: Site, loop: PreviewLoop, clock: ManualClock) -> None:
    async with site.browser("admin") as admin:
        await ask(admin)
        await clock.advance(1)
        await loop.tick()
        await clock.advance(1)
        await ask(admin)
        assert "Looking …" in await page(admin)
        await clock.advance(1)
        await loop.tick()
        assert "Looking …" not in await page(admin)
    found = await site.services.previews.get(operator())
    assert found.made_at is not None
    assert clock.now() - found.made_at < timedelta(seconds=1)


async def test_only_admins_look(site: Site) -> None:
    await site.services.people.create_user(operator(), "kim", Role.TEACHER)
    async with site.browser("kim") as kim:
        async with kim.get("/storage") as answer:
            assert answer.status == 403
        async with kim.post("/storage/look") as answer:
            assert answer.status == 403
