"""`GET /api/v1/events`: what changed, as Server-Sent Events, for the pages and for programs."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import StreamingResponse

from codehub import logs
from codehub.assignments import teaching
from codehub.db import Connection
from codehub.errors import UnavailableError
from codehub.events import model
from codehub.events.hub import Hub
from codehub.http import provide
from codehub.http.access import may
from codehub.http.problems import documented
from codehub.http.streams import Streams
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web.services import services_of
from codehub.workspaces import changes

log = logs.get()
router = APIRouter(prefix="/api/v1", tags=["workspaces"], responses=documented(400, 401, 403, 503))
HEARTBEAT, HEARTBEAT_SECONDS = b"event: heartbeat\ndata: {}\n\n", 30.0
LONGEST_CURSOR = 18  # digits


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={
        **documented(429),
        200: {"content": {"text/event-stream": {}}, "description": "Server-Sent Events, without end."},
    },
)
async def stream_events(
    request: Request,
    caller: Annotated[Principal, may(Action.EVENTS_FOLLOW)],
    last_event_id: Annotated[str | None, Header(max_length=50)] = None,
    resume_after: Annotated[str | None, Query(alias="last_event_id", max_length=50)] = None,
) -> StreamingResponse:
    """What changed in your workspaces and those shared with you; for admins, in all.

    `workspace_updated` and `workspace_deleted` (data: the workspace as it is now), `workspace_joined` and
    `workspace_left` (data: `workspace_id`; you may see it from now on, or no more); of your learning, `plan_updated`,
    `session_updated`, `run_updated`, `run_tried` and `hand_updated` (data: ids and states); of the classes that you
    teach, `class_updated`, `progress_updated` and `hand_updated` (data: `class_id`, and the `learner` whose doing it
    was), `class_joined` and `class_left` (you teach it from now on, or no more); of your courses, and for admins of
    all, `course_updated` (data: `course_id`, `version`), and of what you sent as a course and did not save yet,
    `draft_updated`; for admins, `backup_updated` (data: `backup_id`); `heartbeat`. Resumes by `Last-Event-ID`, or
    by `last_event_id` in the address. `reset` says that events are missing (you read too slowly, or resumed from too
    long ago): read the state anew, and go on listening.
    """
    hub = services_of(request).hub
    # Taken before the answer begins: whatever the client reads after that, it learns of what changes later.
    after = last_event_id or resume_after
    cursor = parse_cursor(after) if after else await hub.now()
    return provide.get(request, Streams).begin(caller, _stream(hub, caller, cursor), "text/event-stream")


def parse_cursor(last_event_id: str) -> int | None:
    """None: not one of ours, or of an older version."""
    ours = last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) <= LONGEST_CURSOR
    return int(last_event_id) if ours else None


async def _stream(hub: Hub, caller: Principal, cursor: int | None) -> AsyncIterator[bytes]:
    audiences, sees_all = [model.user(caller.id)], policy.allows(caller, Action.EVENTS_FOLLOW_ALL)
    if sees_all:
        audiences += [model.ADMINS, changes.EVERY_WORKSPACE, teaching.EVERY_CLASS]

    async def memberships(c: Connection) -> list[str]:
        if sees_all:
            return []
        return [*await changes.memberships(c, caller.name), *await teaching.memberships(c, caller)]

    try:
        async with hub.subscribed(audiences, memberships, cursor) as subscription:
            yield HEARTBEAT
            while (pieces := await subscription.next(HEARTBEAT_SECONDS)) is not None:
                yield pieces
    except UnavailableError as e:
        log.warning("An event stream ends before it begins: its client comes back", error=e.detail)
