"""Turns a request's cookie or bearer token into a `Principal`: the dependency that every API route names."""

from dataclasses import replace
from typing import Annotated, Protocol

from fastapi import Depends, Request

from codehub.errors import UnauthenticatedError
from codehub.http import provide, rules
from codehub.policy import rules as policy_rules
from codehub.policy.model import CookieLogin, Origin, Principal
from codehub.rates import Rates
from codehub.settings import Settings


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
    return replace(caller, request_id=request.state.request_id, address=request.state.address)


async def require_login(request: Request) -> Principal:
    caller = await visitor(request)
    if caller is None:
        raise UnauthenticatedError("log in, or send `Authorization: Bearer …`")
    writes = request.method not in rules.SAFE_METHODS
    policy_rules.require_scope(caller, writes=writes)
    if writes:
        await spend_change(request, caller)
    return caller


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


async def require_local_or_login(request: Request) -> None:
    if not is_local(request):
        await require_login(request)


async def require_operator(request: Request) -> None:
    """This machine, the networks that were named for it, or an admin."""
    networks = provide.get(request, Settings).server.metrics_networks
    if not is_local(request) and not rules.is_within(request.state.address, networks):
        policy_rules.require_admin(await require_login(request))


LoggedIn = Annotated[Principal, Depends(require_login)]
