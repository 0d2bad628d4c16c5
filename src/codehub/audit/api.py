"""`GET /api/v1/admin/audit`: who did what, newest first."""

import re
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, BeforeValidator, Field

from codehub.audit.codes import Code
from codehub.audit.model import AuditEntry
from codehub.audit.service import AuditLog, AuditSearch
from codehub.http import paging, provide
from codehub.http.access import may
from codehub.http.fields import NO_NUL, Moment
from codehub.http.language import Reader
from codehub.http.problems import documented
from codehub.i18n import audit
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1/admin", tags=["operations"], responses=documented(400, 401, 403, 503))
DATED = re.compile(r"\d{4}-\d\d-\d\d[Tt ]")


def _dated(value: Any) -> Any:
    """In an address everything is text: a number there would be read as seconds."""
    if isinstance(value, str) and not DATED.match(value):
        raise ValueError("must be a moment such as 2026-03-31T09:00:00Z")
    return value


Dated = Annotated[Moment, BeforeValidator(_dated)]
Filter = Annotated[str | None, Query(max_length=100, pattern=NO_NUL)]


class AuditEntryOut(BaseModel):
    id: int
    at: datetime
    actor: str
    code: str = Field(description="What was done; each code has its own data.", examples=["user.create"])
    subject: str
    data: dict[str, Any]
    sentence: str = Field(description="In the language that `Accept-Language` asks for.")
    action: str = Field(description="The same as `code`.")
    detail: dict[str, Any] = Field(description="The same as `data`.")
    request_id: str | None
    address: str | None


@router.get("/audit")
async def list_audit(
    request: Request,
    caller: Annotated[Principal, may(Action.AUDIT_READ)],
    reader: Reader,
    *,
    actor: Filter = None,
    subject: Filter = None,
    person: Annotated[
        str | None, Query(max_length=100, pattern=NO_NUL, description="Who did it, or to whom it was done.")
    ] = None,
    code: Annotated[Code | None, Query(description="What was done.")] = None,
    since: Annotated[Dated | None, Query(description="From this moment on.")] = None,
    until: Annotated[Dated | None, Query(description="Before this moment.")] = None,
    limit: paging.Limit = 50,
    cursor: paging.NumberCursor = None,
) -> paging.Page[AuditEntryOut]:
    log = provide.get(request, AuditLog)
    before = None if cursor is None else int(cursor)
    search = AuditSearch(person, code, since, until)
    found = await log.page(caller, before=before, actor=actor, subject=subject, limit=limit + 1, search=search)

    def show(e: AuditEntry) -> AuditEntryOut:
        said = audit.sentence(reader, e.code, e.data, actor=e.actor, subject=e.subject)
        return AuditEntryOut(**asdict(e), sentence=said, action=e.code, detail=e.data)

    return paging.page(found, limit, show, lambda entry: str(entry.id))
