"""The use cases about passkeys, each one transaction, audited in it. Called by `api` and pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from codehub import ids, logs, names
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import logins
from codehub.auth import rules as auth_rules
from codehub.auth import store as auth_store
from codehub.auth.credentials import Credentials
from codehub.auth.logins import Browser, Logins, Way
from codehub.auth.model import Person
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import CodeHubError, ForbiddenError, InvalidRequestError, LoggedInError, NotFoundError
from codehub.passkeys import ceremony, rules, store
from codehub.passkeys.challenges import Challenges
from codehub.passkeys.errors import (
    PasskeyBlockedError,
    PasskeyExistsError,
    PasskeyNotFoundError,
    PasskeyRefusedError,
)
from codehub.passkeys.model import Obstacle, Passkey, Place, Purpose
from codehub.passkeys.store import sql
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.settings import LimitsConfig, ServerConfig

log = logs.get()
EXISTS = "this passkey is registered already: use it to log in"
IN_A_BROWSER = "a passkey is added in a browser that its person is logged in with"
BLOCKED = (
    "this passkey was used in two places at once, so it may have been copied, and is blocked: "
    "take another way in, remove it in your account, and add it again"
)


@dataclass(frozen=True)
class Question:
    """What a page hands to the browser, and for how long."""

    options: Mapping[str, Any]
    seconds: int


@dataclass(frozen=True)
class LoggedIn:
    name: str
    cookie: str = field(repr=False)


class Passkeys:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        server: ServerConfig,
        limits: LimitsConfig,
        challenges: Challenges,
        credentials: Credentials,
        logins_: Logins,
    ) -> None:
        self._database = database
        self._clock = clock
        self._server = server
        self._limits = limits
        self._challenges = challenges
        self._credentials = credentials
        self._logins = logins_

    def place(self, host: str) -> Place | Obstacle:
        """Where a client that reached us by this `Host` can use passkeys, or why it cannot."""
        return rules.place_of(self._server, host)

    # --- adding one

    async def ask_to_register(self, caller: Principal, name: str, host: str) -> Question:
        holder = _session_of(caller, name)
        place = rules.require_place(self.place(host))
        async with self._database.connection() as c:
            person = await _person(c, name)
            known = await store.of_user(c, person.id)
        rules.check_count(known, self._limits.max_passkeys_per_user)
        challenge, seconds = self._challenges.new(Purpose.REGISTRATION, holder), self._challenges.seconds
        who = (person.id, person.name, person.display_name)
        return Question(ceremony.creation_options(place, *who, challenge, seconds, known), seconds)

    async def register(
        self, caller: Principal, name: str, host: str, sent: object, *, label: str | None, agent: str
    ) -> Passkey:
        """`sent`: what the browser's `navigator.credentials.create` gave, as JSON."""
        holder = _session_of(caller, name)
        place = rules.require_place(self.place(host))
        answer = ceremony.read_creation(sent)
        ceremony.check_origin(answer, place)
        self._challenges.check(answer.challenge, Purpose.REGISTRATION, holder)
        new = ceremony.verify_creation(answer, place)
        await self._challenges.use(answer.challenge)
        now = self._clock.now()
        async with self._database.transaction() as c:
            person = await _person(c, name, lock=True)
            auth_rules.require_active(person)
            known = await store.of_user(c, person.id)
            rules.check_count(known, self._limits.max_passkeys_per_user)
            named = _checked(label) if label else rules.default_label(agent, [p.label for p in known])
            added = await store.add(c, ids.new(), person.id, new, named, place.name, now)
            if added is None:
                raise PasskeyExistsError(EXISTS)
            await audit.record(c, now, caller.origin, Code.PASSKEY_ADD, name, passkey_id=added.id, label=added.label)
        return added

    # --- logging in

    def ask_to_log_in(self, holder: str, host: str) -> Question:
        """`holder`: a secret in a cookie of this browser."""
        place = rules.require_place(self.place(host))
        challenge, seconds = self._challenges.new(Purpose.LOGIN, holder), self._challenges.seconds
        return Question(ceremony.request_options(place, challenge, seconds), seconds)

    async def log_in(self, holder: str, host: str, sent: object, browser: Browser, instead_of: str | None) -> LoggedIn:
        """Trade a passkey's answer for a session. The one that this browser has until now ends; another person's only
        where `instead_of` names them.
        """
        try:
            done = await self._log_in(holder, host, sent, browser, instead_of)
        except CodeHubError:
            self._logins.refused(Way.PASSKEY)
            raise
        if browser.instead_of:
            self._credentials.forget()
        return done

    async def _log_in(self, holder: str, host: str, sent: object, browser: Browser, instead_of: str | None) -> LoggedIn:
        place = rules.require_place(self.place(host))
        answer = ceremony.read_request(sent)
        ceremony.check_origin(answer, place)
        self._challenges.check(answer.challenge, Purpose.LOGIN, holder)
        async with self._database.connection() as c:
            found = await store.find_credential(c, answer.credential_id)
            name = await store.owner_name(c, found) if found else ""
        if found is None:
            raise PasskeyRefusedError(ceremony.UNKNOWN)
        count = ceremony.verify_request(answer, place, found)
        if (before := browser.instead_of) and before.name not in {name, instead_of}:
            raise LoggedInError(f"{before.name} is logged in with this browser: log out first, or say `instead_of`")
        await self._challenges.use(answer.challenge)
        async with self._database.transaction() as c:
            person = await logins.lock_person(c, name)
            passkey = await store.find(c, found.id, person.id) if person else None
            if person is None or passkey is None:
                raise PasskeyRefusedError(ceremony.UNKNOWN)
            if await self._is_good(c, person, passkey, count, browser):
                await c.execute(sql.note_use, passkey.id, count, self._clock.now())
                return LoggedIn(person.name, await self._logins.begin(c, person, browser, Way.PASSKEY))
        raise PasskeyBlockedError(BLOCKED)

    async def _is_good(self, c: Connection, person: Person, passkey: Passkey, count: int, browser: Browser) -> bool:
        """Blocks one whose counter went back: which of the two is the copy, nobody can say."""
        if passkey.blocked_at:
            return False
        if not rules.went_back(passkey.sign_count, count):
            return True
        now, by = self._clock.now(), replace(browser.origin, actor=person.name)
        await c.execute(sql.block, passkey.id, now)
        data = {"passkey_id": passkey.id, "label": passkey.label}
        await audit.record(c, now, by, Code.PASSKEY_BLOCK, person.name, **data)
        log.warning("A passkey's counter went back: blocked", user=person.name, passkey_id=passkey.id)
        return False

    # --- keeping them

    async def page(self, caller: Principal, name: str, *, after: store.After, limit: int) -> list[Passkey]:
        policy.require(caller, Action.PASSKEY_LIST, policy.account(name))
        async with self._database.connection() as c:
            person = await _person(c, name)
            return await store.page(c, person.id, after, limit)

    async def rename(self, caller: Principal, name: str, id_: str, label: str) -> Passkey:
        policy.require(caller, Action.PASSKEY_RENAME, policy.account(name))
        label = _checked(label)
        async with self._database.transaction() as c:
            person = await _person(c, name, lock=True)
            passkey = await _passkey(c, person, id_)
            if passkey.label != label:
                await c.execute(sql.rename, id_, label)
                data = {"passkey_id": id_, "label": label}
                await audit.record(c, self._clock.now(), caller.origin, Code.PASSKEY_RENAME, name, **data)
        return replace(passkey, label=label)

    async def remove(self, caller: Principal, name: str, id_: str) -> None:
        """The last way in stays; one that is blocked, or belongs to a name that we had before, is none."""
        policy.require(caller, Action.PASSKEY_REMOVE, policy.account(name))
        async with self._database.transaction() as c:
            person = await _person(c, name, lock=True)
            passkey = await _passkey(c, person, id_)
            if passkey.blocked_at is None and passkey.belongs_to == self._logins.working.passkey_name:
                auth_rules.check_way_remains(await self._logins.ways_in(c, person.id))
            await c.execute(sql.remove, id_)
            data = {"passkey_id": id_, "label": passkey.label}
            await audit.record(c, self._clock.now(), caller.origin, Code.PASSKEY_REMOVE, name, **data)


