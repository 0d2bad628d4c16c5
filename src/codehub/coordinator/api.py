"""`GET /api/v1/admin/loops`: who leads, and how each background loop is doing."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from codehub.coordinator import service
from codehub.db import Database
from codehub.http import provide
from codehub.http.access import may
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1/admin", tags=["operations"], responses=documented(401, 403, 503))


class LoopOut(BaseModel):
    """Published by the leader, which may be of another version for a while: what it does not say has a default."""

    name: str
    period: float
    running: bool = False
    runs: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    last_run_at: datetime | None = None
    next_run_at: datetime | None = None
    took_seconds: float | None = None
    stats: dict[str, Any] = {}
    last_error: str | None = None
    last_error_at: datetime | None = None


class LeadershipOut(BaseModel):
    leader: str | None
    epoch: int
    expires_at: datetime | None
    loops: list[LoopOut]


@router.get("/loops")
async def list_loops(request: Request, caller: Annotated[Principal, may(Action.LOOPS_READ)]) -> LeadershipOut:
    """Figures are as of the leader's last renewal, at most a few seconds ago."""
    return LeadershipOut(**asdict(await service.leadership(provide.get(request, Database), caller)))
