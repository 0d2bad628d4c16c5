"""REST about the people of a class whose accounts its teachers make: one by one, from a list; and their links."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from codehub.auth.api import NewName
from codehub.classes.api import Id
from codehub.classes.importing import Importing, Outcome, Planned, Preview
from codehub.classes.sheets import Sheets
from codehub.http import fields, provide
from codehub.http.access import base_url, may, spend_creation
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1", tags=["people"], responses=documented(400, 401, 403, 503))


class ClassPersonIn(fields.Body):
    display_name: fields.Name = Field(examples=["김민아"])
    name: NewName | None = Field(default=None, description="Unset: made of that.")


class ClassPersonOut(BaseModel):
    name: str
    display_name: str


class ImportLineOut(BaseModel):
    line: int
    outcome: Outcome
    display_name: str
    name: str | None
    name_is_derived: bool
    id: str | None = Field(description="The school's.")
    reason: str | None = Field(description="Of an error, a code.")


class ImportOut(BaseModel):
    digest: str = Field(description="Of what will happen: send it with the import, and nothing else is done.")
    encoding: str = Field(description="What was assumed.")
    delimiter: str
    has_header: bool
    counts: dict[Outcome, int]
    lines: list[ImportLineOut]


class ClassLinkOut(BaseModel):
    name: str
    display_name: str
    url: str
    expires_in_seconds: int


class ClassLinksOut(BaseModel):
    items: list[ClassLinkOut]


def _line(p: Planned) -> ImportLineOut:
    return ImportLineOut(
        line=p.line.number,
        outcome=p.outcome,
        display_name=p.line.display_name,
        name=p.name,
        name_is_derived=p.derived,
        id=p.line.school_id,
        reason=p.reason,
    )


def _preview(found: Preview) -> ImportOut:
    read = found.roster
    return ImportOut(
        digest=found.digest,
        encoding=read.encoding,
        delimiter=read.delimiter,
        has_header=read.has_header,
        counts=found.counts,
        lines=[_line(p) for p in found.planned],
    )


@router.post("/classes/{id}/people", status_code=201, responses=documented(404, 409, 413))
async def create_class_person(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_MANAGE)],
    id: Id,  # noqa: A002 (the path's)
    body: ClassPersonIn,
) -> ClassPersonOut:
    """A new learner's account, which this class's teachers look after."""
    await spend_creation(request, caller, "person")
    name = await provide.get(request, Importing).make_person(caller, id, body.display_name, body.name)
    return ClassPersonOut(name=name, display_name=body.display_name)


@router.post(
    "/classes/{id}/import",
    responses=documented(404, 409, 413),
    openapi_extra={"requestBody": {"content": {"text/csv": {"schema": {"type": "string", "minLength": 1}}}}},
)
async def import_people(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_MANAGE)],
    id: Id,  # noqa: A002 (the path's)
    dry_run: Annotated[bool, Query(description="Only say what would happen.")] = False,
    digest: Annotated[str | None, Query(max_length=64, description="Of the preview that was looked at.")] = None,
) -> ImportOut:
    """A list, CSV as `display_name,name,id`. The same list once more changes nothing."""
    raw, importing = await request.body(), provide.get(request, Importing)
    if dry_run:
        return _preview(await importing.preview(caller, id, raw))
    await spend_creation(request, caller, "import")
    return _preview(await importing.perform(caller, id, raw, digest))


@router.post("/classes/{id}/login-links", status_code=201, responses=documented(404, 409))
async def create_class_links(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_MANAGE)],
    id: Id,  # noqa: A002 (the path's)
) -> ClassLinksOut:
    """A new login link for every learner whose account you look after. Earlier unused ones stop working."""
    await spend_creation(request, caller, "sheet")
    made, base = await provide.get(request, Sheets).make(caller, id), base_url(request)
    items = [
        ClassLinkOut(name=s.name, display_name=s.display_name, url=s.link.url(base), expires_in_seconds=s.link.seconds)
        for s in made
    ]
    return ClassLinksOut(items=items)
