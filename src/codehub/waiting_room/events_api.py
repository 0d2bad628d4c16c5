"""REST about what people wait for: events with their numbers, who waits, and the place that one has."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from codehub.clock import Clock
from codehub.http import fields, paging, provide
from codehub.http.access import may
from codehub.http.problems import documented_objects
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.waiting_room import rules
from codehub.waiting_room.events import LARGEST, SLOWEST, EventChange, Events, EventView
from codehub.waiting_room.model import Member, MemberState, Order, State
from codehub.waiting_room.service import Reservation, WaitingRoom
from codehub.waiting_room.view import free, inside, moment

router = APIRouter(prefix="/api/v1/queue", tags=["queue"], responses=documented_objects(400, 401, 403, 503))
Id = Annotated[str, Path(description="An event's id.", max_length=200, pattern=fields.NO_NUL, examples=["workshop"])]
PATTERN = "^[A-Za-z0-9_-]{1,64}$"
NewId = Annotated[str, Path(description="An event's id.", pattern=PATTERN, examples=["workshop"])]
IdCursor = Annotated[str | None, Query(pattern=PATTERN, description=paging.ABOUT)]


class EventIn(fields.Body):
    """What is not mentioned stays as it is; a new event needs a capacity."""

    capacity: Annotated[int, fields.Whole] = Field(
        default=0, ge=0, le=LARGEST, strict=True, description="How many may be in at a time.", examples=[20]
    )
    admission_rate: float | None = Field(
        default=None, ge=SLOWEST, le=LARGEST, description="People a minute at most; null: as many as there are places."
    )
    opens_at: fields.Moment | None = Field(default=None, description="When it begins; null: now.")
    order: Order = Field(default=Order.FIFO, description="lottery: who comes before it opens is put in order by lot.")
    place_lease_seconds: Annotated[int, fields.Whole] = Field(default=3600, ge=1, le=30 * 86400, strict=True)
    paused: bool = Field(default=False, strict=True)
    draining: bool = Field(default=False, strict=True, description="Takes nobody new; those in line get in.")

    def change(self) -> EventChange:
        return EventChange(**{name: getattr(self, name) for name in self.model_fields_set})


class EventOut(BaseModel):
    id: str
    owner: str | None = Field(description="Null: the platform's.")
    capacity: int | None = Field(description="Null: no limit.")
    admission_rate: float | None = Field(description="People a minute; null: as many as there are places.")
    opens_at: datetime | None
    order: Order
    place_lease_seconds: int
    paused: bool
    draining: bool
    open: bool = Field(description="Has it begun?")
    waiting: int = Field(description="In line.")
    live: int = Field(description="Of those, heard of lately.")
    silent: int
    passed: int = Field(description="Were told that it is their turn, and did not enter in time.")
    offered: int = Field(description="Were told that it is their turn.")
    reserved: int = Field(description="Entered, and started nothing yet.")
    held: int = Field(description="Places in use.")
    free: int | None = Field(description="Null: no limit.")
    measured_rate: float | None = Field(description="People a minute who were let in lately; null: none was.")


class MemberOut(BaseModel):
    position: int
    user_id: str | None = Field(description="Null: not known until they are heard of again.")
    state: MemberState
    joined_at: datetime | None
    seen_at: datetime


class PlaceOut(BaseModel):
    event_id: str
    state: State
    reservation_token: str
    expires_at: datetime
    workspace_id: str | None
    run_id: str | None


def _events(request: Request) -> Events:
    return provide.get(request, Events)


def _shown(request: Request, view: EventView) -> EventOut:
    event, line, used = view.event, view.line, view.used
    return EventOut(
        id=event.id,
        owner=event.owner,
        capacity=view.capacity,
        admission_rate=event.admission_rate,
        opens_at=event.opens_at,
        order=event.order,
        place_lease_seconds=event.place_lease_seconds,
        paused=event.paused,
        draining=event.draining,
        open=rules.is_open(event, provide.get(request, Clock).now()),
        waiting=line.waiting if line else 0,
        live=line.live if line else 0,
        silent=line.silent if line else 0,
        passed=line.passed if line else 0,
        offered=used.offered,
        reserved=used.reserved,
        held=inside(view),
        free=free(view),
        measured_rate=view.measured_rate,
    )


@router.get("/events")
async def list_events(
    request: Request,
    caller: Annotated[Principal, may(Action.EVENT_LIST)],
    limit: paging.Limit = 50,
    cursor: IdCursor = None,
) -> paging.Page[EventOut]:
    """One's own; for admins, all."""
    events = _events(request)
    found = await events.page(caller, after=cursor or "", limit=limit + 1)
    views = [await events.get(caller, event.id) for event in found]
    return paging.page(views, limit, lambda view: _shown(request, view), lambda view: view.event.id)


@router.get("/events/{id}", responses=documented_objects(404))
async def get_event(request: Request, caller: Annotated[Principal, may(Action.EVENT_SEE)], id: Id) -> EventOut:  # noqa: A002
    """How many wait, how many are in, and how fast it goes."""
    return _shown(request, await _events(request).get(caller, id))


@router.put(
    "/events/{id}",
    status_code=200,
    responses={**documented_objects(404, 409, 413, 429), 201: {"model": EventOut}},
)
async def put_event(
    request: Request,
    response: Response,
    caller: Annotated[Principal, may(Action.EVENT_CHANGE)],
    id: NewId,  # noqa: A002
    event: EventIn,
) -> EventOut:
    """Make an event: 201. Or change what is mentioned of one that is there. `lab` guards the platform itself."""
    view, made = await _events(request).put(caller, id, event.change())
    response.status_code = 201 if made else 200
    return _shown(request, view)


@router.get("/events/{id}/line", responses=documented_objects(404))
async def list_line(
    request: Request,
    caller: Annotated[Principal, may(Action.EVENT_LINE)],
    id: Id,  # noqa: A002
    limit: paging.Limit = 50,
    cursor: paging.NumberCursor = None,
) -> paging.Page[MemberOut]:
    """Who waits, in order: for the event's owner and admins."""
    start = int(cursor or 0)
    found = await _events(request).line(caller, id, start=start, limit=limit + 1)
    return paging.page(found, limit, _member, lambda member: str(member.position))


def _member(member: Member) -> MemberOut:
    joined = None if member.joined_ms is None else moment(member.joined_ms)
    return MemberOut(
        position=member.position,
        user_id=member.name,
        state=member.state,
        joined_at=joined,
        seen_at=moment(member.seen_ms),
    )


@router.get("/events/{id}/place", responses=documented_objects(404))
async def get_place(request: Request, caller: Annotated[Principal, may(Action.QUEUE_PLACE)], id: Id) -> PlaceOut:  # noqa: A002
    """The place that one has, should the page that got it be lost."""
    return _place(await provide.get(request, WaitingRoom).place(caller, id))


@router.delete("/events/{id}/place", status_code=204, responses=documented_objects(404))
async def give_place_back(
    request: Request,
    caller: Annotated[Principal, may(Action.QUEUE_GIVE_BACK)],
    id: Id,  # noqa: A002
) -> None:
    """Give it to the next in line. What was started with it goes on."""
    await provide.get(request, WaitingRoom).give_back(caller, id)


def _place(held: Reservation) -> PlaceOut:
    return PlaceOut(
        event_id=held.event_id,
        state=held.state,
        reservation_token=held.reservation_token,
        expires_at=held.expires_at,
        workspace_id=held.workspace_id,
        run_id=held.run_id,
    )
