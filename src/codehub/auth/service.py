"""The use cases about people: each is one transaction, audited in it. Called by `api`, `cli` and the supervisor."""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from codehub import ids, names
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import profiles, rules, store
from codehub.auth.credentials import TOKEN_PREFIX, Credentials
from codehub.auth.logins import Browser, Logins, Way, end_with_role
from codehub.auth.model import AccessToken, BrowserSession, NewPassword, Person, WaysIn
from codehub.auth.signing import fingerprint
from codehub.auth.store import sql
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import (
    InvalidRequestError,
    NameKeptError,
    NotFoundError,
    TokenLimitError,
    UnauthenticatedError,
    UserExistsError,
)
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Origin, Principal, Role, Scope, System
from codehub.settings import AuthConfig, LimitsConfig

FIRST_ADMIN = "admin"
# History and the audit log would take a person of that name for it.
RESERVED = frozenset({*System, "codehub", "gc", "trash"})
AUDITED = {"session": Code.LOGIN_REVOKE, "token": Code.TOKEN_REVOKE}
REVOKES = {"session": Action.LOGIN_REVOKE, "token": Action.TOKEN_REVOKE}
Leaving = Callable[[Connection, str, Principal, datetime], Awaitable[None]]  # who, by whom, when
Returning = Callable[[Connection, str], Awaitable[None]]
FROM_THE_START: store.After = (datetime.min.replace(tzinfo=UTC), "")


@dataclass(frozen=True)
class LoginLink:
    user_name: str
    secret: str = field(repr=False)
    seconds: int

    def url(self, base: str) -> str:
        return f"{base}/login/{self.secret}"


@dataclass(frozen=True)
class NewToken:
    token: AccessToken
    secret: str = field(repr=False)


