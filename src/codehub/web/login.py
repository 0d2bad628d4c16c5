"""Logging in by link, and out.

Opening a link changes nothing: it shows whose it is and a button. So a mail scanner that follows every link, a preview
or another site's page can neither use it up nor log a person in or out; only the button's POST does, which has to come
from our own page (`middleware.SameOriginWrites`). A program sends the same POST to the same address, without a body.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import RedirectResponse, Response

from codehub.auth.logins import Browser
from codehub.errors import UnauthenticatedError
from codehub.http.access import base_url, names, origin_of, set_cookie, visitor
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import first_steps_rules, handover
from codehub.web.account_sections import CHOOSE
from codehub.web.forms import Posted
from codehub.web.rendering import render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)


async def _visitor_or_none(request: Request) -> Principal | None:
    """A page for a person whose session ended is the page for one who is not logged in."""
    try:
        return await visitor(request)
    except UnauthenticatedError:
        return None


Visitor = Annotated[Principal | None, Depends(_visitor_or_none)]


@router.get("/login/{secret}", dependencies=[names(Action.PUBLIC_LOGIN)])
async def show_link(request: Request, secret: str, caller: Visitor) -> Response:
    """Whose link it is, and what the button does to the login this browser has."""
    return await _ask(request, secret, caller) or await _over(request, secret, caller)


@router.post("/login/{secret}", dependencies=[names(Action.PUBLIC_LOGIN)])
async def log_in(request: Request, secret: str, caller: Visitor, form: Posted) -> Response:
    services = services_of(request)
    # The page named the session that ends. One that began since then is not ended unasked.
    if session_of(caller) != form.get("instead_of", "") and (page := await _ask(request, secret, caller, 409)):
        return page
    name = await services.people.owner_of_link(secret)
    begins = name is not None and await services.first_steps.begin_with(name)
    try:
        cookie = await services.people.log_in(secret, browser_of(request, caller))
    except UnauthenticatedError:
        return await _over(request, secret, caller)
    set_cookie(request, cookie)
    if name and handover.NEXT_COOKIE not in request.cookies:
        if begins:
            return RedirectResponse(first_steps_rules.PAGE, 303)
        if await services.people.should_choose(name):
            return RedirectResponse(CHOOSE, 303)
    return handover.after_login(request)


def browser_of(request: Request, caller: Principal | None) -> Browser:
    """`caller`: whose session this browser has until now."""
    return Browser(request.headers.get("user-agent", ""), origin_of(request), caller)


async def _ask(request: Request, secret: str, caller: Principal | None, status: int = 200) -> Response | None:
    """None: the link is no good any more."""
    name = await services_of(request).people.owner_of_link(secret)
    if name is None:
        return None
    return render(request, "link.html", status, secret=secret, name=name, before=session_of(caller))


def session_of(caller: Principal | None) -> str:
    """The person who is logged in with this browser; a program's token is not a login that could end here."""
    return caller.name if caller and caller.session_id else ""


async def _over(request: Request, secret: str, caller: Principal | None) -> Response:
    """Another person's is said to be over: who opens theirs where a classmate is logged in would take that for it."""
    if caller and await services_of(request).people.is_link_of(caller, secret):
        return RedirectResponse("/", 303)  # a double click, or the link opened once more, after it had worked
    return render(request, "link_used.html", 410, before=session_of(caller))


@router.post("/logout", dependencies=[names(Action.PUBLIC_LOGIN)])
async def log_out(request: Request, caller: Visitor) -> Response:
    """Where the session began at a provider, the answer is a page that goes on to log out there, too."""
    set_cookie(request, "")
    if caller:  # first of all: the provider may take its time, or be away
        await services_of(request).people.log_out(caller)
    there = await services_of(request).openid.logout_url(caller, f"{base_url(request)}/login") if caller else None
    response: Response = RedirectResponse("/", 303)
    if there:
        response = render(request, "provider_leave.html", url=there[1], title=there[0].shown, out=True)
    handover.forget_next(request, response)
    return response
