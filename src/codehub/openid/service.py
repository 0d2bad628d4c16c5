"""The use cases of logins by providers: begin, finish, link, unlink, log out there. Called by `api` and pages.

Nothing waits for a provider while a transaction is open: first it is asked who came, then the account is found or made
and the session begins, all at once.
"""

from collections.abc import Awaitable, Callable
from collections.abc import Mapping as Said
from dataclasses import dataclass, replace

from codehub import ids, logs
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import provisioning
from codehub.auth import rules as auth_rules
from codehub.auth.credentials import Credentials
from codehub.auth.logins import Browser, Logins, Way
from codehub.auth.model import Person
from codehub.auth.sealing import Sealer
from codehub.classes.service import Classes
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import CodeHubError, ForbiddenError, NotFoundError
from codehub.openid import rules, store
from codehub.openid.client import Client
from codehub.openid.errors import (
    DeniedError,
    FlowOverError,
    IdentityTakenError,
    LoginRefusedError,
    MixedUpError,
    OtherSessionError,
    PersonInactiveError,
    ProviderNotFoundError,
    ProviderRefusedError,
    StrangerError,
)
from codehub.openid.flows import Flows, challenge_of
from codehub.openid.mapping import Mapping
from codehub.openid.model import Flow, Identity, Subject
from codehub.openid.store import sql
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Origin, Principal, Role, System, system
from codehub.settings.openid import OpenIdConfig, Provider

log = logs.get()
LONGEST_CODE = 4096
LONGEST_ID_TOKEN = 16_384  # that is kept for the logout
NUMBERS = 50  # behind a name, before one that nobody has is made up


@dataclass(frozen=True)
class Arrival:
    """What came of a finished flow: a session's cookie, or a login that its person may link."""

    cookie: str = ""
    proposal: str = ""


