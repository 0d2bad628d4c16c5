"""REST about classes and who is in them."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from codehub.classes import store
from codehub.classes.model import Came, Member, MemberRole, SchoolClass
from codehub.classes.service import Classes
from codehub.http import fields, paging, provide
from codehub.http.access import may, spend_creation
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1", tags=["people"], responses=documented(400, 401, 403, 503))
Id = Annotated[str, Path(description="A class's id.", max_length=200, pattern=fields.NO_NUL)]
Name = Annotated[str, Path(description="A user's name.", max_length=200, pattern=fields.NO_NUL, examples=["mina"])]
MemberCursor = Annotated[str | None, Query(pattern="^[01][a-z0-9-]{1,63}$", description=paging.ABOUT)]


class ClassIn(fields.Body):
    title: fields.Name = Field(examples=["Python, Mondays"])


class ClassChange(fields.Body):
    title: fields.Name | None = None
    archived: bool | None = Field(
        default=None, strict=True, description="true: over. It can be read, and its teachers have no rights by it."
    )


class ClassOut(BaseModel):
    id: str
    title: str
    teachers: list[str]
    learners: int = Field(description="How many.")
    created_at: datetime
    archived_at: datetime | None


class MemberIn(fields.Body):
    name: str = Field(max_length=63, pattern=fields.NO_NUL, examples=["mina"])
    role: MemberRole = MemberRole.LEARNER


class ClassMemberOut(BaseModel):
    name: str
    display_name: str
    role: MemberRole
    came: Came = Field(description="made or joined: the teachers look after the account.")
    school_id: str | None
    joined_at: datetime
    last_seen_at: datetime | None
    active: bool


def _class(found: SchoolClass) -> ClassOut:
    return ClassOut(**vars(found))


def _member(found: Member) -> ClassMemberOut:
    return ClassMemberOut(**{name: getattr(found, name) for name in ClassMemberOut.model_fields})


def _classes(request: Request) -> Classes:
    return provide.get(request, Classes)


@router.post("/classes", status_code=201, responses=documented(413))
async def create_class(
    request: Request, caller: Annotated[Principal, may(Action.CLASS_CREATE)], body: ClassIn
) -> ClassOut:
    """You teach what you make."""
    await spend_creation(request, caller, "class")
    return _class(await _classes(request).create(caller, body.title))


@router.get("/classes")
async def list_classes(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_LIST)],
    everybodys: Annotated[bool, Query(alias="all", description="All there are, for admins.")] = False,
    archived: Annotated[bool, Query(description="Those in the archive, too.")] = False,
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[ClassOut]:
    """Those that you teach or attend."""
    found = await _classes(request).page(
        caller, everybodys=everybodys, archived=archived, after=paging.place(cursor), limit=limit + 1
    )
    return paging.page(found, limit, _class, lambda k: paging.at(k.created_at, k.id))


@router.get("/classes/{id}", responses=documented(404))
async def get_class(request: Request, caller: Annotated[Principal, may(Action.CLASS_SEE)], id: Id) -> ClassOut:  # noqa: A002 (the path's)
    return _class(await _classes(request).get(caller, id))


@router.patch("/classes/{id}", responses=documented(404, 413))
async def change_class(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_CHANGE)],
    id: Id,  # noqa: A002 (the path's)
    body: ClassChange,
) -> ClassOut:
    return _class(await _classes(request).change(caller, id, title=body.title, archived=body.archived))


@router.delete("/classes/{id}", status_code=204, responses=documented(404))
async def delete_class(request: Request, caller: Annotated[Principal, may(Action.CLASS_CHANGE)], id: Id) -> None:  # noqa: A002 (the path's)
    """The class itself. People, their work and what they learnt stay."""
    await _classes(request).delete(caller, id)


@router.get("/classes/{id}/members", responses=documented(404))
async def list_members(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_MEMBERS)],
    id: Id,  # noqa: A002 (the path's)
    limit: paging.Limit = 50,
    cursor: MemberCursor = None,
) -> paging.Page[ClassMemberOut]:
    """Teachers first, then by name."""
    found = await _classes(request).members(caller, id, after=cursor or "", limit=limit + 1)
    return paging.page(found, limit, _member, store.place_of)


@router.post("/classes/{id}/members", status_code=201, responses=documented(404, 409, 413))
async def add_member(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_MANAGE)],
    id: Id,  # noqa: A002 (the path's)
    body: MemberIn,
) -> ClassMemberOut:
    """A person who has an account. One who is in the class already stays as they are."""
    return _member(await _classes(request).add_member(caller, id, body.name, body.role))


@router.delete("/classes/{id}/members/{name}", status_code=204, responses=documented(404, 409))
async def remove_member(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_MANAGE)],
    id: Id,  # noqa: A002 (the path's)
    name: Name,
) -> None:
    """Out of the class; the account stays."""
    await _classes(request).remove_member(caller, id, name)
