"""REST about letting others into a workspace."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from codehub.http import fields, paging, provide
from codehub.http.access import may, spend_creation
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.workspaces.sharing import Sharing

router = APIRouter(prefix="/api/v1", tags=["workspaces"], responses=documented(400, 401, 403, 503))
Id = Annotated[str, Path(description="A workspace's id.", examples=["k3jx7q2mzv5d"])]
User = Annotated[str, Path(description="A user's name.", max_length=63, pattern=fields.NO_NUL)]


class ShareIn(fields.Body):
    user: str = Field(min_length=1, max_length=63, description="Whom to let in.", examples=["mina"])


class ShareOut(BaseModel):
    user: str
    created_at: datetime
    opened_at: datetime | None = Field(description="When they first came; null: not yet, or there is no such user.")


def _sharing(request: Request) -> Sharing:
    return provide.get(request, Sharing)


@router.get("/workspaces/{id}/shares", responses=documented(404))
async def list_shares(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_SHARES)],
    id: Id,  # noqa: A002
    limit: paging.Limit = 50,
    cursor: paging.NameCursor = None,
) -> paging.Page[ShareOut]:
    """Whom the owner lets in."""
    found = await _sharing(request).shares(caller, id, after=cursor or "", limit=limit + 1)
    return paging.page(
        found,
        limit,
        lambda s: ShareOut(user=s.user_name, created_at=s.created_at, opened_at=s.opened_at),
        lambda s: s.user_name,
    )


@router.post("/workspaces/{id}/shares", status_code=204, responses=documented(404, 409, 413, 429))
async def share_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_SHARE)],
    id: Id,  # noqa: A002
    share: ShareIn,
) -> None:
    """Let a guest in: they open it in their browser, type in it and wake it; the rest stays the owner's.

    Only teachers and admins are told when there is no such user; `opened_at` tells every owner who came.
    """
    await spend_creation(request, caller, "share")
    await _sharing(request).share(caller, id, share.user)


@router.delete("/workspaces/{id}/shares/{user}", status_code=204, responses=documented(404))
async def unshare_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_SHARE)],
    id: Id,  # noqa: A002
    user: User,
) -> None:
    """A guest who is in is out within seconds. Guests may leave by themselves."""
    await _sharing(request).unshare(caller, id, user)
