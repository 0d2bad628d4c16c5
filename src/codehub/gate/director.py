"""Says where requests go: to the API, to a workspace, or nowhere. One per worker, asked for every request.

Whatever is not forwarded to an IDE and is a page is the API's to show (`web.entry`): login, hand-over, wake page. What
is not a page gets a short answer from here. Nothing on the way of a request to a running workspace asks the database.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from starlette.datastructures import Headers

from codehub.activity.model import Watched
from codehub.auth.credentials import Credentials
from codehub.auth.revocations import Revocations
from codehub.clock import Clock
from codehub.errors import CodeHubError, UnauthenticatedError, UnavailableError
from codehub.gate import error_responses, lab_files, rules
from codehub.gate.access import Access
from codehub.gate.hosts import Hosts
from codehub.gate.lab_files import LabFiles
from codehub.gate.origins import Origins
from codehub.gate.passes import Passes
from codehub.gate.principals import Principals, digest
from codehub.gate.routes import Forwards, Route, Routes
from codehub.gate.rules import Outcome
from codehub.http.rules import looks_ahead
from codehub.policy import model as policy_model
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Resource
from codehub.proxy import admission, answers, headers
from codehub.proxy.model import Address, Answer, Block, Decision, Failure, Forward, Hold, RequestHead, TunnelObserver
from codehub.proxy.queueing import AFew, FairQueue
from codehub.proxy.server import Engine
from codehub.templates.loader import Templates
from codehub.templates.model import ActivityProfile, WakeOn
from codehub.workspaces.admission import admitted
from codehub.workspaces.routing import Entry
from codehub.workspaces.ttl_policy import TtlPolicies

if TYPE_CHECKING:
    from codehub.system.doors import Doors

WORKSPACE = re.compile(rb"/w/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?=[/?]|\Z)")
OURS = (b"/_codehub/", b"/static/", b"/favicon.ico")  # the platform's, on workspaces' origins
OUR_COOKIES = frozenset(
    {b"codehub", b"__host-codehub", b"__host-codehub-pass", b"__host-codehub-worker-pass", b"__host-codehub-state"}
)
HYGIENE = headers.upstream_hygiene(OUR_COOKIES | {b"codehub_language"}, b"codehub-", {lab_files.HEADER.lower()})
# A compressed message cannot be read from the side.
COMPRESSION = frozenset({b"sec-websocket-extensions"})
# What a proxy before us adds, which does not reach the API unless that proxy is trusted; that there is one, does.
PROXIES_SAY = frozenset(
    {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip"}
)
HOLD_SECONDS = 60.0
# So long a page is held before the waking page is shown instead: an IDE that is there by then comes without it.
BLINK_SECONDS = 0.4
LOOK_UP_SECONDS = 5.0
HEALTH = {b"/healthz", b"/readyz"}
HEALTH_AT_ONCE, HEALTH_WAITING = 4, 4096  # of anonymous clients: a check rather waits than says that we are down
RESERVE = 4  # connections to the API that are open for those who are logged in, and for health checks
TOKENS_AT_ONCE, TOKENS_WAITING = 2, 64  # unknown ones; a worker has four connections to the database
HELD_EACH = 12  # requests of one person that wait for one workspace: a browser opens six connections
REMEMBER = 20_000  # passes, as hashes of the Cookie headers they came in
CANDIDATES = 4  # passes in one Cookie header that are looked at
LONGEST = 67  # bytes of a path that say which workspace, with one after them
WENT_AWAY, NOT_ALLOWED = 1001, 1008  # WebSocket's codes
Routed = Forward | Answer | Hold
PAGES_WAIT = (Outcome.HOLD, Outcome.WAKE, Outcome.ASLEEP)
# Answers requests for one path of the API in this process; what it cannot, goes on to where the second argument says.
Handler = Callable[[RequestHead, Callable[[RequestHead], Forward]], Decision]


class Activity(Protocol):
    """Where people's doings are noted: every request and every message of a WebSocket. It must not wait."""

    def request(self, watched: Watched, head: RequestHead, /) -> None: ...

    def tunnel(self, watched: Watched, head: RequestHead, /) -> TunnelObserver | None: ...


