"""Where every way in ends: a browser's session begins. Called by `service` for links, and by the other ways in.

A way in proves who a person is, in a transaction of its own; `begin` is called in it, with the person's row locked, so
that a login and a deactivation at once leave no session behind.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from codehub import ids, metrics
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import rules, store
from codehub.auth.credentials import Credentials
from codehub.auth.model import Person, WaysIn, WorkingWays
from codehub.auth.store import sql
from codehub.clock import Clock
from codehub.db import Connection
from codehub.policy.model import Origin, Principal, Role
from codehub.settings import AuthConfig

LONGEST_AGENT = 300  # characters that are kept of what a browser says it is


class Way(StrEnum):
    """How a person came in, as the audit log says it."""

    LINK = "link"
    PASSWORD = "password"  # noqa: S105 (a name)
    PASSKEY = "passkey"
    PROVIDER = "provider"
    INVITATION = "invitation"


@dataclass(frozen=True)
class Browser:
    """Where a login comes from, and the session that this browser has until now: it ends with the new one."""

    agent: str
    origin: Origin
    instead_of: Principal | None = None


class Logins:
    def __init__(self, clock: Clock, config: AuthConfig, credentials: Credentials, working: WorkingWays) -> None:
        self._clock = clock
        self._config = config
        self._credentials = credentials
        self.working = working

    async def ways_in(self, c: Connection, user_id: str) -> WaysIn:
        """What this person can come in by as things are now; asked under their lock where one is to be removed."""
        return await store.ways_in(c, user_id, self.working)

    async def begin(self, c: Connection, person: Person, browser: Browser, way: Way) -> str:
        """The new session's cookie: good once the transaction has committed. The caller has looked that they may."""
        session_id, now = ids.new(20), self._clock.now()
        expires = now + timedelta(seconds=self._config.session_seconds)
        await c.execute(sql.add_session, session_id, person.id, now, expires, browser.agent[:LONGEST_AGENT])
        await c.execute(sql.note_login, person.id, now)
        by = replace(browser.origin, actor=person.name)
        await audit.record(c, now, by, Code.LOGIN, person.name, session_id=session_id, way=way)
        await self._end_before(c, browser, now)
        metrics.LOGINS.labels(way, "ok").inc()
        return self._credentials.cookie(session_id, 1)

    async def _end_before(self, c: Connection, browser: Browser, now: datetime) -> None:
        before = browser.instead_of
        if before and before.session_id:
            await c.execute(sql.revoke_session, before.session_id, before.id, now)
            await c.execute(sql.announce)

    async def end_others(self, c: Connection, person: Person, keep: str | None) -> None:
        """All sessions of this person but one: a changed password ends the other devices."""
        await c.execute(sql.revoke_other_sessions, person.id, keep or "", self._clock.now())
        await c.execute(sql.announce)

    @staticmethod
    def refused(way: Way) -> None:
        """Counted, by the way in that refuses."""
        metrics.LOGINS.labels(way, "refused").inc()


async def end_with_role(c: Connection, person: Person, role: Role, now: datetime, by: Origin) -> None:
    """Of a person who gets another role: what may not open the account any more, is gone."""
    match rules.ended_by(person.role, role):
        case rules.Ends.LINKS:
            await store.drop_links(c, person.id)
        case rules.Ends.SESSIONS:
            await c.execute(sql.revoke_sessions_of, person.id, now)
            await store.drop_links(c, person.id)
        case rules.Ends.ALL:
            await store.revoke_all(c, person.id, now)
            if store.changed(await c.execute(sql.drop_password_of_teacher, person.id)):
                await audit.record(c, now, by, Code.PASSWORD_REMOVE, person.name)


async def lock_person(c: Connection, name: str) -> Person | None:
    """A person who may log in, by name, locked; None: there is none, or they are deactivated."""
    person = await store.lock_user(c, name) if ids.is_label(name) else None
    return person if person and person.active else None
