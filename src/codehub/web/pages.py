"""The start page and the API's documentation."""

import importlib.resources

from fastapi import APIRouter, Depends, Request
from starlette.responses import FileResponse, JSONResponse, Response

from codehub.http import access
from codehub.http.access import NeedsLoginUnlessLocal, names
from codehub.policy.actions import Action
from codehub.web import dashboard, sign_in
from codehub.web.login import Visitor
from codehub.web.rendering import render

router = APIRouter(include_in_schema=False)


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
