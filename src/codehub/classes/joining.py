"""Following an invitation: a new person chooses a name and a way in, one who has an account says who they are.

Called by `invitations_api` and by the page `web.join`. Wrong, used up, expired and revoked codes, and those of a class
that is over, get the same answer. How many may come by one is exact: the class's row is locked while one comes in.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime

from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import enrolment, logins
from codehub.auth.credentials import Credentials
from codehub.auth.logins import Browser, Logins, Way
from codehub.auth.model import NewPassword, Person
from codehub.auth.passwords import Passwords
from codehub.classes import codes, rules, store
from codehub.classes.code_tries import CodeTries
from codehub.classes.errors import InvitationNotFoundError
from codehub.classes.model import Came, Invitation, MemberRole, SchoolClass
from codehub.classes.service import Classes
from codehub.classes.store import sql
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import UnauthenticatedError
from codehub.passkeys.first import Asker, FirstPasskey, FirstPasskeys
from codehub.passkeys.service import Question
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import ALL_SCOPES, Origin, Principal

ONCE_SECONDS = 600  # for how long a form that is sent again leads to where the first one led


@dataclass(frozen=True)
class SentPasskey:
    """What a browser has made to log in with; not yet believed."""

    asker: Asker
    credential: object = field(repr=False)


@dataclass(frozen=True)
class NewLearner:
    name: str
    display_name: str
    password: str = field(default="", repr=False)
    passkey: SentPasskey | None = None  # instead of a password
    once: str | None = field(default=None, repr=False)  # a secret of the form: sent twice, it makes one person


@dataclass(frozen=True)
class Joined:
    name: str
    school_class: SchoolClass
    cookie: str | None = field(default=None, repr=False)  # of the session that began


@dataclass(frozen=True)
class _Prepared:
    invitation: Invitation
    new: NewLearner
    way: NewPassword | FirstPasskey


class Joining:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        classes: Classes,
        tries: CodeTries,
        passwords: Passwords,
        passkeys: FirstPasskeys,
        begins: Logins,
        credentials: Credentials,
    ) -> None:
        self._database = database
        self._clock = clock
        self._classes = classes
        self._tries = tries
        self._passwords = passwords
        self._passkeys = passkeys
        self._logins = begins
        self._credentials = credentials

    async def class_of(self, typed: str, address: str | None, caller: Principal | None = None) -> SchoolClass:
        """What a code leads to; nothing is used up by asking."""
        return (await self._looked_up(typed, address, caller))[1]

    async def join(self, caller: Principal, typed: str) -> Joined:
        """One who has an account. Who is in the class already is not counted again, also by a code that is over."""
        policy.require(caller, Action.CLASS_JOIN)
        invitation, found = await self._looked_up(typed, caller.address, caller)
        async with self._database.transaction() as c:
            await store.lock(c, found.id)
            if not await store.role_in(c, found.id, caller.id):
                person = await logins.lock_person(c, caller.name)
                if person is None:
                    raise UnauthenticatedError("log in again")
                await self._come_in(c, caller, invitation, person)
        self._credentials.forget()
        return Joined(caller.name, found)

    async def join_new(self, typed: str, new: NewLearner, browser: Browser) -> Joined:
        """One who has none yet: it is made, and this browser logged in."""
        if new.once and (again := await self._sent_twice(new.once, typed, browser)):
            return again
        invitation, found = await self._looked_up(typed, browser.origin.address, None)
        enrolment.check_name(new.name)
        way = await self._prepare(typed, new, browser)
        async with self._database.transaction() as c:
            await store.lock(c, found.id)
            # The same form, sent twice at once: the second has waited here for the first.
            person = await enrolment.of_secret(c, new.once, self._clock.now()) if new.once else None
            if person is None:
                person = await self._enrol(c, _Prepared(invitation, new, way), browser)
            cookie = await self._logins.begin(c, person, browser, Way.INVITATION)
        self._credentials.forget()
        return Joined(person.name, found, cookie)

    async def made_by(self, once: str) -> str | None:
        """Whom a form with this secret has made a moment ago."""
        async with self._database.connection() as c:
            return await enrolment.name_of_secret(c, once, self._clock.now())

    async def ask_passkey(self, typed: str, new: NewLearner, asker: Asker, address: str | None) -> Question:
        """For one who chooses a passkey as their way in. A name that is taken is said now: no device should keep a
        passkey for it.
        """
        enrolment.check_name(new.name)
        await self._looked_up(typed, address, None)
        async with self._database.connection() as c:
            await enrolment.check_free(c, new.name)
        return self._passkeys.ask(asker, _binding(typed, new.name), new.name, new.display_name)

    async def _prepare(self, typed: str, new: NewLearner, browser: Browser) -> NewPassword | FirstPasskey:
        """What takes time, before anything is locked."""
        if sent := new.passkey:
            return self._passkeys.prepare(sent.asker, _binding(typed, new.name), sent.credential, browser.agent)
        names = new.name, new.display_name
        return await self._passwords.prepare(new.password, *names, address=browser.origin.address)

    async def _add(self, c: Connection, now: datetime, by: Origin, prepared: _Prepared) -> Person:
        new, id_ = prepared.new, None
        if isinstance(prepared.way, FirstPasskey):
            await self._passkeys.check_unused(c, prepared.way)
            id_ = prepared.way.user_id
        return await enrolment.add_learner(c, now, by, new.name, new.display_name, id_)

    async def _enrol(self, c: Connection, prepared: _Prepared, browser: Browser) -> Person:
        now, new = self._clock.now(), prepared.new
        by = replace(browser.origin, actor=new.name)
        person = await self._add(c, now, by, prepared)
        caller = Principal(
            person.name, person.role, ALL_SCOPES, person.id, request_id=by.request_id, address=by.address
        )
        if isinstance(prepared.way, FirstPasskey):
            await self._passkeys.keep(c, person, prepared.way, now, by)
        else:
            await self._passwords.store(c, person, prepared.way, caller)
        await self._come_in(c, caller, prepared.invitation, person)
        if new.once:
            await enrolment.remember(c, person, new.once, now, ONCE_SECONDS)
        return person

    async def _sent_twice(self, once: str, typed: str, browser: Browser) -> Joined | None:
        code = codes.read(typed)
        async with self._database.transaction() as c:
            person = await enrolment.of_secret(c, once, self._clock.now())
            invitation = await store.find_invitation(c, code) if person and code else None
            found = await store.find(c, invitation.class_id) if invitation else None
            if person is None or found is None:
                return None
            return Joined(person.name, found, await self._logins.begin(c, person, browser, Way.INVITATION))

    async def _come_in(self, c: Connection, caller: Principal, invitation: Invitation, person: Person) -> None:
        """With the class's row locked, so that what was looked up is looked at again."""
        found, now = await store.find(c, invitation.class_id), self._clock.now()
        if found is None or found.archived_at is not None:
            raise InvitationNotFoundError
        rules.check_member(person.name, person.role, MemberRole.LEARNER)
        if not await c.fetchval(sql.use_invitation, invitation.id, now):
            raise InvitationNotFoundError
        await self._classes.admit(c, caller, found, person, MemberRole.LEARNER, Came.JOINED)
        await audit.record(c, now, caller.origin, Code.INVITATION_USE, found.id, id=invitation.id)

    async def _looked_up(
        self, typed: str, address: str | None, caller: Principal | None
    ) -> tuple[Invitation, SchoolClass]:
        code = codes.read(typed)
        if code is None:  # no code at all: nothing is guessed by it, so it is not counted
            raise InvitationNotFoundError
        async with self._tries.one(address) as attempt:
            found = await self._find(code, caller)
            attempt.is_wrong = found is None
        if found is None:
            raise InvitationNotFoundError
        return found

    async def _find(self, code: str, caller: Principal | None) -> tuple[Invitation, SchoolClass] | None:
        async with self._database.connection() as c:
            invitation = await store.find_invitation(c, code)
            found = await store.find(c, invitation.class_id) if invitation else None
            if invitation is None or found is None:
                return None
            is_in = caller is not None and await store.role_in(c, found.id, caller.id) is not None
        good = found.archived_at is None and rules.is_good(invitation, self._clock.now())
        return (invitation, found) if good or is_in else None


def _binding(typed: str, name: str) -> str:
    """A passkey is for the account of this name, made by this invitation, and for no other."""
    return f"{codes.read(typed)} {name}"
