"""`GET /api/v1/workspaces/{id}/activity`: why it sleeps, or does not."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from codehub.activity.service import Activity
from codehub.http import provide
from codehub.http.access import may
from codehub.http.language import Reader
from codehub.http.problems import documented
from codehub.i18n import idleness
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.templates.model import ActivityMode, ActivityProfile

router = APIRouter(prefix="/api/v1", tags=["workspaces"], responses=documented(401, 403, 503))


class ActivityOut(BaseModel):
    mode: ActivityMode
    profile: ActivityProfile
    last_input_at: datetime | None = Field(description="A person did something; null: not seen lately.")
    last_output_at: datetime | None = Field(description="A program of theirs said something.")
    open_connections: int = Field(description="WebSockets that are open now.")
    counted: dict[str, int] = Field(description="What was seen and counts as activity, by kind.")
    ignored: dict[str, int] = Field(description="What was seen and does not: an IDE talking to itself.")
    sleeps_at: datetime | None = Field(description="When it sleeps if nothing happens; null: nothing would do that.")
    code: str = Field(description="Why; each code has its own data.", examples=["active"])
    data: dict[str, Any]
    reason: str = Field(description="A sentence about it, in the language that `Accept-Language` asks for.")


@router.get("/workspaces/{id}/activity", responses=documented(404))
async def workspace_activity(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_HISTORY)],
    id: Annotated[str, Path(description="A workspace's id.", examples=["k3jx7q2mzv5d"])],  # noqa: A002
    reader: Reader,
) -> ActivityOut:
    """When it will sleep and why; why it did, or did not. Counts are kept for a month after the last news."""
    found = await provide.get(request, Activity).explain(caller, id)
    seen = found.seen
    return ActivityOut(
        mode=found.ttl_policy.mode,
        profile=found.ttl_policy.profile,
        last_input_at=seen.last_input_at,
        last_output_at=seen.last_output_at,
        open_connections=seen.open_connections,
        counted=seen.counted,
        ignored=seen.ignored,
        sleeps_at=found.sleeps_at,
        code=found.reason.code,
        data=dict(found.reason.data),
        reason=idleness.sentence(reader, found.reason.code, found.reason.data),
    )
