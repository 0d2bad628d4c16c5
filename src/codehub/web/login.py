"""Logging in by link, and out.

Opening a link changes nothing: it shows whose it is and a button. So a mail scanner that follows every link, a preview
or another site's page can neither use it up nor log a person in or out; only the button's POST does, which has to come
from our own page (`middleware.SameOriginWrites`). A program sends the same POST to the same address, without a body.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import RedirectResponse, Response

from codehub.errors import UnauthenticatedError
from codehub.http.access import names, origin_of, set_cookie, visitor
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import handover
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
    return await _ask(request, secret, caller) or _over(request, caller)


@router.post("/login/{secret}", dependencies=[names(Action.PUBLIC_LOGIN)])
async def log_in(request: Request, secret: str, caller: Visitor, form: Posted) -> Response:
    services = services_of(request)
    # The page named the session that ends. One that began since then is not ended unasked.
    if _session_of(caller) != form.get("instead_of", "") and (page := await _ask(request, secret, caller, 409)):
        return page
    agent = request.headers.get("user-agent", "")
    try:
        cookie = await services.people.log_in(secret, agent, origin_of(request), instead_of=caller)
    except UnauthenticatedError:
        return _over(request, caller)
    set_cookie(request, cookie)
    return handover.after_login(request)


async def _ask(request: Request, secret: str, caller: Principal | None, status: int = 200) -> Response | None:
    """None: the link is no good any more."""
    name = await services_of(request).people.owner_of_link(secret)
    if name is None:
        return None
    return render(request, "link.html", status, secret=secret, name=name, before=_session_of(caller))


def _session_of(caller: Principal | None) -> str:
    """The person who is logged in with this browser; a program's token is not a login that could end here."""
    return caller.name if caller and caller.session_id else ""


def _over(request: Request, caller: Principal | None) -> Response:
    if caller:  # a double click, or the link opened once more, after it had worked
        return RedirectResponse("/", 303)
    return render(request, "link_used.html", 410)


@router.post("/logout", dependencies=[names(Action.PUBLIC_LOGIN)])
async def log_out(request: Request, caller: Visitor) -> Response:
    if caller:
        await services_of(request).people.log_out(caller)
    set_cookie(request, "")
    return RedirectResponse("/", 303)
