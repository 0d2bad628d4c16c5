"""`/open/ID`: a workspace inside a page of ours, a thin bar above the IDE, which stands in a frame on its own origin.

So it is we who say that it is about to sleep, and that it sleeps, and not the IDE's own error message. What is on its
way is shown at once, covered: meanwhile the frame gets its pass and asks for the IDE, which the front door holds until
it answers, so that nothing is left to do then. What needs a decision gets the pages of `entry`, here as well, and leads
back. Where a browser keeps no cookies in frames, or workspaces have no origin of their own, this leads to `/w/ID/`, as
it always was. `static/codehub.js` asks for this page again to keep the bar true: that is a look, which wakes nothing
and is no visit. `static/frame.js` asks for it when a person wakes the workspace beside instructions, which stay where
they are: that is one.
"""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.errors import ForbiddenError, NotFoundError
from codehub.gate.access import Visit
from codehub.gate.passes import IN_FRAME
from codehub.http import rules
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import entry, entry_pages, frame_view, presentation
from codehub.web.handover import go, host_of, safe_next
from codehub.web.middleware import SECURITY_HEADERS
from codehub.web.page_access import may
from codehub.web.rendering import render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
VISITS = "visit"  # in a header that only our own pages can send
POLICY = SECURITY_HEADERS["content-security-policy"]


@router.get("/open/{id}")
async def show(request: Request, caller: Annotated[Principal, may(Action.WORKSPACE_ENTER)], id: str) -> Response:  # noqa: A002
    services, query = services_of(request), request.query_params
    next_ = safe_next(query.get("next"), id)
    if services.origins.frame(host_of(request)) is None:
        return go(next_)
    try:
        visit = await services.access.visit(caller, id)
    except (NotFoundError, ForbiddenError) as e:
        return entry.refuse(request, caller, e)
    asks = request.headers.get("x-requested-with")
    asked = asks == VISITS
    looks = not asked and (asks is not None or request.state.head or rules.looks_ahead(request.headers))
    rises: entry_pages.Waking | None = None
    if not looks and not frame_view.is_open(visit.workspace):
        found = await entry.wake(request, visit, caller, asked=asked)
        if isinstance(found, Response):
            return found
        if not presentation.is_rising(found.workspace):  # it has to fall asleep first: coming again then wakes it
            return entry_pages.waking(request, found, home_url="/")
        rises, visit = found, visit._replace(workspace=found.workspace)
    elif frame_view.cover(visit.workspace) is frame_view.Cover.RISING:
        rises = await entry.how_it_wakes(request, visit, caller)
    address = "" if looks else await _first_address(request, caller, visit, next_)
    page = render(
        request,
        "frame.html",
        200 if looks or rises is None else 503,
        caller=caller,
        rises=entry_pages.shown(request, rises) if rises else None,
        address=address,
        own_tab=next_,
        panel=frame_view.panel(query),
        again=f"/open/{id}{frame_view.kept(query)}",
        problem=query.get("problem"),
        **frame_view.shown(request, caller, visit),
    )
    origin = services.origins.of_workspace(id, host_of(request))
    page.headers["content-security-policy"] = f"{POLICY} {services.origins.sources}; frame-src 'self' {origin}"
    return page


async def _first_address(request: Request, caller: Principal, visit: Visit, next_: str) -> str:
    """Of the frame: with a ticket that fits nowhere else."""
    services, id_ = services_of(request), visit.workspace.id
    given = await services.access.arrive(caller, id_)
    given = given._replace(frame=services.origins.frame(host_of(request)) or "")
    ticket = services.passes.ticket(given, IN_FRAME, services.clock.now().timestamp())
    origin = services.origins.of_workspace(id_, host_of(request))
    template = services.templates.find(visit.workspace.template)
    worker = {"worker": "1"} if template and template.service_worker else {}
    return f"{origin}/_codehub/enter?{urlencode({'ticket': ticket, 'next': next_, **worker})}"
