"""REST about the workspace of a run."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from codehub.http import provide
from codehub.http.access import may
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions.practice import OpenedWorkspace, Practice
from codehub.sessions.runs_api import FenceIn, RunId
from codehub.workspaces.model import Phase

router = APIRouter(prefix="/api/v1", tags=["learning"], responses=documented(400, 401, 403, 503))


class StarterFileOut(BaseModel):
    path: str
    put: Literal["written", "unchanged", "beside"] = Field(
        description="`beside`: the learner's own file has its place, and stays; this one has the name `as`."
    )
    name: str = Field(serialization_alias="as", description="The path that it really has.")


class OpenedOut(BaseModel):
    workspace_id: str
    template: str
    phase: Phase
    url: str = Field(description="Where the IDE is, once it runs.", examples=["/w/k3jx7q2mzv5d/"])
    files: list[StarterFileOut] | None = Field(
        description="What became of the starter files; null: the workspace does not run yet, ask again when it does."
    )


def _shown(opened: OpenedWorkspace) -> OpenedOut:
    w, files = opened.workspace, opened.files
    return OpenedOut(
        workspace_id=w.id,
        template=w.template,
        phase=w.phase,
        url=f"/w/{w.id}/",
        files=None if files is None else [StarterFileOut.model_validate(vars(file)) for file in files],
    )


@router.post("/runs/{id}/workspace", responses=documented(404, 409, 429))
async def open_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_WRITE)],
    id: RunId,  # noqa: A002
    body: FenceIn,
) -> OpenedOut:
    """The plan's workspace for this session: made or woken, and once it runs, with the starter files in it."""
    return _shown(await provide.get(request, Practice).open(caller, id, body.fence))