def _session_of(caller: Principal, name: str) -> str:
    """The session that asks. No token adds a way in, nor does the operator: what is added is in a person's hand."""
    policy.require(caller, Action.PASSKEY_ADD, policy.account(name))
    if caller.session_id is None or not policy.is_self(caller, name):
        raise ForbiddenError(IN_A_BROWSER)
    return f"{caller.id}.{caller.session_id}"


def _checked(label: str) -> str:
    label = names.composed(label.strip())
    if complaint := _complaint(label):
        raise InvalidRequestError(complaint, field="label")
    return label


def _complaint(label: str) -> str | None:
    if not 0 < len(label) <= rules.LONGEST_LABEL:
        return f"has 1 to {rules.LONGEST_LABEL} characters"
    return names.complaint(label)


async def _person(c: Connection, name: str, *, lock: bool = False) -> Person:
    find = auth_store.lock_user if lock else auth_store.find_user
    found = await find(c, name) if ids.is_label(name) else None
    if found is None:
        raise NotFoundError(policy.NO_SUCH_USER)
    return found


async def _passkey(c: Connection, person: Person, id_: str) -> Passkey:
    found = await store.find(c, id_, person.id) if ids.is_label(id_) else None
    if found is None:
        raise PasskeyNotFoundError("there is no such passkey")
    return found
