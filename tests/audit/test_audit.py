"""The audit log: pages, filters, and what housekeeping removes."""

from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.command import operator
from codehub.i18n import locales
from codehub.i18n.audit import sentence
from codehub.policy.model import Origin
from codehub.web.services import Services
from tests.virtual_time import ManualClock


async def fill(services: Services, clock: ManualClock, count: int) -> None:
    for number in range(count):
        async with services.database.transaction() as c:
            origin = Origin("boss" if number % 2 else "admin", "request-1", "192.0.2.1")
            await audit.record(c, clock.now(), origin, Code.USER_CREATE, f"mina-{number}", number=number)
        await clock.advance(60)


async def test_pages_go_from_new_to_old_without_loss(services: Services, clock: ManualClock) -> None:
    await fill(services, clock, 7)
    seen: list[str] = []
    before = None
    while page := await services.audit.page(operator(), before=before, actor=None, subject=None, limit=3):
        seen += [entry.subject for entry in page]
        before = page[-1].id
    assert seen == [f"mina-{number}" for number in reversed(range(7))]


async def test_entries_can_be_picked_by_actor_and_subject(services: Services, clock: ManualClock) -> None:
    await fill(services, clock, 4)
    mine = await services.audit.page(operator(), before=None, actor="boss", subject=None, limit=10)
    assert [entry.subject for entry in mine] == ["mina-3", "mina-1"]
    (one,) = await services.audit.page(operator(), before=None, actor=None, subject="mina-2", limit=10)
    assert (one.actor, one.data) == ("admin", {"number": 2})


async def test_removal_takes_the_oldest_and_no_more_than_it_was_asked_for(
    services: Services, clock: ManualClock
) -> None:
    await fill(services, clock, 5)
    async with services.database.transaction() as c:
        assert await audit.prune(c, clock.now(), 2) == 2
        assert await audit.prune(c, clock.now().replace(year=2020), 2) == 0
    rest = await services.audit.page(operator(), before=None, actor=None, subject=None, limit=10)
    assert [entry.subject for entry in rest] == ["mina-4", "mina-3", "mina-2"]


async def test_entries_from_before_say_login_where_they_said_session(services: Services, clock: ManualClock) -> None:
    """A session is what is learnt in; entries stay as they were written."""
    async with services.database.transaction() as c:
        for code in ("session.revoke", "session.stolen", "session.skip"):
            await c.execute(
                "INSERT INTO audit_log (at, actor, code, subject, data) VALUES ($1, 'boss', $2, 'mina', '{}')",
                *(clock.now(), code),
            )
    found = await services.audit.page(operator(), before=None, actor=None, subject=None, limit=10)
    assert [entry.code for entry in reversed(found)] == ["login.revoke", "login.stolen", "session.skip"]
    korean, english = (locales.of_request(language) for language in ("ko", "en"))
    for entry in found[1:]:
        said = [sentence(reader, entry.code, {}, actor="boss", subject="mina") for reader in (korean, english)]
        assert ("로그아웃" in said[0], "logged" in said[1]) == (True, True)
    async with services.database.connection() as c:
        kept = await c.fetch("SELECT code FROM audit_log ORDER BY id")
    assert [row["code"] for row in kept] == ["session.revoke", "session.stolen", "session.skip"]
