"""Who is asking? Cookies and tokens become a `Principal`. The hot half of this folder: called on every request.

Answers are kept for a few seconds, and forgotten at once when the database says that something was revoked, so that
most requests cost no query and a deactivated person is out within seconds even if that notification is lost.
"""

import hashlib
import hmac
import os
from dataclasses import replace
from datetime import timedelta

from codehub import logs
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import store
from codehub.auth.model import AccessToken, BrowserSession, Person
from codehub.auth.rules import SessionVerdict, judge_session, token_is_good, token_use_is_news
from codehub.auth.signing import Signer, fingerprint
from codehub.auth.store import sql
from codehub.auth.streams import FROM_THE_ENVIRONMENT
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import UnauthenticatedError
from codehub.ids import is_label
from codehub.policy import rules as policy
from codehub.policy.model import ALL_SCOPES, CookieLogin, Origin, Principal, Role, Scope
from codehub.settings import AuthConfig

log = logs.get()
CHANNEL = "codehub_auth"
ADMIN_NAME = "admin"  # whom CODEHUB_ADMIN_TOKEN acts as
REMEMBER_SECONDS = 3.0
REMEMBER_AT_MOST = 20_000
TOKEN_PREFIX = "chp"  # noqa: S105 (recognisable in logs and leaks; not a secret)
BAD_TOKEN = "the bearer token is unknown, expired or revoked"  # noqa: S105


async def principal_of(c: Connection, person: Person) -> Principal:
    """With all scopes; who is taught by them is read with it, and as fresh as their role is."""
    principal = Principal(person.name, person.role, ALL_SCOPES, person.id)
    if policy.may_teach(person.role):
        teaches, manages = await store.taught_by(c, person.id)
        principal = replace(principal, teaches=teaches, manages=manages)
    else:
        principal = replace(principal, attends=await c.fetchval(sql.attends, person.id))
    called, language, zone = person.display_name, person.language, person.time_zone
    return replace(principal, display_name=called, language=language, time_zone=zone)


