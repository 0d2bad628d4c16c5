"""The waiting page of an event, `/wait/{event}`, and its forms: join, enter, leave, give the place back.

Complete without JavaScript: the page loads itself again, which is the heartbeat, and every form is a POST answered by
303. `static/waiting.js` makes it live. Nothing is done by opening it, but for one case: the page that says "all places
are taken" stands on a workspace's own origin, from where no form reaches us; its link carries a ticket, signed for its
person, and opening that is the click that joins.
"""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from codehub.errors import CodeHubError
from codehub.http import rules as http_rules
from codehub.http.access import spend_change
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.waiting_room.errors import EventNotFoundError
from codehub.waiting_room.model import LAB, State
from codehub.waiting_room.service import Reservation
from codehub.web import waiting_memory as memory
from codehub.web import waiting_view
from codehub.web.forms import Posted, back
from codehub.web.page_access import may
from codehub.web.rendering import render
from codehub.web.services import services_of
from codehub.web.waiting_memory import Kept, Want
from codehub.web.waiting_tickets import WaitTickets
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace

router = APIRouter(include_in_schema=False)
Joins = Annotated[Principal, may(Action.QUEUE_JOIN)]


def page_of(event: str) -> str:
    return f"/wait/{event}"


@router.get("/wait/{event}")
async def show(request: Request, caller: Joins, event: str) -> Response:
    kept = memory.read(request, caller, event)
    asked = Want.of(request.query_params)
    if event == LAB and not kept.token and _brings_ticket(request, caller, asked):
        await spend_change(request, caller)
        return await _join(request, caller, event, asked)
    want = asked if asked.parts else kept.want
    try:
        view = await waiting_view.Reader(request, caller, event).view(kept, want)
    except EventNotFoundError:
        return render(request, "wait_missing.html", 404, caller=caller)
    response = render(request, "wait.html", caller=caller, v=view)
    if view.token and view.token != kept.token:  # another token of this person is the one that counts
        memory.write(request, response, caller, event, Kept(view.token, kept.since, kept.want))
    return response


def _brings_ticket(request: Request, caller: Principal, want: Want) -> bool:
    """A person's own click, not a preview of the link."""
    if request.state.head or http_rules.looks_ahead(request.headers):
        return False
    services = services_of(request)
    tickets = WaitTickets(services.settings.auth.secret_key or "", services.clock)
    return tickets.is_good(request.query_params.get("ticket", ""), caller.name, want.workspace)


@router.post("/wait/{event}/join")
async def join(request: Request, caller: Joins, event: str, form: Posted) -> Response:
    """Also again, after having been passed over: the same place."""
    asked = Want.of(form)
    return await _join(request, caller, event, asked if asked.parts else memory.read(request, caller, event).want)


async def _join(request: Request, caller: Principal, event: str, want: Want) -> Response:
    kept = memory.read(request, caller, event)
    response = back(page_of(event))
    try:
        ticket = await services_of(request).waiting_room.join(caller, event)
    except EventNotFoundError:
        return response  # which says so
    except CodeHubError as e:
        told = None if e.code == "ALREADY_ADMITTED" else e.code
        response = back(page_of(event), problem=told)
        memory.write(request, response, caller, event, Kept(want=want))
        return response
    since = kept.since if kept.token == ticket.token else ticket.status.logn
    memory.write(request, response, caller, event, Kept(ticket.token, since, want))
    return response


@router.post("/wait/{event}/enter")
async def enter(request: Request, caller: Joins, event: str) -> Response:
    """And open what the place is for."""
    kept = memory.read(request, caller, event)
    try:
        reservation = await services_of(request).waiting_room.enter(kept.token)
    except CodeHubError as e:
        return back(page_of(event), problem=None if e.code == "TOKEN_EXPIRED" else e.code)
    return await _open(request, caller, memory.without_token(kept), reservation)


@router.post("/wait/{event}/open")
async def open_wanted(request: Request, caller: Joins, event: str) -> Response:
    """With a place that one has already."""
    kept = memory.read(request, caller, event)
    try:
        held = await services_of(request).waiting_room.place(caller, event)
    except CodeHubError:
        return back(page_of(event))
    return await _open(request, caller, kept, held)


async def _open(request: Request, caller: Principal, kept: Kept, place: Reservation) -> Response:
    """What was made for the place is what this page is about from now on, should one come back to it."""
    event = place.event_id
    try:
        opened = await _start(request, caller, kept.want, place)
    except CodeHubError as e:
        want = kept.want
        at_fault = f"/sessions/{want.session}?run={want.run}&fence={want.fence}" if want.session else page_of(event)
        response = back(at_fault, problem=e.code)
    else:
        response = RedirectResponse(f"/open/{opened}", 303) if opened else back(page_of(event))
        kept = replace(kept, want=Want(workspace=opened)) if opened else kept
    memory.write(request, response, caller, event, kept)
    return response


async def _start(request: Request, caller: Principal, want: Want, place: Reservation) -> str:
    """The workspace's id; nothing where the place is for nothing that this platform opens."""
    services = services_of(request)
    token = place.reservation_token if place.state is State.RESERVED else None  # else it is in use already
    if want.workspace:
        started = services.workspaces.request(caller, want.workspace, Desired.RUNNING, reservation_token=token)
        return admitted(await started)[0].id
    if want.session:
        return (await services.practice.open(caller, want.run, int(want.fence))).workspace.id
    if want.template:
        new = NewWorkspace(
            want.name,
            want.template,
            reservation_token=token,
            git_url=want.git_url or None,
            git_branch=want.git_branch or None,
        )
        return admitted(await services.workspaces.create(caller, new)).id
    return ""


@router.post("/wait/{event}/leave")
async def leave(request: Request, caller: Joins, event: str) -> Response:
    kept = memory.read(request, caller, event)
    try:
        await services_of(request).waiting_room.leave(kept.token)
    except CodeHubError as e:
        if e.status >= 500:
            return back(page_of(event), problem=e.code)
    response = back(page_of(event), done="left")
    memory.write(request, response, caller, event, memory.without_token(kept))
    return response


@router.post("/wait/{event}/back")
async def give_back(
    request: Request, caller: Annotated[Principal, may(Action.QUEUE_GIVE_BACK)], event: str
) -> Response:
    try:
        await services_of(request).waiting_room.give_back(caller, event)
    except CodeHubError as e:
        return back(page_of(event), problem=e.code if e.status >= 500 else None)
    response = back("/")
    memory.forget(request, response, event)
    return response
