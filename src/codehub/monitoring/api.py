"""`GET /api/v1/admin/samples`: the platform's figures over time."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from codehub.http import paging, provide
from codehub.http.access import may
from codehub.http.problems import documented
from codehub.monitoring import rules
from codehub.monitoring.model import Resolution, Sample
from codehub.monitoring.service import Monitoring
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1/admin", tags=["operations"], responses=documented(400, 401, 403, 503))
RESOLUTIONS = {
    "minute": Resolution.MINUTE,
    "quarter-hour": Resolution.QUARTER_HOUR,
    "hour": Resolution.HOUR,
}
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
# Seconds since 1970; more digits would be no moment any more.
Cursor = Annotated[str | None, Query(pattern="^[0-9]{1,11}$", description=paging.ABOUT)]


class PhasesOut(BaseModel):
    RUNNING: float
    STANDBY: float
    ARCHIVED: float
    PENDING: float
    ERROR: float


class SampleOut(BaseModel):
    at: datetime = Field(description="The beginning of what it is about.")
    minutes: int = Field(description="Of how many samples of a minute it is made.")
    workspaces: PhasesOut = Field(description="How many there were, by phase, on average; without the trash.")
    active_workspaces: int = Field(description="With work in five minutes; at the most.")
    active_people: int = Field(description="The owners of those.")
    waiting: int | None = Field(description="People in line for all events, at the most; null: not known.")
    wakes: int = Field(description="Workspaces that were woken.")
    wake_p50_seconds: float | None = Field(description="Half of them took no longer; to within 12 %.")
    wake_p99_seconds: float | None
    archive_bytes: int = Field(description="Of all archives, at the end.")
    disk_free_bytes: int | None = Field(description="On the data directory's disk, at the least.")
    loop_lag_seconds: float | None = Field(description="How late the coordinator's slowest loop was, at the most.")
    slowest_loop: str | None


@router.get("/samples")
async def list_samples(
    request: Request,
    caller: Annotated[Principal, may(Action.MONITORING_READ)],
    *,
    resolution: Literal["minute", "quarter-hour", "hour"] = "minute",
    limit: paging.Limit = 60,
    cursor: Cursor = None,
) -> paging.Page[SampleOut]:
    """Newest first. Minutes are kept for a day, quarters of an hour for two weeks, hours for three months."""
    until = LAST if cursor is None else FIRST + timedelta(seconds=int(cursor))
    found = await provide.get(request, Monitoring).between(caller, RESOLUTIONS[resolution], FIRST, until, limit + 1)
    return paging.page(found, limit, _shown, lambda s: str(int(s.at.timestamp())))


def _shown(s: Sample) -> SampleOut:
    return SampleOut(
        at=s.at,
        minutes=s.minutes,
        workspaces=PhasesOut(RUNNING=s.running, STANDBY=s.asleep, ARCHIVED=s.stored, PENDING=s.pending, ERROR=s.broken),
        active_workspaces=s.active_workspaces,
        active_people=s.active_people,
        waiting=s.waiting,
        wakes=sum(s.wakes),
        wake_p50_seconds=_to_milliseconds(rules.quantile(s.wakes, 0.5)),
        wake_p99_seconds=_to_milliseconds(rules.quantile(s.wakes, 0.99)),
        archive_bytes=s.archive_bytes,
        disk_free_bytes=s.disk_free_bytes,
        loop_lag_seconds=_to_milliseconds(s.loop_lag_seconds),
        slowest_loop=s.slowest_loop,
    )


def _to_milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