class Login(NamedTuple):
    """A principal, and what they came with: a pass or a token."""

    principal: Principal
    key: str  # the session's or token's id
    expires: float  # seconds since 1970
    frame: str = ""  # the origin of the page in whose frame it is open; empty: in a tab of its own


class AccessRequest(NamedTuple):
    """Who comes to which workspace, as far as the headers say. All the requests of a page share it."""

    id: str
    login: Login | None  # by a pass for it, which may be over
    foreign: bool  # another site's page uses it


class WorkspaceDirector:
    def __init__(
        self,
        engine: Engine,
        api: Address,
        *,
        clock: Clock,
        origins: Origins,
        hosts: Hosts,
        passes: Passes,
        pass_cookies: tuple[str, str],  # the name of the pass, and of that for scripts of service workers
        principals: Principals,
        credentials: Credentials,
        revocations: Revocations,
        access: Access,
        templates: Templates,
        ttl_policies: TtlPolicies,
        activity: Activity,
        open_routes: Callable[[Callable[[Route, Entry], None]], Routes],
        handlers: Mapping[bytes, Handler] | None = None,
        shared_files: LabFiles | None = None,
        doors: "Doors | None" = None,  # the keys, where workspaces are on other machines
    ) -> None:
        self._engine = engine
        self._api = Forward(api, queue=FairQueue(), reserve=RESERVE)
        self._through = replace(self._api, add=((b"X-Codehub-Forwarded", b"1"),))
        self._health = Forward(api, beyond=admission.HEALTH, queue=FairQueue(HEALTH_AT_ONCE, HEALTH_WAITING))
        self._waiting = AFew(HELD_EACH)
        self._unknown_tokens = FairQueue(TOKENS_AT_ONCE, TOKENS_WAITING)
        self._clock = clock
        self._origins = origins
        self._hosts = hosts
        self._is_ours = lru_cache(maxsize=1024)(lambda host: hosts.accepts(host.decode("latin-1")))
        self._passes = passes
        self._pass, self._worker_pass = map(_cookie, pass_cookies)
        self._principals = principals
        self._credentials = credentials
        self._revoked = revocations
        self._access = access
        self._templates = templates
        self._ttl_policies = ttl_policies
        self._activity = activity
        self._handlers = handlers or {}
        self._lab_files = shared_files
        self._doors = doors
        self.routes = open_routes(self._on_change)
        self._read_again = lru_cache(maxsize=512)(self._read_request)
        self._logins: dict[bytes, Login] = {}
        self._inside: dict[str, Login] = {}  # by key

    # Every request.

    def decide(self, head: RequestHead) -> Decision:
        if not self._is_ours(head.block.host):
            return error_responses.misdirected(head, self._hosts)
        target = head.target
        if not target.startswith(b"/w/"):
            own = self._workspace_of(head.block)
            if self._lab_files and target.startswith(lab_files.PREFIX):
                return self._lab_files.answer(head, own)
            if own is None:
                handler = self._handlers.get(target.partition(b"?")[0])
                return handler(head, self._to_api) if handler else self._to_api(head)
            return self._to_api(head) if target.startswith(OURS) else error_responses.elsewhere(own, target)
        end = target.find(b"/", 3, LONGEST)
        read = self._read_again if head.block.small else self._read_request
        request = read(head.block, head.method, target[:end] if end > 0 else target[:LONGEST])
        if request is None:
            return self._to_api(head) if _is_page(head) else error_responses.UNKNOWN
        login = request.login
        if login is None or login.key in self._revoked.ids or login.expires <= self._clock.timestamp():
            return self._in_place(request.id, head)
        return error_responses.FOREIGN if request.foreign else self._enter(request.id, login, head)

    def _to_api(self, head: RequestHead) -> Forward:
        if not head.principal:
            head.principal = self._principals.of(head.get(b"cookie"), head.get(b"authorization"))
        if head.target in HEALTH:
            return self._health
        return self._through if PROXIES_SAY & head.block.index.keys() else self._api

    def _read_request(self, block: Block, method: bytes, path: bytes) -> AccessRequest | None:
        """None: there can be no such workspace here."""
        own = self._workspace_of(block)
        match = WORKSPACE.match(path)
        id_ = match[1].decode() if match else ""
        if not id_ or (own is not None and own != id_):
            return None
        if own is None and self._origins.isolated:
            return AccessRequest(id_, None, foreign=False)
        login = self._pass_holder(id_, block) or self._worker_holder(id_, block, method)
        framed = login is not None and bool(login.frame)
        return AccessRequest(id_, login, foreign=_comes_from_elsewhere(block, method, framed=framed))

    def _workspace_of(self, block: Block) -> str | None:
        return self._origins.workspace_of(block.host.decode("latin-1"))

    def _pass_holder(self, id_: str, block: Block) -> Login | None:
        cookie = block.index.get(b"cookie")
        if cookie is None:
            return None
        key = digest(id_.encode(), cookie)
        login = self._logins.get(key)
        if login is None:
            login = self._read_pass(id_, cookie)
            if login is not None:  # nothing is remembered of clients without a pass
                if len(self._logins) >= REMEMBER:
                    self._logins.clear()
                self._logins[key] = login
        return login

    def _read_pass(self, id_: str, cookie: bytes) -> Login | None:
        for value in self._pass.findall(cookie)[:CANDIDATES]:
            found = self._passes.read(value.decode("latin-1"))
            if found and found.workspace_id == id_:
                return self._renewed(Login(found.principal, found.session_id, found.expires, found.frame))
        return None

    def _worker_holder(self, id_: str, block: Block, method: bytes) -> Login | None:
        """A browser asks for the script of a service worker in a frame without the frame's own cookies.

        Only a browser can say that it does, and no page can make it say so of another request.
        """
        get = block.index.get
        if method != b"GET" or (get(b"sec-fetch-dest"), get(b"sec-fetch-site")) != (b"serviceworker", b"same-origin"):
            return None
        for value in self._worker_pass.findall(get(b"cookie", b""))[:CANDIDATES]:
            found = self._passes.read_for_worker(value.decode("latin-1"))
            if found and found.workspace_id == id_:
                return Login(found.principal, found.session_id, found.expires, found.frame)
        return None

    def _renewed(self, login: Login) -> Login:
        """What is open for a session lasts as long as its newest pass."""
        known = self._inside.get(login.key)
        if known is not None and known.expires < login.expires:
            self._inside[login.key] = login
        return login

    # Bearers of tokens, and clients without a login.

    def _in_place(self, id_: str, head: RequestHead) -> Routed:
        """Without a pass: programs carry a token; people are sent to where they get a pass."""
        scheme, _, token = head.get(b"authorization").partition(b" ")
        if scheme.lower() == b"bearer":
            return self._by_token(id_, token.strip().decode("latin-1"), head)
        return self._to_api(head) if _is_page(head) else error_responses.UNAUTHENTICATED

    def _by_token(self, id_: str, token: str, head: RequestHead) -> Routed:
        if caller := self._credentials.remembered(token):
            return self._as_bearer(id_, caller, head)
        return Hold(self._ask_for_token(id_, token, head), LOOK_UP_SECONDS + HOLD_SECONDS, error_responses.UNAVAILABLE)

    async def _ask_for_token(self, id_: str, token: str, head: RequestHead) -> Forward | Answer:
        try:
            caller = await self._caller(token, admission.holder(head.peer))
        except UnauthenticatedError:
            return error_responses.UNAUTHENTICATED
        except UnavailableError:
            return error_responses.UNAVAILABLE
        return await _settled(self._as_bearer(id_, caller, head))

    async def _caller(self, token: str, who: str) -> Principal:
        """A token that was good a moment ago does not wait behind invented ones."""
        if self._credentials.was_good(token):
            return await self._credentials.by_token(token)
        async with self._unknown_tokens.turn(who) as granted:
            if not granted:
                raise UnavailableError("too many unknown tokens are looked up")
            return await self._credentials.by_token(token)

    def _as_bearer(self, id_: str, caller: Principal, head: RequestHead) -> Routed:
        only_reads = head.method in (b"GET", b"HEAD") and not head.upgrade
        if not policy.has_scope(caller, Action.WORKSPACE_ENTER if only_reads else Action.WORKSPACE_WORK):
            return error_responses.SCOPE
        expires = caller.expires_at.timestamp() if caller.expires_at else inf
        login = Login(caller, caller.token_id or "", expires)
        return error_responses.UNAUTHENTICATED if self._is_over(login) else self._enter(id_, login, head)

    # Those with a login.

    def _enter(self, id_: str, login: Login, head: RequestHead) -> Routed:
        head.principal = login.principal.name
        route = self.routes.get(id_)
        if route is None:
            return Hold(self._look_up(id_, login, head), LOOK_UP_SECONDS + HOLD_SECONDS, error_responses.UNAVAILABLE)
        judged = self._judge(route, login, head)
        if isinstance(judged, Outcome) and _is_page(head):
            waiting = self._wait_with_page(id_, login, head)
            return Hold(waiting, LOOK_UP_SECONDS + HOLD_SECONDS, error_responses.UNAVAILABLE)
        if isinstance(judged, Outcome):
            return Hold(self._wait(route, login, head, judged), HOLD_SECONDS, error_responses.OF[Outcome.ASLEEP])
        return judged

    def _judge(self, route: Route, login: Login, head: RequestHead) -> Forward | Answer | Outcome:
        """An outcome: it has to wait."""
        if login.key not in route.authorized and (refused := self._authorize(route, login)):
            return self._to_api(head) if _is_page(head) else refused
        found = route.outcome or self._outcome(route)
        if found is Outcome.FORWARD:
            self._activity.request(route.watched or self._watch(route), head)
            forward = (route.forwards.get(login.key) or self._forward(route, login)).of(login.frame)
            if b"service-worker" in head.block.index:
                return _with_scope(forward, route.entry.id)
            return self._with_lab_files(route, forward, head)
        if _is_page(head):
            return found if found in PAGES_WAIT else self._to_api(head)
        return found if found in (Outcome.HOLD, Outcome.WAKE) else error_responses.OF[found]

    def _authorize(self, route: Route, login: Login) -> Answer | None:
        """What those get who may not enter. Who may is remembered until something changes about the workspace."""
        decided = self._decide(route.entry, login)
        if login.principal.visit_told:
            route.told.add(login.key)
        if decided.allowed and self._is_told(route, login, decided):
            route.authorized.add(login.key)
            return None
        return error_responses.UNTOLD if decided.allowed else error_responses.refused(decided)

    @staticmethod
    def _is_told(route: Route, login: Login, decided: policy_model.Decision) -> bool:
        """Who enters on a ground of which the owner is told needs a pass that was given with it."""
        return not decided.tells_owner or login.key in route.told

    def _decide(self, entry: Entry, login: Login) -> policy_model.Decision:
        name = login.principal.name
        is_guest, is_taught = name in entry.people, name in entry.teachers
        isolated = self._origins.isolated
        resource = Resource(entry.id, entry.owner, is_guest=is_guest, is_taught=is_taught, is_isolated=isolated)
        return policy.decide(login.principal, Action.WORKSPACE_ENTER, resource)

    def _outcome(self, route: Route) -> Outcome:
        entry = route.entry
        template = self._templates.find(entry.template)
        wakes = template is not None and template.wake_on is WakeOn.ANY
        answering = entry.address is not None
        found = rules.outcome(entry.phase, entry.operation, entry.desired, answering=answering, wakes=wakes)
        route.outcome = found
        return found

    def _forward(self, route: Route, login: Login) -> Forwards:
        entry, template = route.entry, self._templates.find(route.entry.template)
        assert entry.address is not None  # noqa: S101 (it answers)
        watched = route.watched or self._watch(route)
        forward = Forward(
            self._where(entry.address),
            f"{entry.id}/{login.key}",
            strip_prefix=f"/w/{entry.id}".encode() if template and template.strip_prefix else b"",
            hygiene=HYGIENE,
            observe=lambda head: self._activity.tunnel(route.watched or self._watch(route), head),
            drop=frozenset() if watched.profile is ActivityProfile.PLAIN else COMPRESSION,
        )
        forwards = route.forwards[login.key] = Forwards(forward)
        self._inside[login.key] = max(login, self._inside.get(login.key, login), key=lambda one: one.expires)
        return forwards

    def _where(self, address: Mapping[str, Any]) -> Address:
        key = address.get("key")
        tls = self._doors.client(key) if key and self._doors else None
        return Address(address["socket"] or "", address["host"] or "", address["port"] or 0, tls)

    def _with_lab_files(self, route: Route, forward: Forward, head: RequestHead) -> Forward:
        """JupyterLab is told, with each page, where its static files lie for all."""
        watched = route.watched
        if self._lab_files and watched and watched.profile is ActivityProfile.JUPYTER and _is_page(head):
            return replace(forward, add=(*forward.add, self._lab_files.offer(head.host)))
        return forward

    def _watch(self, route: Route) -> Watched:
        entry = route.entry
        ttl_policy = self._ttl_policies.of_template(entry.template)
        own = entry.standby_ttl_seconds
        seconds = ttl_policy.standby_seconds if own is None else own
        route.watched = Watched(entry.id, ttl_policy.profile, ttl_policy.mode, seconds)
        return route.watched

    async def _look_up(self, id_: str, login: Login, head: RequestHead) -> Forward | Answer:
        try:
            if await self.routes.find(id_) is None:
                return self._to_api(head) if _is_page(head) else error_responses.UNKNOWN
        except UnavailableError:
            return error_responses.UNAVAILABLE
        return await _settled(self._enter(id_, login, head))

    async def _wait(self, route: Route, login: Login, head: RequestHead, found: Outcome) -> Forward | Answer:
        with self._waiting.one_more(login.principal.name, route.entry.id) as granted:
            if not granted:
                return error_responses.WAITING
            if found is Outcome.WAKE:
                try:
                    visit = await self._access.visit(login.principal, route.entry.id)
                    admitted(await self._access.wake(login.principal, visit))
                except CodeHubError as e:
                    return answers.problem(502, e.detail, e.code)
            while isinstance(judged := self._judge(route, login, head), Outcome):
                await route.change()
                if self._is_over(login):
                    return error_responses.UNAUTHENTICATED
            return judged

    async def _wait_with_page(self, id_: str, login: Login, head: RequestHead) -> Forward | Answer:
        """A person's page, which wakes what sleeps. In a frame of ours it is held as anything else is: the page around
        it says how it stands. In a tab of its own for a moment, and then the API shows that.
        """
        framed = bool(login.frame) and head.get(b"sec-fetch-dest") == b"iframe"
        with self._waiting.one_more(login.principal.name, id_) as granted:
            try:
                # Read anew: the API, which sent the browser here, may know more than our events have told us.
                route = await self.routes.find(id_) if granted else None
                if route and self._outcome(route) is not Outcome.HOLD and _wakes(head):
                    visit = await self._access.visit(login.principal, id_)
                    await self._access.wake(login.principal, visit)
                    route = await self.routes.find(id_)
                if route is None:
                    return self._to_api(head)
                async with asyncio.timeout(HOLD_SECONDS if framed else BLINK_SECONDS):
                    while (judged := self._judge(route, login, head)) is Outcome.HOLD:
                        await route.change()
                        if self._is_over(login):
                            break
            except (CodeHubError, TimeoutError):
                return self._to_api(head)  # which says what is in the way, and shows what takes longer
            if not isinstance(judged, Outcome):
                return judged
            # A start that was called off while its frame waited is not begun again by it.
            return error_responses.OF[Outcome.ASLEEP] if framed else self._to_api(head)

    def unreachable(self, head: RequestHead, forward: Forward, failure: Failure) -> Answer:
        if forward in (self._api, self._through, self._health) or not _is_page(head):
            return answers.of_failure(failure)
        return error_responses.page(head)

    # Those who may not stay any more.

    def _on_change(self, route: Route, before: Entry) -> None:
        entry = route.entry
        if entry.address != before.address or entry.template != before.template:
            self._close(route, set(route.forwards), WENT_AWAY, "The workspace was stopped.")
        if before.people - entry.people:
            self._end_what_is_over()

    async def close_revoked(self) -> None:
        """End what is open for sessions and tokens that were revoked, or are over."""
        await self._revoked.read()
        self._end_what_is_over()

    def _end_what_is_over(self) -> None:
        """Of all that is open now: also what was let in a moment before its login, or its share, ended."""
        over = {key for key, login in self._inside.items() if self._is_over(login)}
        for key in over:
            del self._inside[key]
        for route in self.routes.all() if over else ():
            route.authorized -= over
            for key in over & route.forwards.keys():
                del route.forwards[key]
        ended = {name: reason for name in self._engine.open_routes() if (reason := self._why_over(name))}
        for name, reason in ended.items():
            self._engine.close_tunnels(name, NOT_ALLOWED, reason)
        self._engine.cut_requests(set(ended))

    def _why_over(self, name: str) -> str:
        """Empty: it may stay."""
        id_, _, key = name.partition("/")
        login, route = self._inside.get(key), self.routes.get(id_)
        if login is None:
            return "You are logged out."
        allowed = route is None or self._still_authorized(route, login)
        return "" if allowed else "It is not shared with you any more."

    def _still_authorized(self, route: Route, login: Login) -> bool:
        principal = replace(login.principal, workspace_id=None)  # of the newest pass, which may be for another one
        decided = self._decide(route.entry, login._replace(principal=principal))
        return decided.allowed and self._is_told(route, login, decided)

    def _is_over(self, login: Login) -> bool:
        return login.expires <= self._clock.timestamp() or login.key in self._revoked.ids

    def _close(self, route: Route, keys: set[str], code: int, reason: str) -> None:
        for key in keys:
            forwards = route.forwards.pop(key)
            self._engine.close_tunnels(forwards.of("").route, code, reason)