class People:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: AuthConfig,
        limits: LimitsConfig,
        credentials: Credentials,
        logins: Logins,
        leaving: Sequence[Leaving] = (),
        returning: Sequence[Returning] = (),
    ) -> None:
        """`leaving`, `returning`: told of a person who is deactivated, or active again, in the same transaction."""
        self._database = database
        self._clock = clock
        self._config = config
        self._limits = limits
        self._credentials = credentials
        self._logins = logins
        self._leaving = leaving
        self._returning = returning

    async def ensure_first_admin(self) -> Person:
        """There is an admin from the first start on."""
        async with self._database.transaction() as c:
            added = await store.add_user(c, FIRST_ADMIN, Role.ADMIN, self._clock.now())
            if added:
                await audit.record(c, self._clock.now(), Origin("codehub"), Code.USER_CREATE, FIRST_ADMIN, role="admin")
            return added or await self._user(c, FIRST_ADMIN)

    async def create_user(
        self, caller: Principal, name: str, role: Role, display_name: str = "", password: NewPassword | None = None
    ) -> Person:
        policy_rules.require(caller, Action.USER_CREATE)
        _check_name(name)
        called = profiles.display_name(display_name)
        async with self._database.transaction() as c:
            person = await store.add_user(c, name, role, self._clock.now(), called)
            if person is None:
                raise await self._taken(c, name)
            if password:
                await store.set_password(c, person.id, password, self._clock.now(), caller.name)
            await audit.record(c, self._clock.now(), caller.origin, Code.USER_CREATE, name, role=role)
        return person

    async def page_users(
        self,
        caller: Principal,
        *,
        after: str,
        role: Role | None,
        limit: int,
        text: str = "",
        active: bool | None = None,
    ) -> list[Person]:
        """`text`: a part of a name or a display name."""
        policy_rules.require(caller, Action.USER_LIST)
        async with self._database.connection() as c:
            return await store.page_users(c, after, limit, role, names.composed(text), active)

    async def get_user(self, caller: Principal, name: str) -> Person:
        policy_rules.require(caller, Action.USER_SEE, policy_rules.account(name))
        async with self._database.connection() as c:
            return await self._user(c, name)

    async def ways_in(self, caller: Principal, name: str) -> WaysIn:
        policy_rules.require(caller, Action.USER_SEE, policy_rules.account(name))
        async with self._database.connection() as c:
            return await self._logins.ways_in(c, (await self._user(c, name)).id)

    async def has_way_in(self, caller: Principal) -> bool:
        """Can this person log in again by themselves?"""
        async with self._database.connection() as c:
            return (await self._logins.ways_in(c, caller.id)).count > 0

    async def should_choose(self, name: str) -> bool:
        """Is this person, who came by a link, asked for another way in? Admins are: nobody else makes them links."""
        async with self._database.connection() as c:
            person = await self._user(c, name)
            return policy_rules.administers(person.role) and (await self._logins.ways_in(c, person.id)).count == 0

    async def called(self, names_: Collection[str]) -> Mapping[str, str]:
        """For pages that show these names: what people call them, with the name beside it, which only they have."""
        async with self._database.connection() as c:
            found = await c.fetch(sql.called, list(names_)) if names_ else []
        return {
            **dict(zip(names_, names_, strict=True)),
            **{r["name"]: f"{r['display_name']} ({r['name']})" for r in found},
        }

    async def is_active(self, name: str) -> bool:
        """For other services: may this person come at all?"""
        async with self._database.connection() as c:
            person = await store.find_user(c, name) if ids.is_label(name) else None
        return person is not None and person.active

    async def change_user(self, caller: Principal, name: str, *, role: Role | None, active: bool | None) -> Person:
        """Change role or activity. Deactivating ends logins and what runs, in this transaction; so do some roles."""
        policy_rules.require(caller, Action.USER_CHANGE)
        now = self._clock.now()
        async with self._database.transaction() as c:
            admins = await store.lock_admins(c)
            person = await self._user(c, name, lock=True)
            new_role = role or person.role
            new_active = person.active if active is None else active
            rules.check_admin_remains(person, new_role, active=new_active, other_admins=len(set(admins) - {person.id}))
            deactivated_at = None if new_active else person.deactivated_at or now
            changed = await store.change_user(c, person.id, new_role, deactivated_at)
            if not new_active:
                await store.revoke_all(c, person.id, now)
                for leave in self._leaving:
                    await leave(c, name, caller, now)
            await end_with_role(c, person, new_role, now, caller.origin)
            if new_active and not person.active:
                for let_back in self._returning:
                    await let_back(c, name)
            await c.execute(sql.announce)
            await audit.record(c, now, caller.origin, Code.USER_CHANGE, name, role=new_role, active=new_active)
        self._credentials.forget()
        return changed

    async def rename_user(self, caller: Principal, name: str, new_name: str) -> Person:
        """What is theirs, and what they did, stays theirs; the old name is never given to another person."""
        policy_rules.require(caller, Action.USER_CHANGE)
        _check_name(new_name)
        now = self._clock.now()
        async with self._database.transaction() as c:
            person = await self._user(c, name, lock=True)
            if person.name == new_name:
                return person
            if person.name == FIRST_ADMIN:
                raise NameKeptError(f"{FIRST_ADMIN} keeps its name: CODEHUB_ADMIN_TOKEN acts as it")
            renamed = await store.rename_user(c, person.id, new_name)
            if renamed is None:
                raise await self._taken(c, new_name)
            await c.execute(sql.announce)
            await audit.record(c, now, caller.origin, Code.USER_RENAME, new_name, old_name=name, new_name=new_name)
        self._credentials.forget()
        return renamed

    async def make_login_link(self, caller: Principal, name: str) -> LoginLink:
        policy_rules.require(caller, Action.LOGIN_LINK_CREATE, policy_rules.account(name))
        secret, now = ids.new_secret(), self._clock.now()
        seconds = self._config.login_link_seconds
        async with self._database.transaction() as c:
            person = await self._user(c, name, lock=True)
            if not policy_rules.looks_after(caller, person.name, person.role):
                raise NotFoundError(policy_rules.NO_SUCH_USER)
            rules.require_active(person)
            rules.require_whole_login(caller, person)
            await store.replace_link(c, person.id, fingerprint(secret), now, now + timedelta(seconds=seconds))
            await audit.record(c, now, caller.origin, Code.LOGIN_LINK_CREATE, name)
        return LoginLink(name, secret, seconds)

    async def is_link_of(self, caller: Principal, secret: str) -> bool:
        """Is, or was, it theirs?"""
        async with self._database.connection() as c:
            return bool(await c.fetchval(sql.is_link_of, fingerprint(secret), caller.id))

    async def owner_of_link(self, secret: str) -> str | None:
        """Whom it would log in; None when it is no good any more. Asking does not use it up."""
        async with self._database.connection() as c:
            return await store.owner_of_link(c, fingerprint(secret), self._clock.now())

    async def log_in(self, secret: str, browser: Browser) -> str:
        """Trade a login link for a new session; returns its cookie. The browser's session until now ends."""
        async with self._database.transaction() as c:
            person = await store.use_link(c, fingerprint(secret), self._clock.now())
            cookie = await self._logins.begin(c, person, browser, Way.LINK) if person else None
        if cookie is None:
            self._logins.refused(Way.LINK)
            raise UnauthenticatedError("this login link was used before, is too old, or was never good")
        if browser.instead_of:
            self._credentials.forget()
        return cookie

    async def log_out(self, caller: Principal) -> None:
        if caller.session_id:
            with contextlib.suppress(NotFoundError):  # of two clicks the second finds it done
                await self.revoke_session(caller, caller.name, caller.session_id)

    async def page_sessions(
        self, caller: Principal, name: str, *, after: store.After, limit: int
    ) -> list[BrowserSession]:
        policy_rules.require(caller, Action.LOGIN_LIST, policy_rules.account(name))
        async with self._database.connection() as c:
            person = await self._user(c, name)
            return await store.page_sessions(c, person.id, self._clock.now(), after, limit)

    async def revoke_session(self, caller: Principal, name: str, session_id: str) -> None:
        await self._revoke(caller, name, session_id, sql.revoke_session, "session")

    async def create_token(
        self, caller: Principal, name: str, *, label: str, scopes: frozenset[Scope] | None, days: int | None
    ) -> NewToken:
        policy_rules.require(caller, Action.TOKEN_CREATE, policy_rules.account(name))
        if complaint := names.complaint(label):
            raise InvalidRequestError(complaint, field="label")
        token_id, secret, now = ids.new(), ids.new_secret(), self._clock.now()
        expires = now + timedelta(days=days or self._config.token_days)
        async with self._database.transaction() as c:
            person = await self._user(c, name, lock=True)
            rules.require_active(person)
            await self._check_tokens(c, caller, person)
            granted = sorted(rules.grantable(caller, scopes, person.role))
            token = await store.add_token(
                c, token_id, person.id, label, fingerprint(secret), granted, now, caller.name, expires
            )
            await audit.record(c, now, caller.origin, Code.TOKEN_CREATE, name, token_id=token_id, scopes=granted)
        return NewToken(token, f"{TOKEN_PREFIX}_{token_id}_{secret}")

    async def _check_tokens(self, c: Connection, caller: Principal, person: Person) -> None:
        most = policy_rules.allowance(caller, self._limits.max_tokens_per_user)
        if most is not None and await c.fetchval(sql.count_tokens, person.id, self._clock.now()) >= most:
            raise TokenLimitError(f"{person.name} has {most} access tokens: revoke one first")

    async def end_other_sessions(self, caller: Principal, name: str) -> None:
        """All of a person's browsers are logged out, but for the one that asks."""
        policy_rules.require(caller, Action.LOGIN_REVOKE, policy_rules.account(name))
        async with self._database.transaction() as c:
            person = await self._user(c, name, lock=True)
            await self._logins.end_others(c, person, caller.session_id)
            await audit.record(c, self._clock.now(), caller.origin, Code.LOGIN_REVOKE_OTHERS, name)
        self._credentials.forget()

    async def page_tokens(self, caller: Principal, name: str, *, after: store.After, limit: int) -> list[AccessToken]:
        policy_rules.require(caller, Action.TOKEN_LIST, policy_rules.account(name))
        async with self._database.connection() as c:
            person = await self._user(c, name)
            return await store.page_tokens(c, person.id, after, limit)

    async def revoke_token(self, caller: Principal, name: str, token_id: str) -> None:
        await self._revoke(caller, name, token_id, sql.revoke_token, "token")

    async def _revoke(self, caller: Principal, name: str, id_: str, statement: str, kind: str) -> None:
        policy_rules.require(caller, REVOKES[kind], policy_rules.account(name))
        if not (ids.is_label(name) and ids.is_label(id_)):
            raise NotFoundError(f"there is no such {kind}")
        now = self._clock.now()
        async with self._database.transaction() as c:
            person = await store.find_user(c, name)
            if person is None or store.changed(await c.execute(statement, id_, person.id, now)) == 0:
                raise NotFoundError(f"there is no such {kind}")
            await c.execute(sql.announce)
            await audit.record(c, now, caller.origin, AUDITED[kind], name, id=id_)
        self._credentials.forget()

    async def _taken(self, c: Connection, name: str) -> UserExistsError:
        if await store.find_user(c, name):
            return UserExistsError(f"there is a user {name} already")
        return UserExistsError(f"another person was called {name} once: choose another name")

    async def _user(self, c: Connection, name: str, *, lock: bool = False) -> Person:
        found = None
        if ids.is_label(name):
            found = await (store.lock_user if lock else store.find_user)(c, name)
        if found is None:
            raise NotFoundError(policy_rules.NO_SUCH_USER)
        return found


def _check_name(name: str) -> None:
    if not ids.is_label(name):
        raise InvalidRequestError("1 to 63 of a–z, 0–9 and -, not at the ends", field="name")
    if name in RESERVED:
        raise UserExistsError(f"{name} is the name of a part of the platform: choose another name")


async def prune(c: Connection, now: datetime, limit: int) -> int:
    """Remove expired credentials; called by housekeeping, a bounded number at a time."""
    return await store.prune(c, now, limit)
