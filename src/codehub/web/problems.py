"""Errors become HTTP here and nowhere else: RFC 9457 problem bodies with a stable `code`."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from codehub import logs
from codehub.errors import CodeHubError, UnavailableError

log = logs.get()
MEDIA_TYPE = "application/problem+json"
CODES = {400: "INVALID_REQUEST", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 413: "TOO_LARGE", 403: "FORBIDDEN"}
RETRY_SECONDS = "2"


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


def body(status: int, code: str, title: str, detail: str, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code, **(extra or {})}


def answer(error: CodeHubError) -> Response:
    headers = {}
    if isinstance(error, UnavailableError):
        headers["Retry-After"] = RETRY_SECONDS
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    content = body(error.status, error.code, error.title, error.detail, error.extra)
    return JSONResponse(content, error.status, headers, MEDIA_TYPE)


def plain(status: int, detail: str | None = None, headers: Mapping[str, str] | None = None) -> Response:
    phrase = HTTPStatus(status).phrase
    code = CODES.get(status, phrase.upper().replace(" ", "_").replace("-", "_"))
    return JSONResponse(body(status, code, phrase, detail or phrase), status, headers, MEDIA_TYPE)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI for the problems a route may answer with."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


async def _on_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, CodeHubError)  # noqa: S101 (registered for it)
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("Request failed", code=error.code, detail=error.detail)
    return answer(error)


async def _on_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    errors = [{"field": _field(e["loc"]), "message": e["msg"]} for e in error.errors()]
    detail = "; ".join(f"{e['field']}: {e['message']}" for e in errors)
    return JSONResponse(
        body(400, "INVALID_REQUEST", "The request is not valid", detail, {"errors": errors}), 400, media_type=MEDIA_TYPE
    )


def _field(location: tuple[int | str, ...]) -> str:
    """("body", "name") is `name` to whoever wrote the request."""
    parts = [str(part) for part in location]
    return ".".join(parts[1:]) or parts[0]


async def _on_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return JSONResponse(
            body(400, "INVALID_REQUEST", "The request is not valid", error.detail, {"errors": []}),
            400,
            error.headers,
            MEDIA_TYPE,
        )
    return plain(error.status_code, error.detail, error.headers)


async def _on_bug(_request: Request, _error: Exception) -> Response:
    return plain(500, "This is our mistake; the log has the details under this request's id.")


def install(app: FastAPI) -> None:
    app.add_exception_handler(CodeHubError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_bug)