class Credentials:
    def __init__(self, database: Database, clock: Clock, config: AuthConfig, secret_key: str) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._signer = Signer(secret_key, "browser-session")
        self._admin = fingerprint(config.admin_token) if config.admin_token else None
        self._admin_id = ""
        self._known: dict[str, tuple[float, Principal]] = {}
        self._bad: dict[bytes, float] = {}  # tokens that are none, as keyed hashes, and until when we say so unasked
        self._bad_key = os.urandom(32)
        self._forgotten = 0

    def forget(self) -> None:
        """A person was deactivated, or something revoked."""
        self._known.clear()
        self._bad.clear()
        self._forgotten += 1

    def cookie(self, session_id: str, generation: int) -> str:
        return self._signer.sign(f"{session_id}.{generation}")

    async def by_cookie(self, cookie: str, origin: Origin) -> CookieLogin:
        if caller := self.remembered(cookie):
            return CookieLogin(caller, None)
        payload = self._signer.verify(cookie)
        if payload is None:
            raise UnauthenticatedError("the cookie is not one of ours: log in again")
        session_id, _, generation = payload.partition(".")
        asked = self._forgotten
        async with self._database.transaction() as c:
            session = await store.find_session(c, session_id)
            person = await store.find_person(c, session.user_id) if session else None
            newest = await self._act_on(c, session, person, int(generation), origin) if session and person else None
            caller = await principal_of(c, person) if person and newest is not None else None
        if session is None or caller is None or newest is None:
            raise UnauthenticatedError("this session has ended: log in again")
        caller = replace(caller, session_id=session.id)
        if newest != int(generation):
            return CookieLogin(caller, self.cookie(session.id, newest))
        self._remember(cookie, caller, asked)
        return CookieLogin(caller, None)

    async def _act_on(
        self, c: Connection, session: BrowserSession, person: Person, generation: int, origin: Origin
    ) -> int | None:
        """Carry out what the rules say; the generation the browser should have from now on, None when it is out."""
        now = self._clock.now()
        expires = now + timedelta(seconds=self._config.session_seconds)
        rotate_after = timedelta(seconds=self._config.session_rotate_seconds)
        verdict = judge_session(session, generation, now, rotate_after) if person.active else SessionVerdict.ENDED
        match verdict:
            case SessionVerdict.ENDED:
                return None
            case SessionVerdict.STOLEN:
                await self._end_stolen(c, session, person, origin)
                return None
            case SessionVerdict.TOUCH:
                await c.execute(sql.touch_session, session.id, now, expires)
            case SessionVerdict.CONFIRM:
                await c.execute(sql.confirm_session, session.id, generation, now, expires)
            case SessionVerdict.ROTATE:
                await c.execute(sql.rotate_session, session.id, generation, now, expires)
                return generation + 1
            case SessionVerdict.REISSUE:
                return session.generation
            case SessionVerdict.KEEP:
                pass
        return generation

    async def _end_stolen(self, c: Connection, session: BrowserSession, person: Person, origin: Origin) -> None:
        now = self._clock.now()
        await c.execute(sql.revoke_session, session.id, person.id, now)
        await c.execute(sql.announce)
        await audit.record(c, now, origin, Code.LOGIN_STOLEN, person.name, session_id=session.id)
        log.warning("An old cookie came back: session ended", user=person.name, session_id=session.id)

    def session_of(self, cookie: str) -> str | None:
        """The session that a cookie of ours names. It may be over: never to let a client in."""
        payload = self._signer.verify(cookie)
        return payload.partition(".")[0] if payload else None

    async def person_of(self, session_id: str) -> str:
        async with self._database.connection() as c:
            session = await store.find_session(c, session_id)
            person = await store.find_person(c, session.user_id) if session else None
        if session is None or person is None or session.revoked_at is not None:
            raise UnauthenticatedError("this session has ended: log in again")
        return person.name

    async def of_session(self, session_id: str) -> Principal | None:
        """Whose session it is, while it stands: for what was made from it and is shown to us by itself."""
        async with self._database.connection() as c:
            session = await store.find_session(c, session_id)
            alive = session is not None and session.revoked_at is None and session.expires_at > self._clock.now()
            person = await store.find_person(c, session.user_id) if session and alive else None
            return await principal_of(c, person) if person and person.active else None

    async def by_token(self, token: str) -> Principal:
        if self._admin and hmac.compare_digest(fingerprint(token), self._admin):
            return await self._environment_admin()
        if caller := self.remembered(token):
            return caller
        prefix, _, rest = token.partition("_")
        token_id, _, secret = rest.partition("_")
        if prefix != TOKEN_PREFIX or not is_label(token_id):
            raise UnauthenticatedError(BAD_TOKEN)
        asked, key = self._forgotten, hashlib.blake2b(token.encode(), digest_size=16, key=self._bad_key).digest()
        if self._bad.get(key, 0.0) > self._clock.monotonic():
            raise UnauthenticatedError(BAD_TOKEN)
        async with self._database.transaction() as c:
            found = await store.find_token(c, token_id)
            person = await store.find_person(c, found.user_id) if found else None
            if not found or not person or not self._is_good(found, person, secret):
                self._remember_bad(key, asked)
                raise UnauthenticatedError(BAD_TOKEN)
            if token_use_is_news(found, self._clock.now()):
                await c.execute(sql.note_token_use, found.id, self._clock.now())
            caller = await principal_of(c, person)
        scopes = frozenset(Scope(s) for s in found.scopes)
        caller = replace(caller, scopes=scopes, token_id=found.id, expires_at=found.expires_at)
        self._remember(token, caller, asked)
        return caller

    async def _environment_admin(self) -> Principal:
        """The person called `admin`; an admin whatever became of that person's role."""
        if not self._admin_id:
            async with self._database.connection() as c:
                person = await store.find_user(c, ADMIN_NAME)
            self._admin_id = person.id if person else ""
        return Principal(ADMIN_NAME, Role.ADMIN, ALL_SCOPES, self._admin_id, token_id=FROM_THE_ENVIRONMENT)

    def _is_good(self, token: AccessToken, person: Person, secret: str) -> bool:
        same = hmac.compare_digest(fingerprint(secret), token.secret_hash)
        return same and token_is_good(token, person, self._clock.now())

    def remembered(self, credential: str) -> Principal | None:
        until, caller = self._known.get(credential, (0.0, None))
        return caller if until > self._clock.monotonic() else None

    def was_good(self, token: str) -> bool:
        """It was, when we last asked, and nothing was revoked since. For limits, never to let a client in."""
        return token in self._known

    def _remember_bad(self, key: bytes, asked: int) -> None:
        if asked != self._forgotten:
            return
        if len(self._bad) >= REMEMBER_AT_MOST:
            self._bad.clear()
        self._bad[key] = self._clock.monotonic() + REMEMBER_SECONDS

    def _remember(self, credential: str, caller: Principal, asked: int) -> None:
        """Unless something was revoked since the database was asked: then this answer may be out of date already."""
        if asked != self._forgotten:
            return
        if len(self._known) >= REMEMBER_AT_MOST:
            self._known.clear()
        self._known[credential] = (self._clock.monotonic() + REMEMBER_SECONDS, caller)
