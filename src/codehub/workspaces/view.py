"""A workspace as the API and the event stream show it."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from codehub.workspaces.model import Desired, DesiredBy, Health, Observed, Operation, Phase, Workspace


class ErrorInfo(BaseModel):
    reason: str
    operation: str
    is_terminal: bool
    error_count: int
    last_error: str
    occurred_at: datetime


class WorkspaceOut(BaseModel):
    id: str
    name: str
    template: str
    owner: str
    phase: Phase
    observed_status: Observed
    health_status: Health
    operation: Operation
    desired_state: Desired
    desired_by: DesiredBy
    desired_at: datetime
    archive_key: str | None
    restore_from: str | None
    error_info: ErrorInfo | None
    progress: dict[str, Any] | None
    disk_bytes: int | None
    last_access_at: datetime
    phase_changed_at: datetime
    keep_awake_until: datetime | None
    keep_awake_reason: str | None
    standby_ttl_seconds: int | None
    archive_ttl_seconds: int | None
    sleeps_at: datetime | None
    created_at: datetime
    deleted_at: datetime | None
    path: str


def show(w: Workspace, sleeps_at: datetime | None) -> WorkspaceOut:
    shown = {name: getattr(w, name) for name in WorkspaceOut.model_fields if hasattr(w, name)}
    return WorkspaceOut(**shown, sleeps_at=sleeps_at, path=f"/w/{w.id}/")
