"""The start page, the API's documentation, and the files that pages use."""

import importlib.resources
import os

from fastapi import APIRouter, Depends, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from codehub.http import access
from codehub.http.access import NeedsLoginUnlessLocal, names
from codehub.policy.actions import Action
from codehub.web import dashboard, sign_in
from codehub.web.login import Visitor
from codehub.web.rendering import render

router = APIRouter(include_in_schema=False)


class Static(StaticFiles):
    """Browsers keep these files, and ask each time whether they are still good: no stale look after an upgrade."""

    action = Action.PUBLIC_STATIC

    def file_response(
        self, full_path: "os.PathLike[str] | str", stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["cache-control"] = "no-cache"
        return response


def static_files() -> StaticFiles:
    return Static(directory=str(importlib.resources.files("codehub.web") / "static"))


@router.get("/", dependencies=[names(Action.PUBLIC_HOME)])
async def home(request: Request, caller: Visitor) -> Response:
    if caller is None:
        return sign_in.page(request, None)
    return await dashboard.show(request, caller)


@router.get("/favicon.ico", dependencies=[names(Action.PUBLIC_STATIC)])
async def favicon() -> Response:
    """Some browsers ask for it whatever a page says."""
    mark = importlib.resources.files("codehub.web") / "static" / "mark.svg"
    return FileResponse(str(mark), media_type="image/svg+xml", headers={"cache-control": "max-age=86400"})


@router.get("/openapi.json", dependencies=[Depends(NeedsLoginUnlessLocal(Action.DOCS_READ))])
async def description(request: Request) -> Response:
    return JSONResponse(request.app.openapi())


@router.get("/docs", dependencies=[Depends(NeedsLoginUnlessLocal(Action.DOCS_READ))])
async def documentation(request: Request, caller: Visitor) -> Response:
    base_url = access.base_url(request)
    return render(request, "docs.html", caller=caller, api=request.app.openapi(), base_url=base_url)
