"""Errors become HTTP here and nowhere else: RFC 9457 problem bodies with a stable `code`, pages for browsers.

The waiting room's API has a shape of its own, which its clients relied on before: `{"error": {"code", "message"}}`.
"""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from codehub import field_errors, logs
from codehub.errors import ERRORS_AT_MOST, CodeHubError, InvalidRequestError, UnavailableError, printable

log = logs.get()
MEDIA_TYPE = "application/problem+json"
CODES = {400: "INVALID_REQUEST", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 413: "TOO_LARGE", 403: "FORBIDDEN"}
ROUTED_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
RETRY_SECONDS = "2"
ERROR_OBJECTS_BELOW = "/api/v1/queue/"
ErrorPage = Callable[[Request, int], Awaitable[Response | None]]


class FieldError(BaseModel):
    field: str = Field(examples=["name"])
    message: str


class Problem(BaseModel):
    """RFC 9457 problem details. `code` is stable; `detail` is for people."""

    type: str = Field(examples=["about:blank"])
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldError] | None = Field(default=None, description="Which fields of the request are wrong.")


class ErrorDetail(BaseModel):
    """`code` is stable; `message` is for people."""

    code: str = Field(examples=["TOKEN_EXPIRED"])
    message: str
    position: int | None = Field(default=None, description="With NOT_YOUR_TURN: where one stands.")
    errors: list[FieldError] | None = Field(default=None, description="Which fields of the request are wrong.")


class ErrorObject(BaseModel):
    """Every error of the waiting room's API."""

    error: ErrorDetail


class ProblemResponse(JSONResponse):
    """Which shape it has, its path says: what middleware refuses has the same one as what a route does."""

    def __init__(self, status: int, headers: Mapping[str, str] | None, members: Mapping[str, Any]) -> None:
        super().__init__({"type": "about:blank", "status": status, **members}, status, headers, MEDIA_TYPE)
        self._sent_headers = headers
        self._members = members

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(ERROR_OBJECTS_BELOW):
            await JSONResponse(error_object(self._members), self.status_code, self._sent_headers)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def error_object(members: Mapping[str, Any]) -> dict[str, Any]:
    more = {name: value for name, value in members.items() if name not in {"title", "detail", "code"}}
    return {"error": {"code": members["code"], "message": members["detail"], **more}}


def answer(error: CodeHubError, headers: Mapping[str, str] | None = None) -> Response:
    return _body(error.status, headers, title=error.title, detail=error.detail, code=error.code, **error.extra)


def plain(status: int, detail: str | None = None, headers: Mapping[str, str] | None = None) -> Response:
    phrase = HTTPStatus(status).phrase
    code = CODES.get(status, phrase.upper().replace(" ", "_").replace("-", "_"))
    return _body(status, headers, title=phrase, detail=detail or phrase, code=code)


def _body(status: int, headers: Mapping[str, str] | None = None, **members: Any) -> Response:
    return ProblemResponse(status, headers, members)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI for the problems a route may answer with."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def documented_objects(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The same for errors of the waiting room's shape."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorObject"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def install(app: FastAPI, page: ErrorPage) -> None:
    """`page`: the same for a person in a browser; None when a program asked."""
    app.state.error_page = page
    app.add_exception_handler(CodeHubError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


async def on_bug(request: Request) -> Response:
    page = await page_for(request, 500)
    return page or plain(500, "This is our mistake; the log has the details under this request's id.")


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CodeHubError)  # noqa: S101 (registered for it)
    headers: dict[str, str] = {}
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("Request failed", code=error.code, detail=error.detail)
    if isinstance(error, UnavailableError):
        # The log says which server and why; that is for the operator only.
        error, headers = UnavailableError("try again in a moment"), {"retry-after": RETRY_SECONDS}
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    return await page_for(request, error.status, headers) or answer(error, headers)


async def _on_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    found = error.errors()
    errors = [
        {"field": _field(e["loc"]), "message": printable(field_errors.message(e))} for e in found[:ERRORS_AT_MOST]
    ]
    detail = "; ".join(f"{e['field']}: {e['message']}" for e in errors)
    more = f"; and {len(found) - ERRORS_AT_MOST} more" if len(found) > ERRORS_AT_MOST else ""
    kind = InvalidRequestError
    return _body(kind.status, title=kind.title, detail=detail + more, code=kind.code, errors=errors)


def _field(location: tuple[int | str, ...]) -> str:
    """("body", "name") is `name` to the client that wrote the request."""
    parts = [printable(str(part)) for part in location]
    if parts[0] == "body" and len(location) == 2 and isinstance(location[1], int):
        return "body"  # malformed JSON, and where
    return ".".join(parts[1:]) or parts[0]


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return answer(InvalidRequestError("cannot be read", field="body"))
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = _allowed(request) or headers.get("Allow", "")
    return await page_for(request, error.status_code, headers) or plain(error.status_code, error.detail, headers)


def _allowed(request: Request) -> str:
    """Every method this path has: the framework names only those of the first route it tried."""
    routes = request.app.routes
    scope = dict(request.scope)
    found = [m for m in ROUTED_METHODS if any(r.matches({**scope, "method": m})[0] is Match.FULL for r in routes)]
    return ", ".join(["HEAD", *found] if "GET" in found else found)


async def page_for(request: Request, status: int, headers: Mapping[str, str] | None = None) -> Response | None:
    page: ErrorPage = request.app.state.error_page
    found = await page(request, status)
    if found is not None:
        found.headers.update(headers or {})
    return found
