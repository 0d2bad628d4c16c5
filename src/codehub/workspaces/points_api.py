"""REST about what became of a home: restore points, going back to one, downloading it as one file."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from codehub.clock import Clock
from codehub.coordinator.leader_doors import Doors
from codehub.http import fields, paging, provide
from codehub.http.access import may, spend_change
from codehub.http.lasting import Lasting, OpenStreams
from codehub.http.problems import documented
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.settings import Settings
from codehub.workspaces import downloads
from codehub.workspaces.admission import admitted
from codehub.workspaces.api import Id, WorkspaceDetail, detail
from codehub.workspaces.model import RestorePoint
from codehub.workspaces.service import Workspaces

router = APIRouter(prefix="/api/v1", tags=["workspaces"], responses=documented(400, 401, 403, 503))
Key = Annotated[
    str,
    Field(min_length=1, max_length=300, pattern=r"^[a-z0-9./-]+$", examples=["k3jx7q2mzv5d/nq…/7/home.tar.zst"]),
]
Cursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,17}\.[a-z0-9-]{1,63}$", description=paging.ABOUT)]


class StreamedDownload(Lasting):
    """Closes the download however the answer ends, also when it never began. Of backups too (`web.backups_page`)."""

    def __init__(
        self,
        streams: OpenStreams,
        caller: Principal,
        begun: downloads.Download,
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(streams, caller, begun.pieces(), media_type, headers)
        self._begun = begun

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._begun.close()


class RestorePointOut(BaseModel):
    archive_key: str
    created_at: datetime
    bytes: int = Field(description="Of all files together.")
    stored_bytes: int = Field(description="As it is stored.")
    files: int
    current: bool = Field(description="The home comes back from this one when it is started next.")


class RestoreIn(fields.Body):
    archive_key: Key


@router.get("/workspaces/{id}/restore-points", responses=documented(404))
async def list_restore_points(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_POINTS)],
    id: Id,  # noqa: A002
    limit: paging.Limit = 50,
    cursor: Cursor = None,
) -> paging.Page[RestorePointOut]:
    """The archives one can go back to, newest first."""
    workspaces = provide.get(request, Workspaces)
    w = await workspaces.get(caller, id, Action.WORKSPACE_POINTS)
    keep, before = provide.get(request, Settings).archives.restore_points, paging.place(cursor) if cursor else None
    found = await workspaces.restore_points(caller, id, keep=keep, before=before, limit=limit + 1)

    def show(p: RestorePoint) -> RestorePointOut:
        return RestorePointOut(
            archive_key=p.archive_key,
            created_at=p.created_at,
            bytes=p.content_bytes,
            stored_bytes=p.size,
            files=p.files,
            current=p.archive_key == (w.restore_from or w.archive_key),
        )

    return paging.page(found, limit, show, lambda p: paging.at(p.created_at, p.op_id))


@router.post("/workspaces/{id}/restore", status_code=202, responses=documented(404, 409, 413, 429))
async def restore_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_RESTORE)],
    id: Id,  # noqa: A002
    how: RestoreIn,
) -> WorkspaceDetail:
    """Go back to a restore point. What is there now is archived first: one can come back from going back."""
    return await detail(request, admitted(await provide.get(request, Workspaces).restore(caller, id, how.archive_key)))


@router.get(
    "/workspaces/{id}/download",
    response_class=StreamingResponse,
    responses={
        **documented(404, 409, 429),
        200: {
            "content": {kind: {} for kind in downloads.MEDIA_TYPES.values()},
            "description": "The home, as one file.",
        },
    },
)
async def download_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_DOWNLOAD)],
    id: Id,  # noqa: A002
    format: Annotated[  # noqa: A002
        Literal["tar.gz", "tar.zst"], Query(description="tar.gz opens everywhere; tar.zst is smaller and faster.")
    ] = "tar.gz",
    archive_key: Annotated[Key | None, Query(description="A restore point, instead of what is there now.")] = None,
) -> Response:
    """The whole home as one file, without starting it: running, asleep or archived.

    Of one that is running, each file is as it was when it was read.
    """
    settings = provide.get(request, Settings)
    await spend_change(request, caller)  # it is written down who took whose home
    w, source = await provide.get(request, Workspaces).download_source(caller, id, archive_key)
    name = downloads.file_name(w, provide.get(request, Clock).now(), format)
    headers = {
        "content-disposition": downloads.disposition(name),
        "content-encoding": "identity",  # it is compressed already
        "x-accel-buffering": "no",
    }
    if request.state.head:
        return Response(headers=headers, media_type=downloads.MEDIA_TYPES[format])
    at_most = policy_rules.allowance(caller, settings.archives.max_downloads_per_user)
    begun = await downloads.Download.begin(
        provide.get(request, Doors),
        workspace_id=id,
        archive_key=source,
        form=format,
        person=caller.name,
        at_most=at_most,
    )
    return StreamedDownload(provide.get(request, OpenStreams), caller, begun, downloads.MEDIA_TYPES[format], headers)
