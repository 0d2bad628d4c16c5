"""`GET /api/v1/events` on a real server: who is told of which workspace, resuming, and rows that cannot be rendered."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest

from codehub.command import operator
from codehub.events import outbox
from codehub.events.model import Event
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, Workspace
from codehub.workspaces.service import NewWorkspace
from tests.web.server import Site

SOON = 20
ADD = """
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at)
SELECT 'w' || n, 'lab', 't', codehub_user_id('mina'), now(), now(), now(), now(), 'STANDBY', 'user', now()
FROM generate_series(1, $1::int) n
"""


@dataclass
class Stream:
    """An open event stream."""

    answer: aiohttp.ClientResponse
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # (event, data), without heartbeats
    last_id: str | None = None

    async def next(self) -> tuple[str, dict[str, str]]:
        """The next event that is not a heartbeat."""
        event = ""
        async with asyncio.timeout(SOON):
            async for line in self.answer.content:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    event = value
                elif name == "id":
                    self.last_id = value
                elif name == "data" and event != "heartbeat":
                    self.seen.append((event, json.loads(value)))
                    return self.seen[-1]
        raise EOFError

    async def until(self, event: str, **data: str) -> dict[str, str]:
        while True:
            name, found = await self.next()
            if name == event and data.items() <= found.items():
                return found


@contextlib.asynccontextmanager
async def listening(site: Site, name: str, last: str | None = None, since: str | None = None) -> AsyncIterator[Stream]:
    query = {"last_event_id": since} if since else {}
    headers = {"Last-Event-ID": last} if last else {}
    token = None if name == "admin" else await site.token(name)
    async with (
        site.admin() if token is None else site.client(token) as client,
        client.get("/api/v1/events", params=query, headers=headers, timeout=aiohttp.ClientTimeout()) as answer,
    ):
        assert answer.status == 200
        yield Stream(answer)


@pytest.fixture
async def people(site: Site) -> AsyncIterator[None]:
    for name in ("mina", "jun"):
        await site.services.people.create_user(operator(), name, Role.LEARNER)
    site.services.hub.start()
    yield
    await site.services.hub.stop()


def caller(name: str) -> Principal:
    return Principal(name, Role.LEARNER, ALL_SCOPES)


async def create(site: Site, owner: str, name: str = "lab") -> Workspace:
    wanted = NewWorkspace(name, "terminal", Desired.STANDBY)
    return admitted(await site.services.workspaces.create(caller(owner), wanted))


async def rename(site: Site, w: Workspace, name: str) -> None:
    async with site.services.database.transaction() as c:
        await c.execute("UPDATE workspaces SET name = $2 WHERE id = $1", w.id, name)


@pytest.mark.usefixtures("people")
async def test_an_owner_is_told_of_a_workspace_made_while_they_listen_and_a_stranger_is_not(site: Site) -> None:
    async with listening(site, "mina") as mina, listening(site, "jun") as jun:
        w = await create(site, "mina")
        assert await mina.next() == ("workspace_joined", {"workspace_id": w.id})
        shown = await mina.until("workspace_updated", id=w.id)
        assert shown["owner"] == "mina"
        other = await create(site, "jun")
        await jun.until("workspace_updated", id=other.id)
        assert w.id not in json.dumps(jun.seen)


@pytest.mark.usefixtures("people")
async def test_a_guest_is_told_from_the_share_to_its_end_and_an_admin_of_everything(site: Site) -> None:
    w, own = await create(site, "mina"), await create(site, "jun")
    async with listening(site, "jun") as jun, listening(site, "admin") as admin:
        await rename(site, w, "before")
        await site.services.sharing.share(caller("mina"), w.id, "jun")
        assert await jun.next() == ("workspace_joined", {"workspace_id": w.id})
        await rename(site, w, "shared")
        await jun.until("workspace_updated", id=w.id, name="shared")
        await site.services.sharing.unshare(caller("mina"), w.id, "jun")
        assert await jun.until("workspace_left") == {"workspace_id": w.id}
        await rename(site, w, "after")
        await rename(site, own, "end")
        assert await jun.next() == ("workspace_updated", await admin.until("workspace_updated", name="end"))
    names = {data.get("name") for _, data in admin.seen}
    assert {"shared", "after", "end"} <= names
    assert "after" not in {data.get("name") for _, data in jun.seen}


@pytest.mark.usefixtures("people")
async def test_a_guest_leaves_with_an_owner_who_is_deactivated_and_comes_back_with_them(site: Site) -> None:
    w = await create(site, "mina")
    await site.services.sharing.share(caller("mina"), w.id, "jun")
    async with listening(site, "jun") as jun:
        for active, event in ((False, "workspace_left"), (True, "workspace_joined")):
            await site.services.people.change_user(operator(), "mina", role=None, active=active)
            assert await jun.until(event) == {"workspace_id": w.id}
        await rename(site, w, "again")
        await jun.until("workspace_updated", name="again")


@pytest.mark.usefixtures("people")
async def test_open_streams_end_with_their_person_and_nothing_is_called_a_mistake(
    site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    async with listening(site, "mina") as one, listening(site, "mina") as two, listening(site, "jun") as jun:
        await site.services.people.change_user(operator(), "mina", role=None, active=False)
        for stream in (one, two):
            with pytest.raises(aiohttp.ClientPayloadError):  # without its end: it was not all
                await stream.next()
        own = await create(site, "jun")
        await jun.until("workspace_updated", id=own.id)
    assert capfd.readouterr().err == ""  # where warnings and errors go


@pytest.mark.usefixtures("people")
async def test_a_guest_leaves_when_it_goes_to_the_trash_and_comes_back_when_it_does(site: Site) -> None:
    w, own = await create(site, "mina"), await create(site, "jun")
    await site.services.sharing.share(caller("mina"), w.id, "jun")
    await site.services.hub.read_all()  # so that what comes is of what follows
    async with listening(site, "jun") as jun:
        await site.services.workspaces.delete(caller("mina"), w.id, purge=False)
        assert await jun.next() == ("workspace_left", {"workspace_id": w.id})
        for active in (False, True):  # of which a guest is told otherwise
            await site.services.people.change_user(operator(), "mina", role=None, active=active)
        await rename(site, w, "in the trash")
        await rename(site, own, "beside it")
        async with listening(site, "jun") as late:
            await rename(site, w, "still there")
            await rename(site, own, "end")
            await late.until("workspace_updated", id=own.id, name="end")
            assert w.id not in json.dumps(late.seen)
        assert await jun.until("workspace_updated", name="beside it")
        await jun.until("workspace_updated", name="end")
        assert [data for _, data in jun.seen if w.id in json.dumps(data)] == [{"workspace_id": w.id}]
        await site.services.workspaces.undelete(caller("mina"), w.id)
        assert await jun.next() == ("workspace_joined", {"workspace_id": w.id})
        back = await jun.until("workspace_updated", id=w.id)
        assert back["deleted_at"] is None


@pytest.mark.usefixtures("people")
async def test_a_guest_of_a_deactivated_owner_does_not_come_back_with_what_is_undeleted(site: Site) -> None:
    w, own = await create(site, "mina"), await create(site, "jun")
    await site.services.sharing.share(caller("mina"), w.id, "jun")
    await site.services.workspaces.delete(caller("mina"), w.id, purge=False)
    await site.services.people.change_user(operator(), "mina", role=None, active=False)
    await site.services.hub.read_all()
    async with listening(site, "jun") as jun:
        await site.services.workspaces.undelete(operator(), w.id)
        await rename(site, own, "end")
        await jun.until("workspace_updated", name="end")
        assert [name for name, _ in jun.seen] == ["workspace_updated"]
        await site.services.people.change_user(operator(), "mina", role=None, active=True)
        assert await jun.until("workspace_joined") == {"workspace_id": w.id}


@pytest.mark.usefixtures("people")
async def test_a_guest_who_comes_later_is_told_too_and_resumes(site: Site) -> None:
    w = await create(site, "mina")
    await site.services.sharing.share(caller("mina"), w.id, "jun")
    async with listening(site, "jun") as jun:
        await rename(site, w, "one")
        await jun.until("workspace_updated", name="one")
    await rename(site, w, "two")
    async with listening(site, "jun", jun.last_id) as again:
        assert (await again.next())[1]["name"] == "two"


@pytest.mark.usefixtures("people")
async def test_a_page_says_what_it_knows_of_and_its_stream_begins_with_what_came_after(site: Site) -> None:
    w = await create(site, "mina")
    await site.services.hub.now()
    async with site.browser("mina") as browser, browser.get("/") as page:
        (since,) = re.findall(r'<meta name="events" content="(\d+)">', await page.text())
    await rename(site, w, "meanwhile")
    async with listening(site, "mina", since=since) as stream:
        assert (await stream.next())[1]["name"] == "meanwhile"
    async with listening(site, "mina", stream.last_id, since=since) as again:  # as a browser does that lost it
        await rename(site, w, "later")
        assert (await again.next())[1]["name"] == "later"


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("cursor", ["0-0", "0", "1234-5", "99999999999999999", "nonsense"])
@pytest.mark.parametrize("name", ["jun", "admin"])
async def test_a_cursor_that_asks_for_everything_gets_a_reset_and_reads_next_to_nothing(
    site: Site, name: str, cursor: str
) -> None:
    """Everybody's events were read and rendered for it, and thrown away."""
    async with site.services.database.transaction() as c:
        await c.execute(ADD, 1500)
    await site.services.hub.read_all()
    async with listening(site, name, cursor) as stream:
        assert await stream.next() == ("reset", {})
        own = await create(site, "jun")
        await stream.until("workspace_updated", id=own.id)
        assert all(own.id in json.dumps(data) for event, data in stream.seen if event != "reset")


