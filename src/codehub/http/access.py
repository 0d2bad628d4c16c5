"""Turns a request's cookie, bearer token or door into a `Principal`, and lets every route say which action it is.

A route of the API names its action by `may`, pages by `names` or by a dependency of their own (`web.dashboard`). A test
reads them by `actions_of` and fails for a route without one.
"""

import pwd
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import unquote

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from codehub.errors import UnauthenticatedError
from codehub.http import provide, rules
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import CookieLogin, Origin, Principal, operator
from codehub.rates import Rates
from codehub.settings import Settings

# Set by `web.operator_door` for what came through it; nothing that is sent can set it.
OPERATOR_UID = "codehub.operator_uid"
OPERATOR_NAME = "codehub-operator"  # a header that counts only there: under sudo, the person behind root
LONGEST_NAME = 64


class Authenticator(Protocol):
    """What `auth.credentials` does for every request."""

    async def by_token(self, token: str, /) -> Principal: ...

    async def by_cookie(self, cookie: str, origin: Origin, /) -> CookieLogin: ...


def set_cookie(request: Request, value: str) -> None:
    """Let the answer carry the session cookie, whatever the answer is; an empty value takes it away."""
    settings = provide.get(request, Settings)
    age = settings.auth.session_seconds if value else 0
    flags = "; Secure" if settings.secure else ""
    request.state.cookie = f"{settings.session_cookie}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{flags}"


def origin_of(request: Request) -> Origin:
    return Origin("nobody", request.state.request_id, request.state.address)


async def visitor(request: Request) -> Principal | None:
    """Who is asking, if they say so. A bearer token goes before a cookie; a bad one is refused, not ignored."""
    if OPERATOR_UID in request.scope:
        return replace(operator(_operator_name(request)), request_id=request.state.request_id)
    authenticator = provide.get(request, Authenticator)
    authorization = request.headers.get("authorization")
    cookie = request.cookies.get(provide.get(request, Settings).session_cookie)
    if authorization is not None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise UnauthenticatedError("only `Authorization: Bearer` is understood")
        caller = await authenticator.by_token(token.strip())
    elif cookie:
        caller, new_cookie = await authenticator.by_cookie(cookie, origin_of(request))
        if new_cookie:
            set_cookie(request, new_cookie)
    else:
        return None
    request.state.reader = caller  # pages speak to them in their language (`web.rendering`)
    return replace(caller, request_id=request.state.request_id, address=request.state.address)


def _operator_name(request: Request) -> str:
    """As they say themselves: root could be any person. It is written into history, so it is one short word."""
    uid: int = request.scope[OPERATOR_UID]
    said = unquote(request.headers.get(OPERATOR_NAME, "")) if uid == 0 else ""
    if 0 < len(said) <= LONGEST_NAME and said.isprintable() and " " not in said:
        return said
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


async def require_login(request: Request, action: Action) -> Principal:
    """A user whose credential covers the action. Whether they may do it, the service decides, which knows to what."""
    caller = await visitor(request)
    if caller is None:
        raise UnauthenticatedError("log in, or send `Authorization: Bearer …`")
    policy_rules.require_scope(caller, action)
    if request.method not in rules.SAFE_METHODS:
        await spend_change(request, caller)
    return caller


class Names:
    """A dependency that says which action a route is. Alone it asks for nothing: for what is public, or asks itself."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self) -> None:
        """Nothing: it is there to be read (`actions_of`)."""


class NeedsLogin(Names):
    async def __call__(self, request: Request) -> Principal:  # type: ignore[override]
        return await require_login(request, self.action)


class NeedsLoginUnlessLocal(Names):
    async def __call__(self, request: Request) -> None:  # type: ignore[override]
        if not is_local(request):
            await require_login(request, self.action)


class NeedsOperator(Names):
    """This machine, the networks that were named for it, or an admin."""

    async def __call__(self, request: Request) -> None:  # type: ignore[override]
        networks = provide.get(request, Settings).server.metrics_networks
        if not is_local(request) and not rules.is_within(request.state.address, networks):
            policy_rules.require(await require_login(request, self.action), self.action)


def may(action: Action) -> Any:
    """The dependency of every route of the API: `caller: Annotated[Principal, …]`."""
    return Depends(NeedsLogin(action))


def names(action: Action) -> Any:
    """For the `dependencies` of a route that needs no login, or asks for one in its own way."""
    return Depends(Names(action))


def actions_of(route: BaseRoute) -> list[Action]:
    """What a route says it is."""
    if isinstance(route, APIRoute):
        calls = [dependency.call for dependency in route.dependant.dependencies]
        return [call.action for call in calls if isinstance(call, Names)]
    found = getattr(getattr(route, "app", None), "action", None)
    return [found] if isinstance(found, Action) else []


async def spend_change(request: Request, caller: Principal) -> None:
    most = policy_rules.allowance(caller, provide.get(request, Settings).limits.max_changes_per_minute)
    await provide.get(request, Rates).spend("change", caller.name, most)


async def spend_creation(request: Request, caller: Principal, kind: str) -> None:
    """`kind`: of what is made."""
    most = policy_rules.allowance(caller, provide.get(request, Settings).limits.max_creations_per_minute)
    await provide.get(request, Rates).spend(kind, caller.name, most)


def is_local(request: Request) -> bool:
    by_front_door = request.client is None  # which comes by a Unix socket
    return rules.is_direct_and_local(request.headers, request.state.address, by_front_door=by_front_door)


def base_url(request: Request) -> str:
    """Where this person reached us, for links we hand out."""
    return (provide.get(request, Settings).server.public_url or str(request.base_url)).rstrip("/")
