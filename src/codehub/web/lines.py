"""The lines of the waiting room as teachers and operators see them: numbers, who waits, and letting people in.

Forms are ordinary POSTs answered by 303, as on the dashboard; `static/codehub.js` keeps the pages live.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from codehub.errors import CodeHubError, InvalidRequestError
from codehub.http import access
from codehub.i18n.locales import Locale
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Resource
from codehub.waiting_room.events import EventChange, EventView
from codehub.waiting_room.model import LAB, Member, MemberState
from codehub.waiting_room.view import free, inside, moment
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.player import problem_of
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
PAGE, PEOPLE = 50, 100
LONGEST_NUMBER = 9  # digits
LONGEST_TYPED = 100
SIGNS = {
    MemberState.LIVE: ("running", "●"),
    MemberState.SILENT: ("stored", "◌"),
    MemberState.OFFERED: ("moving", "▶"),
    MemberState.PASSED: ("new", "↷"),
    MemberState.UNCHECKED: ("asleep", "☾"),
}


@dataclass(frozen=True)
class Line:
    """An event in words."""

    id: str
    owner: str | None
    is_lab: bool
    badge: str
    sign: str
    state: str
    paused: bool
    draining: bool
    opens: bool  # later
    waiting: int
    here: int  # of those who wait
    offered: int
    inside: int
    capacity: int | None
    places: str
    free: int | None
    rate: str | None  # not known


def line_of(view: EventView, locale: Locale, now: datetime, called: Mapping[str, str] | None = None) -> Line:
    """`called`: what pages show for its owner's name."""
    event = view.event
    owner = (called or {}).get(event.owner, event.owner) if event.owner else None
    opens = event.opens_at is not None and event.opens_at > now
    badge, sign, states = "running", "●", []
    if event.draining:
        badge, sign = "stored", "▣"
        states = [locale.say("line_draining")]
    if opens and event.opens_at:
        badge, sign = "new", "○"
        states = [locale.say("line_before", time=locale.time(event.opens_at, now)), *states]
    if event.paused:
        badge, sign = "asleep", "☾"
        states = [locale.say("line_paused"), *states]
    rate = view.measured_rate
    return Line(
        event.id,
        owner,
        event.id == LAB,
        badge,
        sign,
        " · ".join(states) or locale.say("line_open_now"),
        event.paused,
        event.draining,
        opens,
        view.line.waiting if view.line else 0,
        view.line.waiting - view.line.silent if view.line else 0,
        view.used.offered,
        inside(view),
        view.capacity,
        locale.say("line_no_limit") if view.capacity is None else str(view.capacity),
        free(view),
        None if rate is None else locale.say("line_rate_value", n=f"{rate:.1f}"),
    )


@dataclass(frozen=True)
class Person:
    position: int
    name: str | None
    state: str
    badge: str
    sign: str
    since: str


def person_of(member: Member, called: Mapping[str, str], locale: Locale, now: datetime) -> Person:
    badge, sign = SIGNS[member.state]
    joined = None if member.joined_ms is None else moment(member.joined_ms)
    name = called.get(member.name, member.name) if member.name else None
    return Person(member.position, name, member.state, badge, sign, locale.time(joined, now) if joined else "")


@router.get("/lines")
async def show_all(request: Request, caller: Annotated[Principal, may(Action.EVENT_LIST)]) -> Response:
    services, locale = services_of(request), locale_for(request)
    now = services.clock.now()
    cursor = request.query_params.get("cursor", "")
    found = await services.waiting_events.page(caller, after=cursor, limit=PAGE + 1)
    views = [await services.waiting_events.get(caller, event.id) for event in found[:PAGE]]
    called = await services.people.called({view.event.owner for view in views if view.event.owner})
    return render(
        request,
        "lines.html",
        caller=caller,
        lines=[line_of(view, locale, now, called) for view in views],
        cursor=found[PAGE - 1].id if len(found) > PAGE else None,
        may_make=policy.allows(caller, Action.EVENT_CREATE),
        problem=problem_of(request, request.query_params.get("problem")),
        typed={name: request.query_params.get(name, "")[:LONGEST_TYPED] for name in ("id", "capacity")},
    )


@router.get("/lines/{id}")
async def show_one(request: Request, caller: Annotated[Principal, may(Action.EVENT_SEE)], id: str) -> Response:  # noqa: A002
    services, locale = services_of(request), locale_for(request)
    now, start = services.clock.now(), _number(request.query_params.get("start", "")) or 0
    view = await services.waiting_events.get(caller, id)
    resource = Resource(id=id, owner=view.event.owner)
    members = None
    if policy.allows(caller, Action.EVENT_LINE, resource):
        members = await services.waiting_events.line(caller, id, start=start, limit=PEOPLE + 1)
    called = await services.people.called({m.name for m in members or () if m.name})
    return render(
        request,
        "line.html",
        caller=caller,
        l=line_of(view, locale, now),
        members=None if members is None else [person_of(m, called, locale, now) for m in members[:PEOPLE]],
        more=start + PEOPLE if members and len(members) > PEOPLE else None,
        may_change=policy.allows(caller, Action.EVENT_CHANGE, resource),
        link=f"{access.base_url(request)}/wait/{id}",
        problem=problem_of(request, request.query_params.get("problem")),
    )


@router.post("/lines")
async def make(request: Request, caller: Annotated[Principal, may(Action.EVENT_CREATE)], form: Posted) -> Response:
    id_ = form.get("id", "").strip()
    try:
        await services_of(request).waiting_events.put(caller, id_, EventChange(capacity=_capacity(form)), as_new=True)
    except CodeHubError as e:
        typed = {"id": id_[:LONGEST_TYPED], "capacity": form.get("capacity", "")[:LONGEST_TYPED]}
        return back("/lines", problem=_code(e), **typed)
    return back(f"/lines/{id_}")


OPEN = EventChange(paused=False, draining=False, opens_at=None)
VERBS: Mapping[str, EventChange] = {
    "open": OPEN,
    "resume": EventChange(paused=False),  # what else was chosen stays
    "pause": EventChange(paused=True),
    "drain": EventChange(draining=True),
}


@router.post("/lines/{id}/{verb}")
async def change(
    request: Request,
    caller: Annotated[Principal, may(Action.EVENT_CHANGE)],
    id: str,  # noqa: A002
    verb: str,
    form: Posted,
) -> Response:
    if verb not in {*VERBS, "capacity"}:
        raise HTTPException(404)
    events = services_of(request).waiting_events
    try:
        await events.get(caller, id)  # a form changes what is there, and makes nothing
        wanted = EventChange(capacity=_capacity(form)) if verb == "capacity" else VERBS[verb]
        await events.put(caller, id, wanted)
    except CodeHubError as e:
        return back(f"/lines/{id}", problem=_code(e))
    return back(f"/lines/{id}")


def _capacity(form: Form) -> int:
    found = _number(form.get("capacity", ""))
    if found is None:
        raise InvalidRequestError("must be a whole number", field="capacity")
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def _code(error: CodeHubError) -> str:
    """What `refused_…` of the texts is about: the wrong field where there is one."""
    errors = error.extra.get("errors") or [{"field": ""}]
    fields = {"capacity": "LINE_CAPACITY", "id": "LINE_NAME", "event_id": "LINE_NAME"}
    return fields.get(errors[0]["field"], error.code)
