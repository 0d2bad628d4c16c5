"""The login travels from the platform's origin to a workspace's own, and becomes a pass there.

Three steps, each a redirect: the workspace's origin gives the browser something to hold (`begin`), the platform gives
the logged-in user a ticket for exactly that browser and workspace (`handover`), the workspace's origin turns it into a
pass (`enter`). A ticket works once, for a minute; a stolen one does not fit another browser.
"""

import re
from dataclasses import replace
from urllib.parse import quote, unquote, urlencode

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from codehub import ids
from codehub.db.redis import FAILURES
from codehub.errors import InvalidRequestError, NotFoundError, UnauthenticatedError, UnavailableError
from codehub.gate import passes
from codehub.gate.passes import TICKET_SECONDS, Pass, Ticket
from codehub.http.access import names, visitor
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web.middleware import policy_in_frame_of
from codehub.web.rendering import render
from codehub.web.services import Services, services_of

router = APIRouter(include_in_schema=False)
NEXT = re.compile(r"/w/[a-z0-9-]{1,63}(/[\x21-\x7e]*)?")
# Pages of ours that a login leads back to, by name: whatever else an address is, it leads nowhere.
PAGES = re.compile(
    r"/(?:learn|lines|classes|account|people|join/[A-Z]{6}|classes/[a-z0-9-]{1,63}(?:/[a-z]{1,20})?|(?:wait|lines)/[A-Za-z0-9_-]{1,64}|(?:courses|plans|sessions|workspaces|open)/[a-z0-9-]{1,63}(?:/log)?)(?:\?[\x21-\x7e]{0,1500})?"
)
NEXT_COOKIE = "codehub-next"  # where a person wanted to go who has to log in first
NEXT_SECONDS = 3600


def host_of(request: Request) -> str:
    return request.headers.get("host", "")


def own_workspace(request: Request) -> str | None:
    """The workspace on whose origin this was asked; None on the platform's."""
    return services_of(request).origins.workspace_of(host_of(request))


def safe_next(path: str | None, id_: str) -> str:
    """Only ever into the workspace at hand."""
    home = f"/w/{id_}/"
    return path if path and NEXT.fullmatch(path) and path.startswith(home) else home


def safe_return(path: str | None, id_: str) -> str:
    """The same, or to the page of ours in which it is shown."""
    frame = f"/open/{id_}"
    return path if path and path.partition("?")[0] == frame and PAGES.fullmatch(path) else safe_next(path, id_)


def wanted(request: Request) -> str:
    path: bytes = request.scope["raw_path"]
    query = request.url.query
    return path.decode("latin-1") + (f"?{query}" if query else "")


def go(url: str) -> RedirectResponse:
    return RedirectResponse(url, 303, {"cache-control": "no-store"})


async def logged_in(request: Request) -> Principal | None:
    """Who this browser belongs to, on the platform's origin; tokens do not open pages."""
    try:
        caller = await visitor(request)
    except UnauthenticatedError:
        return None
    return caller if caller and caller.session_id else None


async def pass_holder(request: Request, id_: str) -> Principal | None:
    """Whose pass for this workspace the browser holds, if it is still good."""
    services = services_of(request)
    name = passes.cookie_name(services.settings, isolated=services.origins.isolated)
    found = await services.access.pass_holder(request.cookies.get(name, ""), id_)
    request.state.reader = found
    return found and replace(found, request_id=request.state.request_id, address=request.state.address)


def give_pass(request: Request, response: Response, given: Pass) -> None:
    services = services_of(request)
    isolated = services.origins.isolated
    name = passes.cookie_name(services.settings, isolated=isolated)
    age = int(given.expires - services.clock.now().timestamp())
    path = "/" if isolated else f"/w/{given.workspace_id}"
    pair = f"{name}={services.passes.write(given)}"
    if given.frame:  # kept apart from other sites that show it, and from a tab of its own
        cookie = f"{pair}; Path={path}; HttpOnly; SameSite=None; Secure; Partitioned; Max-Age={age}"
        response.headers.append("set-cookie", cookie)
    else:
        _set_cookie(request, response, pair, age, path)


def give_worker_pass(request: Request, response: Response, given: Pass) -> None:
    """For the script of a service worker in a frame, which a browser asks for without the cookies of that frame."""
    services = services_of(request)
    name, age = passes.worker_cookie_name(services.settings), int(given.expires - services.clock.now().timestamp())
    pair = f"{name}={services.passes.write_for_worker(given)}"
    response.headers.append("set-cookie", f"{pair}; Path=/; HttpOnly; SameSite=None; Secure; Max-Age={age}")


def was_told(request: Request, session_id: str) -> bool:
    return services_of(request).passes.was_told(request.cookies.get(passes.TOLD_COOKIE, ""), session_id)


def note_told(request: Request, response: Response, session_id: str) -> None:
    """For as long as they stay logged in."""
    services = services_of(request)
    pair = f"{passes.TOLD_COOKIE}={services.passes.told(session_id)}"
    _set_cookie(request, response, pair, services.settings.auth.session_seconds, "/w")


def to_login(request: Request, next_: str) -> Response:
    """To the platform's front page, which says how to log in; the way back is remembered."""
    response = go("/?" + urlencode({"next": next_}))
    _set_cookie(request, response, f"{NEXT_COOKIE}={quote(next_)}", NEXT_SECONDS, "/")
    return response


def to_page_after_login(request: Request, path: str) -> Response:
    """To the front page, which says how to log in; then to one of our pages."""
    response = go("/")
    if PAGES.fullmatch(path):
        _set_cookie(request, response, f"{NEXT_COOKIE}={quote(path)}", NEXT_SECONDS, "/")
    return response


