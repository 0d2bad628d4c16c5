"""A person is removed: what was theirs goes, what they did stays, and their name is nowhere in the database."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from codehub.auth.profiles import Profile
from codehub.command import operator
from codehub.policy.model import Principal, Role
from codehub.sessions import blueprint
from codehub.sessions.service import NewPlan, NewSession
from codehub.waiting_room.events import EventChange
from codehub.web.services import Services
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.auth.helpers import add, entries, everything_stored, make_link, make_token
from tests.web.server import Site, serving

NAMES = ("minah", "mina-kim", "김미나")  # before, now, and as others see her
LESSON = {"steps": ["LEARN", "COMPLETE"], "learningContent": ["#"], "encouragement": "Yes"}


@pytest.fixture
async def site(services: Services) -> AsyncIterator[Site]:
    await services.people.ensure_first_admin()
    async with serving(services) as started:
        yield started


@pytest.fixture
async def admin(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    async with site.admin() as client:
        yield client


async def principal(services: Services, name: str) -> Principal:
    return await services.credentials.by_token((await make_token(services, name)).secret)


async def live(site: Site) -> str:
    """A person who did everything that there is to do, under two names. Returns her id."""
    services = site.services
    for name, role in (("minah", Role.LEARNER), ("jun", Role.LEARNER), ("kim", Role.TEACHER)):
        await add(services, name, role)
    async with site.admin() as admin:
        await admin.put("/api/v1/queue/events/quiz", json={"capacity": 1})
        await admin.post("/api/v1/queue/join", json={"event_id": "quiz", "user_id": "mina-kim"})  # nobody's name yet
    await services.people.rename_user(operator(), "minah", "mina-kim")
    await services.profiles.change(operator(), "mina-kim", Profile("김미나", "ko", "Asia/Seoul"))
    mina, jun, kim = [await principal(services, name) for name in ("mina-kim", "jun", "kim")]
    await work(services, mina, jun)
    await learn(services, mina)
    async with site.browser("mina-kim", **{"User-Agent": "mina-kim's browser"}) as browser:
        await browser.get("/account")
    await make_token(services, "mina-kim", label="mina-kim's script", by=mina)
    await make_link(services, "mina-kim")
    await services.waiting_events.put(kim, "exam", EventChange(capacity=1))
    await services.waiting_room.join(mina, "exam")
    async with site.client((await make_token(services, "kim")).secret) as teacher:
        async with teacher.post("/api/v1/classes", json={"title": "1-A"}) as answer:
            class_id = (await answer.json())["id"]
        async with teacher.post(f"/api/v1/classes/{class_id}/members", json={"name": "mina-kim"}) as answer:
            assert answer.status == 201, await answer.text()
    async with services.database.connection() as c:
        await c.execute("INSERT INTO passwords VALUES ($1, 'x', now(), $1)", mina.id)
        await c.execute(
            "INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count, label, belongs_to, created_at)"
            " VALUES ('k', $1, 'a', 'b', 0, 'mina-kim phone', 'localhost', now())",
            mina.id,
        )
        await c.execute(
            "INSERT INTO identities (id, user_id, provider, issuer, subject, label, email, created_at)"
            " VALUES ('i', $1, 'p', 'iss', 'sub', 'mina-kim@x.org', 'mina-kim@x.org', now())",
            mina.id,
        )
    return mina.id


async def work(services: Services, mina: Principal, jun: Principal) -> None:
    hers = admitted(await services.workspaces.create(mina, NewWorkspace("mina-kim's lab", "terminal", Desired.STANDBY)))
    his = admitted(await services.workspaces.create(jun, NewWorkspace("lab", "terminal", Desired.STANDBY)))
    await services.sharing.share(mina, hers.id, "jun")
    await services.sharing.share(jun, his.id, "mina-kim")
    async with services.database.connection() as c:
        note = (
            "INSERT INTO workspace_history (workspace_id, at, actor, code, data) VALUES ($1, now(), 'ttl', 'note', $2)"
        )
        await c.execute(note, hers.id, {"event": "note", "text": "minah asked, and Mina-Kim (김미나) agreed"})
        await c.execute(note, his.id, {"event": "note", "user": "minah", "by": "user"})


async def learn(services: Services, mina: Principal) -> None:
    day = services.clock.now().date()
    session = NewSession("Say hello", day, blueprint.parse(LESSON))
    plan = await services.sessions.create_plan(mina, NewPlan("Python", [session]))
    await services.runs.start(mina, plan.sessions[0].id)


async def remove(client: aiohttp.ClientSession, name: str) -> tuple[int, str]:
    async with client.delete(f"/api/v1/users/{name}") as answer:
        return answer.status, "" if answer.status == 204 else (await answer.json())["code"]


async def count(services: Services, table: str, id_: str, column: str = "user_id") -> int:
    async with services.database.connection() as c:
        found: int = await c.fetchval(f"SELECT count(*) FROM {table} WHERE {column} = $1", id_)
        return found


async def test_nothing_in_the_database_says_the_name_of_a_person_who_was_removed(
    site: Site, admin: aiohttp.ClientSession
) -> None:
    id_ = await live(site)
    before = await everything_stored(site.services)
    assert all(name in before for name in NAMES)
    assert await remove(admin, "mina-kim") == (204, "")
    stored = (await everything_stored(site.services)).lower()
    assert [name for name in NAMES if name in stored] == []
    assert id_ in stored
    # What is written later does not bring it back.
    assert await remove(admin, "mina-kim") == (404, "NOT_FOUND")
    assert [name for name in NAMES if name in (await everything_stored(site.services)).lower()] == []


async def test_what_was_a_removed_persons_goes_and_what_they_did_stays(
    site: Site, admin: aiohttp.ClientSession
) -> None:
    services, id_ = site.services, await live(site)
    kept = {table: await count(services, table, id_, "owner_id") for table in ("plans", "workspaces")}
    did = await count(services, "audit_log", id_, "actor")
    assert await remove(admin, "mina-kim") == (204, "")
    for table in ("passwords", "passkeys", "identities", "login_links", "class_members", "workspace_shares"):
        assert await count(services, table, id_) == 0, table
    assert {table: await count(services, table, id_, "owner_id") for table in kept} == kept
    assert await count(services, "audit_log", id_, "actor") == did > 0
    async with services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM session_runs") == 1
        trash = await c.fetch("SELECT deleted_at, name FROM workspaces WHERE owner_id = $1", id_)
        places = await c.fetch("SELECT state, name, noted FROM waiting_places WHERE person = $1", id_)
        open_ = await c.fetchval(
            "SELECT count(*) FROM browser_sessions s, access_tokens t WHERE s.user_id = $1 AND t.user_id = $1"
            " AND (s.revoked_at IS NULL OR t.revoked_at IS NULL)",
            id_,
        )
    assert all(row["deleted_at"] for row in trash)
    assert {(row["state"], row["name"]) for row in places} == {("none", None)}
    assert open_ == 0


async def test_a_removed_persons_lines_are_read_without_a_name(site: Site, admin: aiohttp.ClientSession) -> None:
    id_ = await live(site)
    await remove(admin, "mina-kim")
    (entry,) = await entries(site.services, "user.remove")
    assert (entry.actor, entry.subject) == ("admin", f"removed-{id_}")
    (renamed,) = await entries(site.services, "user.rename")
    assert renamed.data == {"old_name": f"removed-{id_}", "new_name": f"removed-{id_}"}
    (joined,) = await entries(site.services, "queue.join_for")
    assert joined.data == {"waiting": f"removed-{id_}"}
    async with admin.get("/api/v1/users?limit=100") as answer:
        assert [user["name"] for user in (await answer.json())["items"]] == ["admin", "jun", "kim"]
    for name in ("mina-kim", "minah", f"removed-{id_}"):
        async with admin.get(f"/api/v1/users/{name}") as answer:
            assert answer.status == 404
        assert (await remove(admin, name))[0] == 404


async def test_words_of_ours_are_not_taken_for_a_persons_name(site: Site, admin: aiohttp.ClientSession) -> None:
    """Somebody may be called `user`, which is also who asked for a workspace's state."""
    services = site.services
    await add(services, "user")
    user = await principal(services, "user")
    w = admitted(await services.workspaces.create(user, NewWorkspace("lab", "terminal", Desired.STANDBY)))
    before = [h.data for h in await services.workspaces.history(operator(), w, before=2**62, limit=9)]
    await remove(admin, "user")
    w = await services.workspaces.get(operator(), w.id)
    after = [h.data for h in await services.workspaces.history(operator(), w, before=2**62, limit=9)]
    assert after[-len(before) :] == before