def _cookie(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"(?:^|;)[ \t]*" + name.encode() + rb"=([^;, \t]*)")


async def _settled(decision: Routed) -> Forward | Answer:
    return await decision.decision if isinstance(decision, Hold) else decision


def _wakes(head: RequestHead) -> bool:
    """Does a person come, rather than a browser or a program that looks ahead?"""
    fields = Headers(raw=[(field.key, field.value) for field in head.block.fields])
    return head.method == b"GET" and not looks_ahead(fields)


def _is_page(head: RequestHead) -> bool:
    return _navigates(head.block, head.method)


def _navigates(block: Block, method: bytes) -> bool:
    get = block.index.get
    mode, dest, accept = get(b"sec-fetch-mode", b""), get(b"sec-fetch-dest", b""), get(b"accept", b"")
    return rules.is_navigation(method, mode, dest, accept, upgrade=block.upgrade and method == b"GET")


def _comes_from_elsewhere(block: Block, method: bytes, *, framed: bool) -> bool:
    """`framed`: it may be shown in a frame of our own page, and in no other's: the answer says so to the browser."""
    get = block.index.get
    dest = get(b"sec-fetch-dest", b"document")
    followed = (dest == b"document" or (framed and dest == b"iframe")) and _navigates(block, method)
    origin, site, upgrade = get(b"origin", b""), get(b"sec-fetch-site", b""), block.upgrade and method == b"GET"
    return rules.comes_from_elsewhere(origin, site, block.host, followed=followed, upgrade=upgrade)


def _with_scope(forward: Forward, id_: str) -> Forward:
    """What a workspace says of its service workers' scope is dropped; it is granted its own path.

    No more than it could take: a script at the top of that path has this scope by default, also where all share
    one origin.
    """
    hygiene = forward.hygiene
    granted = (*hygiene.grants, f"Service-Worker-Allowed: /w/{id_}/".encode())
    return replace(forward, hygiene=replace(hygiene, grants=granted))
