"""`GET /api/v1/admin/audit`: who did what, newest first."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from codehub.audit.service import AuditLog
from codehub.http import paging, provide
from codehub.http.access import LoggedIn
from codehub.http.problems import documented
from codehub.policy import rules as policy_rules

router = APIRouter(prefix="/api/v1/admin", tags=["operations"], responses=documented(400, 401, 403, 503))
Filter = Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$")]


class EntryOut(BaseModel):
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    request_id: str | None
    address: str | None


@router.get("/audit")
async def list_audit(
    request: Request,
    caller: LoggedIn,
    *,
    actor: Filter = None,
    subject: Filter = None,
    limit: paging.Limit = 50,
    cursor: paging.NumberCursor = None,
) -> paging.Page[EntryOut]:
    policy_rules.require_admin(caller)
    log = provide.get(request, AuditLog)
    before = None if cursor is None else int(cursor)
    found = await log.page(before=before, actor=actor, subject=subject, limit=limit + 1)
    return paging.page(found, limit, lambda entry: EntryOut(**asdict(entry)), lambda entry: str(entry.id))