async def test_a_removed_persons_name_is_never_given_again(site: Site, admin: aiohttp.ClientSession) -> None:
    await live(site)
    await remove(admin, "mina-kim")
    for name in ("mina-kim", "minah"):
        async with admin.post("/api/v1/users", json={"name": name}) as answer:
            assert (answer.status, (await answer.json())["code"]) == (409, "USER_EXISTS")
        async with admin.patch("/api/v1/users/jun", json={"name": name}) as answer:
            assert answer.status == 409


async def test_the_first_admin_and_the_last_one_stay(site: Site, admin: aiohttp.ClientSession) -> None:
    await add(site.services, "boss", Role.ADMIN)
    assert await remove(admin, "admin") == (409, "USER_KEPT")
    await site.services.people.change_user(operator(), "admin", role=None, active=False)
    assert await remove(admin, "boss") == (409, "LAST_ADMIN")


async def test_only_admins_remove(site: Site) -> None:
    for name, role in (("kim", Role.TEACHER), ("mina", Role.LEARNER)):
        await add(site.services, name, role)
        async with site.client(await site.token(name)) as client:
            assert await remove(client, name) == (403, "FORBIDDEN")
            assert await remove(client, "nobody") == (403, "FORBIDDEN")


async def test_an_admin_removes_themselves_and_is_out(site: Site) -> None:
    await add(site.services, "boss", Role.ADMIN)
    async with site.browser("boss") as boss:
        assert await remove(boss, "boss") == (204, "")
        async with boss.get("/api/v1/me") as answer:
            assert answer.status == 401
    assert "boss" not in await everything_stored(site.services)


