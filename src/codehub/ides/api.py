"""REST about IDEs that do not come with the package: which there are, to install one, to end that."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from codehub.http import provide
from codehub.http.access import may
from codehub.http.problems import documented
from codehub.ides.model import Installation, Problem, Status
from codehub.ides.service import Ide, Ides
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1/admin", tags=["operations"], responses=documented(401, 403, 503))
Name = Annotated[str, Path(description="An IDE's name.", examples=["code-server"])]


class IdeStepOut(BaseModel):
    code: str
    title: str
    at: datetime
    before: bool = Field(description="It was done in an earlier try.")


class InstallationOut(BaseModel):
    status: Status
    actor: str
    attempts: int
    cancelled: bool = Field(description="It was asked to end.")
    steps: list[IdeStepOut] = Field(description="Those that have begun, oldest first.")
    lines: list[str] = Field(description="The last that its tools said.")
    problem: Problem | None
    problem_data: dict[str, Any]
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class IdeOut(BaseModel):
    name: str
    installed: bool
    installation: InstallationOut | None = Field(description="The last one that was asked for here.")


class IdesOut(BaseModel):
    items: list[IdeOut]
    next_cursor: None = None


def _installation(found: Installation) -> InstallationOut:
    shown = {name: getattr(found, name) for name in InstallationOut.model_fields if name != "steps"}
    steps = [IdeStepOut(code=s.code, title=s.title, at=s.at, before=s.before) for s in found.steps]
    return InstallationOut(**shown, steps=steps)


def _ide(ide: Ide) -> IdeOut:
    installation = _installation(ide.installation) if ide.installation else None
    return IdeOut(name=ide.name, installed=ide.installed, installation=installation)


@router.get("/ides")
async def list_ides(request: Request, caller: Annotated[Principal, may(Action.SETTINGS_READ)]) -> IdesOut:
    """All of them: there are few, so there is one page."""
    return IdesOut(items=[_ide(ide) for ide in await provide.get(request, Ides).all(caller)])


@router.post("/ides/{name}/install", status_code=202, responses=documented(404))
async def install_ide(request: Request, caller: Annotated[Principal, may(Action.IDE_INSTALL)], name: Name) -> IdeOut:
    """Install it on the machine that CodeHub runs on; takes some minutes. Asked again meanwhile, nothing changes."""
    return _ide(await provide.get(request, Ides).install(caller, name))


@router.post("/ides/{name}/cancel", status_code=202, responses=documented(404))
async def cancel_ide(request: Request, caller: Annotated[Principal, may(Action.IDE_INSTALL)], name: Name) -> IdeOut:
    """End an installation that is under way. The next one goes on where it ended."""
    return _ide(await provide.get(request, Ides).cancel(caller, name))
