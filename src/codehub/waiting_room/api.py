"""REST of the waiting room: join, status, stream, enter, leave. Events and places are `events_api`'s.

What comes after joining needs only the waiting token, which cannot be guessed: no login, and so no rights to lose by a
page of another site. Every error here has the shape `{"error": {"code", "message"}}` (`http.problems`).
"""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response

from codehub.clock import Clock
from codehub.http import fields, provide
from codehub.http.access import may, names
from codehub.http.problems import documented_objects
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.rates import Rates
from codehub.settings import Settings
from codehub.waiting_room.service import WaitingRoom
from codehub.waiting_room.status import Status, as_json
from codehub.waiting_room.stream import WaitingStreams
from codehub.waiting_room.view import StatusOut

router = APIRouter(prefix="/api/v1/queue", tags=["queue"], responses=documented_objects(400, 503))
LONGEST_TOKEN = 2000
LONGEST_NAME = 200
NOT_BLANK = r"^[^\x00]*[^\s\x00][^\x00]*$"
LONGEST_CURSOR = 18  # digits
JSON = "application/json"
Token = Annotated[str, Query(max_length=LONGEST_TOKEN, description="The waiting token.", examples=["workshop.Zk3…"])]
TOKEN_ONLY: dict[str, Any] = {"security": []}  # of the documentation: no login is asked for


class JoinIn(fields.Body):
    event_id: str = Field(max_length=LONGEST_NAME, pattern=fields.NO_NUL, examples=["workshop"])
    user_id: str | None = Field(
        default=None,
        max_length=LONGEST_NAME,
        pattern=NOT_BLANK,
        description="Your name; unset: the same. Only an admin joins for others, by any name.",
        examples=["mina"],
    )


class WaitingTokenIn(fields.Body):
    waiting_token: str = Field(max_length=LONGEST_TOKEN)


class ReservationOut(BaseModel):
    reservation_token: str = Field(description="Goes along with starting a workspace or a session.")
    expires_at: datetime = Field(description="Until when to start something with it.")


def _room(request: Request) -> WaitingRoom:
    return provide.get(request, WaitingRoom)


def _answer(request: Request, status: Status, code: int = 200) -> Response:
    return Response(as_json(status, provide.get(request, Clock).timestamp()), code, media_type=JSON)


@router.post(
    "/join",
    response_model=StatusOut,
    status_code=201,
    responses={**documented_objects(401, 403, 404, 409, 413, 429), 200: {"model": StatusOut}},
)
async def join_queue(
    request: Request, caller: Annotated[Principal, may(Action.QUEUE_JOIN)], wanted: JoinIn
) -> Response:
    """Take a place in line: 201. Who is in line already gets the same token and place: 200."""
    ticket = await _room(request).join(caller, wanted.event_id, wanted.user_id)
    return _answer(request, ticket.status, 201 if ticket.new else 200)


@router.get(
    "/status",
    response_model=StatusOut,
    responses=documented_objects(404),
    dependencies=[names(Action.PUBLIC_QUEUE)],
    openapi_extra=TOKEN_ONLY,
)
async def queue_status(request: Request, token: Token) -> Response:
    """Where one stands. Asking is the heartbeat: who does not ask for five minutes loses the place."""
    return _answer(request, await _room(request).status(token))


@router.get(
    "/stream",
    responses={
        **documented_objects(404, 429),
        200: {"content": {"text/event-stream": {}}, "description": "Server-Sent Events, until the place is over."},
    },
    dependencies=[names(Action.PUBLIC_QUEUE)],
    openapi_extra=TOKEN_ONLY,
)
async def queue_stream(
    request: Request,
    token: Token,
    last_event_id: Annotated[str | None, Header(max_length=50)] = None,
    resume: Annotated[str | None, Query(alias="last_event_id", max_length=50)] = None,
) -> Response:
    """The same as it changes: `position`, `ready`, and at the end `entered`, `expired` or `left`.

    The data is the status and `changes`: why it moved since the event before, as counts of those ahead who `entered`,
    `left` or `expired`; null where that is not known any more. An open stream is a heartbeat. Resumes by
    `Last-Event-ID`; a page that opens a new stream may say it in the address.
    """
    return await provide.get(request, WaitingStreams).open(token, _cursor(last_event_id or resume))


def _cursor(text: str | None) -> int | None:
    """None: from now on; also for what is not one of ours."""
    ours = text and text.isascii() and text.isdigit() and len(text) <= LONGEST_CURSOR
    return int(text) if text and ours else None


@router.post(
    "/enter",
    responses=documented_objects(404, 409, 413, 429),
    dependencies=[names(Action.PUBLIC_QUEUE)],
    openapi_extra=TOKEN_ONLY,
)
async def enter_queue(request: Request, sent: WaitingTokenIn) -> ReservationOut:
    """Take the place, when it is one's turn; repeated, it is the same reservation."""
    await _spend(request, sent.waiting_token)
    made = await _room(request).enter(sent.waiting_token)
    return ReservationOut(reservation_token=made.reservation_token, expires_at=made.expires_at)


@router.delete(
    "/leave",
    status_code=204,
    responses=documented_objects(404, 429),
    dependencies=[names(Action.PUBLIC_QUEUE)],
    openapi_extra=TOKEN_ONLY,
)
async def leave_queue(request: Request, token: Token) -> None:
    """Give the place in line up, at once. Also 204 when it is gone already."""
    await _leave(request, token)


_TOKEN_SCHEMA = WaitingTokenIn.model_json_schema()


@router.post(
    "/leave",
    status_code=204,
    responses=documented_objects(404, 413, 429),
    dependencies=[names(Action.PUBLIC_QUEUE)],
    openapi_extra={
        **TOKEN_ONLY,
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": _TOKEN_SCHEMA}},
        },
    },
)
async def leave_queue_by_beacon(request: Request) -> None:
    """The same, as `navigator.sendBeacon` sends it: this JSON may come as `text/plain`."""
    try:
        sent = WaitingTokenIn.model_validate_json(await request.body())
    except ValidationError as e:
        raise RequestValidationError([{**error, "loc": ("body", *error["loc"])} for error in e.errors()]) from e
    await _leave(request, sent.waiting_token)


async def _leave(request: Request, token: str) -> None:
    await _spend(request, token)
    await _room(request).leave(token)


async def _spend(request: Request, token: str) -> None:
    """What changes something goes to the database: so often for each waiting person, and for no other."""
    waiting = provide.get(request, WaitingStreams).read(token)
    most = provide.get(request, Settings).limits.max_changes_per_minute or None
    await provide.get(request, Rates).spend("queue", f"{waiting.event}.{waiting.pid}", most)