async def test_of_two_removals_at_once_one_finds_nobody(site: Site, admin: aiohttp.ClientSession) -> None:
    await add(site.services, "mina")
    results = await asyncio.gather(*[remove(admin, "mina") for _ in range(5)])
    assert sorted(status for status, _ in results) == [204, 404, 404, 404, 404]


async def test_of_two_admins_who_remove_each_other_one_stays(site: Site) -> None:
    await site.services.people.ensure_first_admin()
    for name in ("boss", "chief"):
        await add(site.services, name, Role.ADMIN)
    await site.services.people.change_user(operator(), "admin", role=Role.LEARNER, active=None)
    boss, chief = [await principal(site.services, name) for name in ("boss", "chief")]
    removal = site.services.removal
    results = await asyncio.gather(removal.remove(boss, "chief"), removal.remove(chief, "boss"), return_exceptions=True)
    assert sum(result is None for result in results) == 1


@pytest.mark.parametrize("table", ["users", "waiting_places", "class_members", "former_names", "workspaces"])
async def test_a_removal_that_fails_anywhere_changes_nothing(site: Site, table: str) -> None:
    await live(site)
    services = site.services
    before = sorted((await everything_stored(services)).splitlines())
    async with services.database.connection() as c:
        await c.execute(
            "CREATE FUNCTION breaks() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'"
        )
        when = "BEFORE INSERT OR UPDATE OR DELETE"
        await c.execute(f"CREATE TRIGGER breaks {when} ON {table} FOR EACH ROW EXECUTE FUNCTION breaks()")
    with pytest.raises(Exception, match="no"):
        await services.removal.remove(operator(), "mina-kim")
    assert sorted((await everything_stored(services)).splitlines()) == before
