"""Logging in at a school's or company's own login, and coming back.

A button is a form of ours; its answer leads to a page that goes on to the provider by itself. Without that page in
between, `form-action` of our pages would have to name every place that a provider may lead to. The provider leads back
to the callback's address, each provider to its own.
"""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from codehub import ids
from codehub.errors import CodeHubError, RateLimitError
from codehub.http.access import base_url, names, set_cookie
from codehub.openid.errors import LoginRefusedError, ProviderAwayError, ProviderRefusedError
from codehub.openid.flows import SECONDS
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.settings import Settings
from codehub.web import handover
from codehub.web.account_sections import back_to
from codehub.web.forms import Posted
from codehub.web.login import Visitor, browser_of
from codehub.web.page_access import may
from codehub.web.rendering import render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
# Logins that may begin from one address in a minute: a school has one address, and all come at nine.
BEGUN_PER_MINUTE = 600


def browser_cookie_name(settings: Settings) -> str:
    """`__Host-`: another host of the same domain, such as a workspace's, cannot put its own in place of it."""
    return "__Host-codehub-provider" if settings.secure else "codehub-provider"


@router.post("/do/login/{provider}", dependencies=[names(Action.PUBLIC_LOGIN)])
async def begin(request: Request, provider: str, caller: Visitor) -> Response:
    try:
        return await _begin(request, provider, caller, link=False)
    except (ProviderAwayError, ProviderRefusedError, RateLimitError):
        return RedirectResponse("/login?" + urlencode({"away": provider}), 303)


@router.post("/do/account/providers/{provider}/link")
async def begin_linking(
    request: Request, provider: str, caller: Annotated[Principal, may(Action.IDENTITY_LINK)]
) -> Response:
    try:
        return await _begin(request, provider, caller, link=True)
    except (ProviderAwayError, ProviderRefusedError, RateLimitError):
        return back_to("providers", problem="PROVIDER_AWAY")


async def _begin(request: Request, provider: str, caller: Principal | None, *, link: bool) -> Response:
    services = services_of(request)
    await services.rates.spend("provider-login", request.state.address or "", BEGUN_PER_MINUTE)
    openid, name = services.openid, browser_cookie_name(services.settings)
    secret = openid.flows.browser_secret(request.cookies.get(name, "")) or ids.new_secret()
    back = f"{base_url(request)}/login/{provider}/callback"
    flow = await openid.begin(provider, secret, back, caller, link=link)
    response = RedirectResponse(f"/login/{provider}/leave?{urlencode({'state': flow.state})}", 303)
    secure = services.settings.secure
    cookie = openid.flows.browser_cookie(secret)
    response.set_cookie(name, cookie, max_age=SECONDS, path="/", secure=secure, httponly=True, samesite="lax")
    return response


@router.get("/login/{provider}/leave", dependencies=[names(Action.PUBLIC_LOGIN)])
async def leave(request: Request, provider: str) -> Response:
    """Goes on by itself; for those whose browser does not, there is a link."""
    openid = services_of(request).openid
    try:
        there, url = await openid.leave(provider, request.query_params.get("state", ""), _held(request))
    except LoginRefusedError as e:
        return _refused(request, provider, e)
    return render(request, "provider_leave.html", url=url, title=there.shown, out=False)


@router.get("/login/{provider}/callback", dependencies=[names(Action.PUBLIC_LOGIN)])
async def come_back(request: Request, provider: str, caller: Visitor) -> Response:
    openid = services_of(request).openid
    browser = browser_of(request, caller if caller and caller.session_id else None)
    try:
        arrival = await openid.finish(provider, dict(request.query_params), _held(request), browser)
    except LoginRefusedError as e:
        return _refused(request, provider, e, caller)
    if arrival.proposal:
        return RedirectResponse(f"/account/link?{urlencode({'login': arrival.proposal})}", 303)
    set_cookie(request, arrival.cookie)
    return handover.after_login(request)


@router.get("/account/link")
async def ask_to_link(request: Request, caller: Annotated[Principal, may(Action.IDENTITY_LINK)]) -> Response:
    """Whose login it is that will open this account: at a shared computer it may be another person's."""
    openid, secret = services_of(request).openid, request.query_params.get("login", "")
    try:
        subject = await openid.proposed(caller, secret)
    except LoginRefusedError:
        return back_to("providers", problem="LINK_OVER")
    title = openid.provider(subject.provider).shown
    return render(request, "provider_link.html", caller=caller, subject=subject, title=title, secret=secret)


@router.post("/do/account/link")
async def link(request: Request, caller: Annotated[Principal, may(Action.IDENTITY_LINK)], form: Posted) -> Response:
    try:
        await services_of(request).openid.link(caller, form.get("login", ""))
    except LoginRefusedError as e:
        return back_to("providers", problem="LINK_TAKEN" if e.kind == "taken" else "LINK_OVER")
    return back_to("providers", done="LINKED")


@router.post("/do/account/providers/{identity_id}/unlink")
async def unlink(
    request: Request, identity_id: str, caller: Annotated[Principal, may(Action.IDENTITY_REMOVE)]
) -> Response:
    try:
        await services_of(request).openid.unlink(caller, caller.name, identity_id)
    except CodeHubError as e:
        return back_to("providers", problem=e)
    return back_to("providers", done="UNLINKED")


def _held(request: Request) -> str | None:
    services = services_of(request)
    cookie = request.cookies.get(browser_cookie_name(services.settings), "")
    return services.openid.flows.browser_secret(cookie)


def _refused(request: Request, provider: str, error: LoginRefusedError, caller: Principal | None = None) -> Response:
    """A page that says what to do; who is logged in already, after a double click or a reload, is where they wanted."""
    links = bool(error.extra.get("links"))
    if error.kind == "over" and caller and caller.session_id:
        return back_to("providers", problem="LINK_OVER") if links else handover.after_login(request)
    if error.kind == "away" and not links:
        return RedirectResponse("/login?" + urlencode({"away": provider}), 303)
    return render(
        request,
        "provider_refused.html",
        error.status,
        kind=error.kind,
        title=services_of(request).openid.provider(provider).shown,
        links=links,
        name=error.extra.get("name") or "",
        caller=caller,
        request_id=request.state.request_id,
    )
