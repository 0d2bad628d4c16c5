"""Turns a request's cookie or bearer token into a `Caller`: the dependency that every API route names."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Request

from codehub.audit.model import Origin
from codehub.auth import rules
from codehub.auth.credentials import cookie_name
from codehub.auth.model import Caller
from codehub.errors import UnauthenticatedError
from codehub.settings import Settings
from codehub.web import rules as request_rules
from codehub.web.middleware import SAFE_METHODS
from codehub.web.rendering import is_local
from codehub.wiring import Services


def set_cookie(request: Request, settings: Settings, value: str) -> None:
    """Let the answer carry the session cookie, whatever the answer is; an empty value takes it away."""
    age = settings.auth.session_seconds if value else 0
    flags = "; Secure" if settings.secure else ""
    request.state.cookie = f"{cookie_name(settings)}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{flags}"


def origin_of(request: Request) -> Origin:
    return Origin("nobody", request.state.request_id, request.state.address)


async def visitor(request: Request) -> Caller | None:
    """Who is asking, if they say so. A bearer token goes before a cookie; a bad one is refused, not ignored."""
    services: Services = request.app.state.services
    authorization = request.headers.get("authorization")
    cookie = request.cookies.get(cookie_name(services.settings))
    if authorization is not None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise UnauthenticatedError("only `Authorization: Bearer` is understood")
        caller = await services.credentials.by_token(token.strip())
    elif cookie:
        caller, new_cookie = await services.credentials.by_cookie(cookie, origin_of(request))
        if new_cookie:
            set_cookie(request, services.settings, new_cookie)
    else:
        return None
    return replace(caller, request_id=request.state.request_id, address=request.state.address)


async def require_login(request: Request) -> Caller:
    caller = await visitor(request)
    if caller is None:
        raise UnauthenticatedError("log in, or send `Authorization: Bearer …`")
    writes = request.method not in SAFE_METHODS
    rules.require_scope(caller, writes=writes)
    if writes:
        await spend_change(request, caller)
    return caller


async def spend_change(request: Request, caller: Caller) -> None:
    services: Services = request.app.state.services
    most = rules.allowance(caller, services.settings.limits.max_changes_per_minute)
    await services.rates.spend("change", caller.name, most)


async def spend_creation(request: Request, caller: Caller, kind: str) -> None:
    """`kind`: of what is made."""
    services: Services = request.app.state.services
    most = rules.allowance(caller, services.settings.limits.max_creations_per_minute)
    await services.rates.spend(kind, caller.name, most)


async def require_local_or_login(request: Request) -> None:
    if not is_local(request):
        await require_login(request)


async def require_operator(request: Request) -> None:
    """This machine, the networks that were named for it, or an admin."""
    networks = request.app.state.services.settings.server.metrics_networks
    if not is_local(request) and not request_rules.is_within(request.state.address, networks):
        rules.require_admin(await require_login(request))


LoggedIn = Annotated[Caller, Depends(require_login)]