@pytest.mark.usefixtures("people")
async def test_a_row_that_cannot_be_rendered_resets_its_own_listeners_and_the_others_go_on(site: Site) -> None:
    bad, good = await create(site, "mina"), await create(site, "jun")
    await site.services.hub.read_all()
    async with listening(site, "mina") as mina, listening(site, "jun") as jun:
        async with site.services.database.transaction() as c:
            await c.execute("UPDATE workspaces SET error_info = '{}' WHERE id = $1", bad.id)
            await c.execute("UPDATE workspaces SET name = 'good' WHERE id = $1", good.id)
        assert await mina.next() == ("reset", {})
        await jun.until("workspace_updated", name="good")
        async with site.services.database.transaction() as c:
            await c.execute("UPDATE workspaces SET error_info = NULL WHERE id = $1", bad.id)
        await mina.until("workspace_updated", id=bad.id)


@pytest.mark.usefixtures("people")
async def test_all_that_is_new_is_read_however_often_one_workspace_changed(site: Site) -> None:
    w = await create(site, "mina")
    again = [Event(f"workspace:{w.id}", "workspace_updated", w.id)] * (2 * outbox.AT_ONCE + 1)
    async with site.services.database.transaction() as c:
        await outbox.write(c, site.services.clock.now(), again)
    await site.services.hub.read_all()
    async with site.services.database.connection() as c:
        assert site.services.hub.position == await outbox.newest(c)
