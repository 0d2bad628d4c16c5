"""Passwords: logging in with one, changing and removing it. Called by `passwords_api`, by pages and by other services.

Hashing takes a while and happens outside of transactions (`hashing`); what was compared is looked at again under the
person's lock, so that a password that was changed meanwhile lets nobody in.
"""

from dataclasses import dataclass, field

from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import logins, password_rules, rules, store
from codehub.auth.credentials import Credentials
from codehub.auth.hashing import Hashing
from codehub.auth.logins import Browser, Logins, Way
from codehub.auth.model import NewPassword, Password, Person
from codehub.auth.store import sql
from codehub.auth.tries import Tries
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import (
    CodeHubError,
    InvalidRequestError,
    LoggedInError,
    NotFoundError,
    WrongCredentialsError,
    WrongPasswordError,
)
from codehub.ids import is_label
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal

WRONG = "the name or the password is wrong"


@dataclass(frozen=True)
class LoggedIn:
    name: str
    cookie: str = field(repr=False)


class Passwords:
    def __init__(
        self, database: Database, clock: Clock, credentials: Credentials, begins: Logins, hashing: Hashing, tries: Tries
    ) -> None:
        self._database = database
        self._clock = clock
        self._credentials = credentials
        self._logins = begins
        self._hashing = hashing
        self._tries = tries

    # --- for services that make people ------------------------------------------------------------------------------

    async def prepare(self, password: str, *names: str, address: str | None) -> NewPassword:
        """Judge a new one by the rules, and hash it: before the transaction, because it takes a while.

        `names`: what its person is called. `address`: of the client, since networks take turns.
        """
        good = password_rules.check_new(password, *names)
        return NewPassword(await self._hashing.hash(good, password_rules.network_of(address)))

    async def store(self, c: Connection, person: Person, new: NewPassword, caller: Principal | str) -> None:
        """In the caller's transaction, with the person's row locked or new. Ends no session and audits nothing.

        `caller`: who sets it; a name for one who is no principal yet.
        """
        by = caller if isinstance(caller, str) else caller.name
        await store.set_password(c, person.id, new, self._clock.now(), by)

    # --- logging in -------------------------------------------------------------------------------------------------

    async def log_in(self, typed: str, password: str, browser: Browser, instead_of: str | None = None) -> LoggedIn:
        """The browser's session until now ends; another person's only where `instead_of` names them.

        Everything that can be wrong is wrong in the same words, after the same work: an unknown name, a person without
        a password or who is deactivated, a wrong password.
        """
        name, before = password_rules.login_name(typed), browser.instead_of
        if before and before.name not in {name, instead_of}:
            raise LoggedInError(f"{before.name} is logged in with this browser: log out first, or say `instead_of`")
        begun = await self._tries.begin(name, browser.origin.address)
        try:
            kept = await self._kept(name)
            hashed = kept.hash if kept else None
            good = await self._hashing.matches(hashed, password_rules.normalized(password), begun.network)
        except CodeHubError:
            await self._tries.was_none(begun)
            raise
        cookie = await self._begin(name, kept, browser) if kept and good else None
        if kept is None or cookie is None:
            self._logins.refused(Way.PASSWORD)
            raise WrongCredentialsError(WRONG)
        await self._tries.was_right(begun)
        if before:
            self._credentials.forget()
        await self._refresh(kept, password, begun.network)
        return LoggedIn(name, cookie)

    async def _kept(self, name: str) -> Password | None:
        """Of a person who may log in."""
        async with self._database.connection() as c:
            return await store.password_of(c, name) if is_label(name) else None

    async def _begin(self, name: str, kept: Password, browser: Browser) -> str | None:
        async with self._database.transaction() as c:
            person = await logins.lock_person(c, name)
            now = await store.password_of(c, name) if person else None
            if person is None or now is None or (now.user_id, now.changed_at) != (kept.user_id, kept.changed_at):
                return None  # changed, or its person deactivated, since we looked
            return await self._logins.begin(c, person, browser, Way.PASSWORD)

    async def _refresh(self, kept: Password, password: str, network: str) -> None:
        """Hash it anew where it is hashed as it was in an earlier version, while we have it."""
        if self._hashing.is_outdated(kept.hash):
            new = await self._hashing.hash(password_rules.normalized(password), network)
            async with self._database.transaction() as c:
                await c.execute(sql.rehash_password, kept.user_id, kept.hash, new)

    # --- changing ---------------------------------------------------------------------------------------------------

    async def change(self, caller: Principal, name: str, password: str, current: str | None) -> None:
        """Set it for the first time, or another one. The person's other devices are logged out, unused links end."""
        person = await self._changeable(caller, name)
        password_rules.check_new(password, person.name, person.display_name)  # before anything is compared
        kept = await self._proved(caller, person, current)
        new = await self.prepare(password, person.name, person.display_name, address=caller.address)
        async with self._database.transaction() as c:
            person = await self._locked(c, caller, name, kept)
            await self.store(c, person, new, caller)
            await self._end_other_devices(c, caller, person)
            await audit.record(c, self._clock.now(), caller.origin, Code.PASSWORD_CHANGE, person.name)
        self._credentials.forget()

    async def remove(self, caller: Principal, name: str, current: str | None) -> None:
        """Never the last way in: their next logout would lock them out."""
        kept = await self._proved(caller, await self._changeable(caller, name), current)
        async with self._database.transaction() as c:
            person = await self._locked(c, caller, name, kept)
            if await store.password_of(c, name) is None:
                return
            rules.check_way_remains(await self._logins.ways_in(c, person.id))
            await c.execute(sql.drop_password, person.id)
            await self._end_other_devices(c, caller, person)
            await audit.record(c, self._clock.now(), caller.origin, Code.PASSWORD_REMOVE, person.name)
        self._credentials.forget()

    async def _end_other_devices(self, c: Connection, caller: Principal, person: Person) -> None:
        """And an unused login link, which whoever had the account in hand before may have made."""
        await store.drop_links(c, person.id)
        await self._logins.end_others(c, person, caller.session_id if policy.is_self(caller, person.name) else None)

    async def _changeable(self, caller: Principal, name: str) -> Person:
        policy.require(caller, Action.PASSWORD_CHANGE, policy.account(name))
        async with self._database.connection() as c:
            person = await store.find_user(c, name) if is_label(name) else None
        if person is None:
            raise NotFoundError(policy.NO_SUCH_USER)
        rules.require_active(person)
        if policy.is_self(caller, name):
            rules.require_whole_login(caller, person)
        return person

    async def _proved(self, caller: Principal, person: Person, current: str | None) -> Password | None:
        """The password there is. Its own person says it first: a browser left open does not give the account away."""
        async with self._database.connection() as c:
            kept = await store.password_of(c, person.name)
        if kept is None or not policy.is_self(caller, person.name):
            return kept
        if not current:
            raise InvalidRequestError("say the password that you have now", field="current_password")
        begun = await self._tries.begin(person.name, caller.address)
        try:
            good = await self._hashing.matches(kept.hash, password_rules.normalized(current), begun.network)
        except CodeHubError:
            await self._tries.was_none(begun)
            raise
        if not good:
            raise WrongPasswordError("the current password is wrong")
        await self._tries.was_right(begun)
        return kept

    async def _locked(self, c: Connection, caller: Principal, name: str, proved: Password | None) -> Person:
        """The person, while all is as it was when we looked: role, activity, and the password that was proved."""
        person = await store.lock_user(c, name)
        if person is None or not (policy.looks_after(caller, person.name, person.role)):
            raise NotFoundError(policy.NO_SUCH_USER)
        rules.require_active(person)
        now = await store.password_of(c, name)
        same = (now and now.changed_at) == (proved and proved.changed_at)
        if policy.is_self(caller, name) and not same:
            raise WrongPasswordError("the password was changed meanwhile: say the one that you have now")
        return person