def page_wanted(request: Request) -> str | None:
    """The cookie that remembers the page that was asked for until they have logged in; None: it is none to return to.

    Our script asks for its page again and again, also after a logout: what the next person at this computer wants is
    not said by that.
    """
    path = wanted(request)
    if request.method not in {"GET", "HEAD"} or "x-requested-with" in request.headers or not PAGES.fullmatch(path):
        return None
    return _cookie(request, f"{NEXT_COOKIE}={quote(path)}", NEXT_SECONDS, "/")


def after_login(request: Request) -> Response:
    """To where they wanted to go before they had to log in."""
    next_ = unquote(request.cookies.get(NEXT_COOKIE, ""))
    response = go(next_ if NEXT.fullmatch(next_) or PAGES.fullmatch(next_) else "/")
    forget_next(request, response)
    return response


def forget_next(request: Request, response: Response) -> None:
    if NEXT_COOKIE in request.cookies:
        _set_cookie(request, response, f"{NEXT_COOKIE}=", 0, "/")


def begin_url(next_: str, came_from: str = "") -> str:
    query = {"next": next_, **({"from": came_from} if came_from else {})}
    return "/_codehub/begin?" + urlencode(query)


@router.get("/_codehub/begin", dependencies=[names(Action.PUBLIC_HANDOVER)])
async def begin(request: Request) -> Response:
    services, id_ = services_of(request), _here(request)
    nonce = ids.new_secret()
    query = request.query_params
    platform = services.origins.of_platform(host_of(request), query.get("from", ""))
    state = {"workspace": id_, "state": passes.state_of(nonce), "next": safe_next(query.get("next"), id_)}
    response = go(f"{platform}/_codehub/handover?{urlencode(state)}")
    _set_cookie(request, response, f"{passes.state_cookie_name(services.settings)}={nonce}", TICKET_SECONDS * 5, "/")
    return response


@router.get("/_codehub/handover", dependencies=[names(Action.WORKSPACE_ENTER)])
async def hand_over(request: Request) -> Response:
    services, query = services_of(request), request.query_params
    id_ = query.get("workspace", "")
    origin = services.origins.of_workspace(id_, host_of(request)) if ids.is_label(id_) else None
    if own_workspace(request) or origin is None:
        raise NotFoundError("there is nothing here")
    next_ = safe_next(query.get("next"), id_)
    caller = await logged_in(request)
    if caller is None or caller.session_id is None:
        return to_login(request, next_)
    given = await services.access.arrive(caller, id_)
    ticket = services.passes.ticket(given, query.get("state", ""), services.clock.now().timestamp())
    return go(f"{origin}/_codehub/enter?{urlencode({'ticket': ticket, 'next': next_})}")


@router.get("/_codehub/enter", dependencies=[names(Action.PUBLIC_HANDOVER)])
async def enter(request: Request) -> Response:
    services, id_ = services_of(request), _here(request)
    ticket = services.passes.read_ticket(request.query_params.get("ticket", ""), services.clock.now().timestamp())
    next_ = safe_next(request.query_params.get("next"), id_)
    fits = ticket is not None and ticket.given.workspace_id == id_ and _is_for_this_browser(request, ticket)
    if ticket is None or not fits or not await _first_use(services, ticket.id):
        if await pass_holder(request, id_):
            return go(next_)  # a double click, or the back button, after it had worked
        if is_framed(request):
            return go(next_)  # which says so in the frame
        raise InvalidRequestError("this ticket is over: open the workspace from the dashboard again", field="ticket")
    needs_worker = bool(ticket.given.frame) and "worker" in request.query_params
    response = _ask_for_worker(request, ticket.given.frame, next_) if needs_worker else go(next_)
    give_pass(request, response, ticket.given)
    if needs_worker:
        give_worker_pass(request, response, ticket.given)
    if not ticket.given.frame:
        _set_cookie(request, response, f"{passes.state_cookie_name(services.settings)}=", 0, "/")
    return response


def _ask_for_worker(request: Request, frame: str, next_: str) -> Response:
    """Before an IDE that needs a service worker: a page that finds out whether this browser gives one to a frame."""
    page = render(request, "frame_check.html", next=next_, origin=frame)
    page.headers["content-security-policy"] = policy_in_frame_of(frame)
    return page


def is_framed(request: Request) -> bool:
    """Does the browser say that this page is for a frame?"""
    return request.headers.get("sec-fetch-dest") == "iframe"


def _is_for_this_browser(request: Request, ticket: Ticket) -> bool:
    """By what the browser holds; or in the frame of the page that the ticket was made for, which only it can say."""
    if ticket.given.frame:
        came_from = request.headers.get("referer", "").rstrip("/")
        return ticket.state == passes.IN_FRAME and is_framed(request) and came_from == ticket.given.frame
    held = request.cookies.get(passes.state_cookie_name(services_of(request).settings), "")
    return ticket.state == passes.state_of(held)


async def _first_use(services: Services, ticket_id: str) -> bool:
    try:
        seconds = TICKET_SECONDS + 5
        return bool(await services.redis.set(f"codehub:ticket:{ticket_id}", "1", nx=True, ex=seconds))
    except FAILURES as e:
        raise UnavailableError(f"Redis does not answer: {e}") from e


def _here(request: Request) -> str:
    id_ = own_workspace(request)
    if id_ is None or not ids.is_label(id_):
        raise NotFoundError("there is nothing here")
    return id_


def _set_cookie(request: Request, response: Response, pair: str, age: int, path: str) -> None:
    response.headers.append("set-cookie", _cookie(request, pair, age, path))


def _cookie(request: Request, pair: str, age: int, path: str) -> str:
    secure = "; Secure" if services_of(request).settings.secure else ""
    return f"{pair}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={age}{secure}"
