"""The line for a place in the lab, from within a session's page: join, take the place, leave; LEARN and CHECK go on.

Every form is a POST answered by 303 to the session's page, which shows the line in a bar (`player_line_view`). Taking
the place starts the run's workspace in the same request: from then on the running workspace is what holds it. The bar
alone is a page of its own, for browsers without JavaScript: it stands in a frame and loads itself again, which is the
heartbeat, while the page around it stands still and keeps what is typed.
"""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.errors import CodeHubError
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.waiting_room.errors import AlreadyAdmittedError, TokenExpiredError
from codehub.waiting_room.model import LAB
from codehub.web import player_line_view, player_view
from codehub.web import waiting_memory as memory
from codehub.web.forms import NO_PLACE, Form, Posted, back, code_of
from codehub.web.middleware import policy_in_frame_of
from codehub.web.page_access import may
from codehub.web.rendering import render
from codehub.web.services import services_of
from codehub.web.waiting_memory import Kept, Want

router = APIRouter(include_in_schema=False)
LONGEST = 100  # characters of what names a run
FRAMED = {
    "content-security-policy": policy_in_frame_of("'self'"),
    "x-frame-options": "SAMEORIGIN",
}


@router.get("/sessions/{id}/line")
async def show(request: Request, caller: Annotated[Principal, may(Action.SESSION_SEE)], id: str) -> Response:  # noqa: A002
    view = await player_view.Reader(request, caller).view(id)
    response = render(request, "session_line.html", caller=caller, v=view, refresh=player_line_view.RELOAD_SECONDS)
    response.headers.update(FRAMED)
    memory.follow(request, response, caller, LAB, view.line.token if view.line else "")
    return response


@router.post("/sessions/{id}/line/join")
async def join(
    request: Request,
    caller: Annotated[Principal, may(Action.QUEUE_JOIN)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """Also again, after having been passed over: the same place."""
    page, kept = _page(id, form), memory.read(request, caller, LAB)
    try:
        ticket = await services_of(request).waiting_room.join(caller, LAB)
    except AlreadyAdmittedError:
        return back(page)  # which shows the place
    except CodeHubError as e:
        return back(page, problem=code_of(e), at="line")
    response = back(page)
    since = kept.since if kept.token == ticket.token else ticket.status.logn
    want = Want(session=id[:LONGEST], run=_part(form, "run"), fence=_part(form, "fence"))
    memory.write(request, response, caller, LAB, Kept(ticket.token, since, want))
    return response


@router.post("/sessions/{id}/line/enter")
async def enter(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_WRITE)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """Take the place, and start the run's workspace, which holds it. Also with a place that one has already."""
    services, page = services_of(request), _page(id, form)
    kept, expired = memory.read(request, caller, LAB), False
    try:
        if kept.token:
            await services.waiting_room.enter(kept.token)
    except TokenExpiredError:
        expired = True  # perhaps because another page of theirs took the place: opening says whether there is one
    except CodeHubError as e:
        return back(page, problem=code_of(e), at="line")
    try:
        fence = _part(form, "fence")
        await services.practice.open(caller, _part(form, "run"), int(fence) if fence.isdecimal() else 0)
        response = back(page)
    except CodeHubError as e:
        if expired and code_of(e) == NO_PLACE:
            return back(page)  # which says that the place in line is gone
        response = back(page, problem=code_of(e), at="line")
    memory.write(request, response, caller, LAB, memory.without_token(kept))
    return response


@router.post("/sessions/{id}/line/leave")
async def leave(
    request: Request,
    caller: Annotated[Principal, may(Action.QUEUE_JOIN)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """Also what one had and lost: the page then says no more of it."""
    page, kept = _page(id, form), memory.read(request, caller, LAB)
    try:
        await services_of(request).waiting_room.leave(kept.token)
    except TokenExpiredError:
        pass
    except CodeHubError as e:
        return back(page, problem=code_of(e), at="line")
    response = back(page)
    memory.write(request, response, caller, LAB, memory.without_token(kept))
    return response


def _page(id_: str, form: Form) -> str:
    return f"/sessions/{id_}?{urlencode({'run': _part(form, 'run'), 'fence': _part(form, 'fence')})}"


def _part(form: Form, name: str) -> str:
    return form.get(name, "")[:LONGEST]