class OpenId:
    def __init__(
        self,
        config: OpenIdConfig,
        database: Database,
        clock: Clock,
        flows: Flows,
        sealer: Sealer,
        clients: Said[str, Client],
        credentials: Credentials,
        logins: Logins,
        classes: Classes,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._config = config
        self._database = database
        self._clock = clock
        self.flows = flows
        self._sealer = sealer
        self._clients = clients
        self._credentials = credentials
        self._logins = logins
        self._classes = classes
        self.aclose = close

    @property
    def providers(self) -> tuple[Provider, ...]:
        return self._config.providers

    def provider(self, name: str) -> Provider:
        return self._client(name).provider

    def _client(self, name: str) -> Client:
        if found := self._clients.get(name):
            return found
        raise ProviderNotFoundError("there is no such provider")

    # --- there and back

    async def begin(
        self, name: str, browser_secret: str, redirect_uri: str, caller: Principal | None, *, link: bool
    ) -> Flow:
        """`link`: the caller wants to link what they log in with there. Asks the provider, which may be away."""
        client = self._client(name)
        if link:
            require_browser(caller, Action.IDENTITY_LINK)
        try:
            await client.metadata()
        except LoginRefusedError as e:
            self._note(name, e)
            raise
        session_id = caller.session_id or "" if caller else ""
        person_id = caller.id if caller and link else ""
        return await self.flows.begin(name, browser_secret, redirect_uri, person_id, session_id)

    async def leave(self, name: str, state: str, browser_secret: str | None) -> tuple[Provider, str]:
        """Where the browser of this flow goes now."""
        client = self._client(name)
        flow = await self.flows.peek(state, browser_secret)
        if flow.provider != name:
            raise FlowOverError("this login is another provider's")
        return client.provider, await client.authorization_url(flow, challenge_of(flow.verifier))

    async def finish(self, name: str, said: Said[str, str], browser_secret: str | None, browser: Browser) -> Arrival:
        """What the provider's answer is worth. Refusals are noted for the operator, without secrets."""
        client = self._client(name)
        flow: Flow | None = None
        try:
            flow = await self.flows.take(said.get("state", ""), browser_secret)
            if flow.provider != name:
                raise MixedUpError("the answer came to another provider's address")
            return await self._arrive(client, flow, said, browser)
        except LoginRefusedError as e:
            self._note(name, e)
            e.extra = {**e.extra, "links": bool(flow and flow.person_id)}
            raise

    async def _arrive(self, client: Client, flow: Flow, said: Said[str, str], browser: Browser) -> Arrival:
        rules.check_answer_issuer(await client.metadata(), said.get("iss"))
        if error := said.get("error"):
            raise _said_no(error)
        code = said.get("code", "")
        if not 0 < len(code) <= LONGEST_CODE:
            raise ProviderRefusedError("its answer has no code")
        claims, id_token = await client.claims(flow, code)
        subject = rules.read_subject(claims, client.provider)
        if flow.person_id:
            return Arrival(proposal=await self._propose(flow, subject, browser.instead_of))
        return Arrival(cookie=await self._log_in(client.provider, flow, subject, id_token, browser))

    def _note(self, name: str, error: LoginRefusedError) -> None:
        self._logins.refused(Way.PROVIDER)
        log.warning("A login by a provider was refused", provider=name, kind=error.kind, why=error.detail)

    # --- logging in

    async def _log_in(self, provider: Provider, flow: Flow, subject: Subject, id_token: str, browser: Browser) -> str:
        async with self._database.transaction() as c:
            person, identity = await self._account(c, provider, subject, browser.origin)
            self._check_session(flow, person, browser)
            now = self._clock.now()
            await c.execute(sql.note_use, identity.id, provider.name, subject.label, subject.email, now)
            cookie = await self._logins.begin(c, person, browser, Way.PROVIDER)
            session_id = self._credentials.session_of(cookie)
            if session_id and provider.logout and len(id_token) <= LONGEST_ID_TOKEN:
                await c.execute(sql.note_login, session_id, identity.id, self._sealer.seal(id_token, session_id))
        self._credentials.forget()
        return cookie

    @staticmethod
    def _check_session(flow: Flow, person: Person, browser: Browser) -> None:
        """The session that this browser had when the login began ends; one that began since then does not."""
        before = browser.instead_of
        if before and before.session_id and before.session_id != flow.session_id and before.id != person.id:
            raise OtherSessionError("another person has logged in with this browser meanwhile", name=before.name)

    async def _account(
        self, c: Connection, provider: Provider, subject: Subject, origin: Origin
    ) -> tuple[Person, Identity]:
        """Whose login it is: the account that has it, the one with its e-mail, or a new one. Locked."""
        by = replace(system(System.OPENID), request_id=origin.request_id, address=origin.address)
        mapping = Mapping(self._classes, provider, by, self._clock.now())
        identity = await store.find(c, subject.issuer, subject.subject)
        user_id = identity.user_id if identity else await self._by_email(c, provider, subject)
        admins = await self._lock_before(c, mapping, user_id, identity, subject)
        person = await provisioning.lock(c, user_id) if user_id else await self._newcomer(c, provider, subject, by)
        if person is None or not person.active:
            raise PersonInactiveError("the account of this login is deactivated")
        if identity is None:
            identity = await self._link(c, replace(by.origin, actor=person.name), person, subject)
        return await mapping.apply(c, person, identity, subject, admins), identity

    async def _lock_before(
        self, c: Connection, mapping: Mapping, user_id: str | None, identity: Identity | None, subject: Subject
    ) -> frozenset[str]:
        """Admins and classes are locked before a person, as everywhere; the ids of the admins."""
        before = await provisioning.find(c, user_id) if user_id else None
        may_lose = before is not None and policy.administers(before.role) and bool(mapping.provider.roles)
        admins = await provisioning.lock_admins(c) if may_lose else frozenset[str]()
        await mapping.lock_classes(c, identity, subject)
        return admins

    async def _by_email(self, c: Connection, provider: Provider, subject: Subject) -> str | None:
        """Where the operator trusts verified addresses: of this provider, and of the other's they are compared with."""
        if not provider.trust_email or subject.email is None:
            return None
        trusted = [other.issuer for other in self._config.providers if other.trust_email]
        return await store.person_with_email(c, subject.email, trusted)

    async def _newcomer(self, c: Connection, provider: Provider, subject: Subject, by: Principal) -> Person:
        if not provider.create:
            raise StrangerError("no account is linked with this login, and `create` is off")
        numbered = [f"{name}-{n}" for name in subject.wanted_names[:1] for n in range(2, NUMBERS)]
        for name in (*subject.wanted_names, *numbered, f"person-{ids.new(8)}"):
            role, now = Role(provider.role), self._clock.now()
            if person := await provisioning.add(c, by, name, role, now, subject.display_name):
                return person
        raise StrangerError("no free name was found")

    async def _link(self, c: Connection, by: Origin, person: Person, subject: Subject) -> Identity:
        now = self._clock.now()
        identity = await store.add(c, person.id, subject, now)
        await audit.record(c, now, by, Code.IDENTITY_LINK, person.name, provider=subject.provider)
        return identity

    # --- linking, by the person themselves

    async def _propose(self, flow: Flow, subject: Subject, caller: Principal | None) -> str:
        if caller is None or not caller.session_id or caller.id != flow.person_id:
            raise OtherSessionError("who began to link is not logged in with this browser any more", name="")
        async with self._database.connection() as c:
            identity = await store.find(c, subject.issuer, subject.subject)
        if identity and identity.user_id != caller.id:
            raise IdentityTakenError("this login is linked with another account")
        return await self.flows.propose(caller.session_id, subject)

    async def proposed(self, caller: Principal, secret: str) -> Subject:
        """What they are asked about."""
        return await self.flows.proposed(require_browser(caller, Action.IDENTITY_LINK), secret, take=False)

    async def link(self, caller: Principal, secret: str) -> None:
        """They have said yes."""
        subject = await self.flows.proposed(require_browser(caller, Action.IDENTITY_LINK), secret, take=True)
        async with self._database.transaction() as c:
            identity = await store.find(c, subject.issuer, subject.subject)
            person = await provisioning.lock(c, caller.id)
            if person is None or not person.active or (identity and identity.user_id != caller.id):
                raise IdentityTakenError("this login is linked with another account")
            if identity is None:
                await self._link(c, caller.origin, person, subject)

    # --- what is linked

    async def identities(self, caller: Principal, name: str) -> list[Identity]:
        policy.require(caller, Action.IDENTITY_LIST, policy.account(name))
        async with self._database.connection() as c:
            person = await provisioning.named(c, name)
            if person is None:
                raise NotFoundError(policy.NO_SUCH_USER)
            return await store.of_person(c, person.id)

    async def unlink(self, caller: Principal, name: str, identity_id: str) -> None:
        """The last way in stays; a login at a provider that is not configured any more is none."""
        policy.require(caller, Action.IDENTITY_REMOVE, policy.account(name))
        async with self._database.transaction() as c:
            person = await provisioning.lock_named(c, name)
            found = await store.of_person(c, person.id) if person else []
            identity = next((i for i in found if i.id == identity_id), None)
            if person is None or identity is None:
                raise NotFoundError("there is no such linked login")
            if identity.issuer in self._logins.working.issuers:
                auth_rules.check_way_remains(await self._logins.ways_in(c, person.id))
            await c.execute(sql.remove, identity.id, person.id)
            now = self._clock.now()
            await audit.record(c, now, caller.origin, Code.IDENTITY_REMOVE, name, provider=identity.provider)

    # --- logging out there

    async def logout_url(self, caller: Principal, back_to: str) -> tuple[Provider, str] | None:
        """Where to send a browser that was logged out here; None: its session did not begin at a provider, or that one
        has no such place or does not answer.

        Some providers ask again whether to log out where they are not told whose login it was: so the ID token is kept
        until then, sealed. One that cannot be opened, because keys have changed, is left out.
        """
        if not caller.session_id or not self._clients:
            return None
        async with self._database.transaction() as c:
            found = await c.fetchrow(sql.login_of, caller.session_id)
            await c.execute(sql.forget_login, caller.session_id)
        client = next((k for k in self._clients.values() if found and k.provider.issuer == found["issuer"]), None)
        try:
            hint = self._sealer.open(found["sealed_id_token"], caller.session_id) if found else None
            url = await client.logout_url(hint, back_to) if client else None
        except CodeHubError as e:
            log.warning("Logged out here, but not there", provider=client and client.provider.name, why=e.detail)
            return None
        return (client.provider, url) if client and url else None


def require_browser(caller: Principal | None, action: Action) -> str:
    """The session's id: a program's token links nothing."""
    policy.require(caller, action, policy.account(caller.name if caller else ""))
    if caller is None or not caller.session_id:
        raise ForbiddenError("log in with a browser for this")
    return caller.session_id


def _said_no(error: str) -> LoginRefusedError:
    if error in {"access_denied", "interaction_required", "login_required", "consent_required"}:
        return DeniedError(f"the person did not log in there: {error}")
    return ProviderRefusedError(f"it says {error[:40]}" if error.isprintable() else "it says that something is wrong")
