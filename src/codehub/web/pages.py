"""The few pages there are so far: home, logging in by link, the API's documentation. Server-rendered, no JavaScript."""

import importlib.resources
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from codehub.auth.model import Caller
from codehub.errors import UnauthenticatedError
from codehub.web import texts
from codehub.web.access import origin_of, set_cookie, visitor

router = APIRouter(include_in_schema=False)
templates = Environment(
    loader=PackageLoader("codehub.web"), autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True
)


def static_files() -> StaticFiles:
    return StaticFiles(directory=str(importlib.resources.files("codehub.web") / "static"))


async def _visitor_or_none(request: Request) -> Caller | None:
    """A page for somebody whose session ended is the page for somebody who is not logged in."""
    try:
        return await visitor(request)
    except UnauthenticatedError:
        return None


Visitor = Annotated[Caller | None, Depends(_visitor_or_none)]


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    language = texts.choose(request.query_params.get("lang"), request.headers.get("accept-language", ""))
    html = templates.get_template(template).render(t=texts.TEXTS[language], language=language, **values)
    return HTMLResponse(html, status, {"content-language": language, "vary": "accept-language, cookie"})


@router.api_route("/", methods=["GET", "HEAD"])
async def home(request: Request, caller: Visitor) -> Response:
    if caller is None:
        return render(request, "welcome.html")
    return render(request, "home.html", caller=caller)


@router.api_route("/login/{secret}", methods=["GET", "HEAD"])
async def log_in(request: Request, secret: str, caller: Visitor) -> Response:
    """Following the link logs in. What merely looks ahead (a preview, a prefetch) must not use it up."""
    people = request.app.state.services.people
    looks_ahead = request.method == "HEAD" or "prefetch" in request.headers.get("sec-purpose", "")
    if looks_ahead:
        return Response(status_code=204 if await people.link_works(secret) else 404)
    try:
        cookie = await people.log_in(secret, request.headers.get("user-agent", ""), origin_of(request))
    except UnauthenticatedError:
        if caller:  # a double click, or the back button, after it had worked
            return RedirectResponse("/", 303)
        return render(request, "link_used.html", status=410)
    set_cookie(request, request.app.state.services.settings, cookie)
    return RedirectResponse("/", 303)


@router.post("/logout")
async def log_out(request: Request, caller: Visitor) -> Response:
    if caller:
        await request.app.state.services.people.log_out(caller)
    set_cookie(request, request.app.state.services.settings, "")
    return RedirectResponse("/", 303)


@router.get("/docs")
async def documentation(request: Request) -> Response:
    return render(request, "docs.html", api=request.app.openapi())
