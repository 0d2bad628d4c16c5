"""What every request passes through, as plain ASGI: an id, log line and metrics; size limit; headers; CSRF."""

import time
from collections.abc import Mapping
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from codehub import ids, logs, metrics
from codehub.gate import hosts
from codehub.gate.hosts import Hosts
from codehub.http import problems, rules
from codehub.settings import ServerConfig

log = logs.get()

METHODS = {"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}  # others are counted together
QUIET = {"/healthz", "/readyz", "/metrics"}  # asked every few seconds by machines
CLIENT_LEFT = 499  # as nginx counts it: no client is left to read the answer
LOGGED_PATH = 300  # characters
LONGEST_HOST = 260  # with its port
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; "
        "form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`: browsers on plain HTTP would then say `Origin: null` even on our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


def policy_in_frame_of(ancestors: str) -> str:
    """The policy of a page that these pages, and no others, may show in a frame."""
    policy = SECURITY_HEADERS["content-security-policy"]
    return policy.replace("frame-ancestors 'none'", f"frame-ancestors {ancestors}")


class RequestContext:
    """Outermost: gives the request an id and an address, logs and counts it, sets the headers every answer has.

    Answers for our own mistakes too: the framework would do so outside of this, without headers or id.
    """

    def __init__(self, app: ASGIApp, server: ServerConfig, *, secure: bool, forms_to: str = "") -> None:
        """`forms_to`: origins that a form's answer may lead to, after creating a workspace for example."""
        self._app = app
        self._server = server
        self._headers = {**SECURITY_HEADERS, **({"strict-transport-security": "max-age=31536000"} if secure else {})}
        if forms_to:
            self._headers["content-security-policy"] += f" {forms_to}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state.update(request_id=ids.new(16), address=self._address(scope), cookie=None)
        state["events"] = scope["app"].state.services.hub.position  # before anything that a page shows is read
        status = 0
        begun = time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message, state)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=state["request_id"]):
            try:
                await self._app(scope, receive, send_with_headers)
            except ClientDisconnect:  # before all of the body had come, or while the answer went out
                log.debug("The client left")
                status = status or CLIENT_LEFT
            except Exception:
                log.exception("A mistake of ours")
                if status:
                    raise  # too late to say so: the server cuts the connection
                response = await problems.on_bug(Request(scope))
                await response(scope, receive, send_with_headers)
            finally:
                self._note(scope, status or 500, time.perf_counter() - begun)

    def _address(self, scope: Scope) -> str | None:
        peer = scope["client"][0] if scope.get("client") else None
        forwarded_for = Headers(scope=scope).getlist("x-forwarded-for")
        return rules.client_address(peer, forwarded_for, self._server.trusted_proxies)

    def _add_headers(self, message: Message, state: dict[str, Any]) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self._headers.items():
            headers.setdefault(name, value)
        headers.setdefault("cache-control", "no-store")
        headers["x-request-id"] = state["request_id"]
        if state["cookie"]:
            headers.append("set-cookie", state["cookie"])

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method, path = scope["method"], scope["path"]
        route = getattr(scope.get("route"), "path", "unmatched")
        metrics.HTTP_REQUESTS.labels(method if method in METHODS else "other", route, str(status)).inc()
        metrics.HTTP_SECONDS.labels(route).observe(seconds)
        if path not in QUIET:
            log.info("Request", method=method, path=path[:LOGGED_PATH], status=status, ms=round(seconds * 1000, 1))


class OwnHosts:
    """Refuses what is meant for another host's name, before anything else looks at it."""

    def __init__(self, app: ASGIApp, ours: Hosts) -> None:
        self._app = app
        self._ours = ours

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")  # an old client may name none
        if scope["type"] != "http" or not host or (len(host) <= LONGEST_HOST and self._ours.accepts(host)):
            await self._app(scope, receive, send)
            return
        refusal = problems.plain(hosts.STATUS, hosts.DETAIL)
        if "text/html" in headers.get("accept", ""):
            page = self._ours.page(headers.get("accept-language", ""))
            refusal = HTMLResponse(page, hosts.STATUS, {"content-security-policy": hosts.POLICY})
        await refusal(scope, receive, send)


class HeadAsGet:
    """HEAD is answered wherever GET is; the server leaves the body out. Routes see `request.state.head`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["state"]["head"] = scope["method"] == "HEAD"
        if not scope["state"]["head"]:
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message.get("more_body"):  # a stream may have no end: its head is all that was asked for
                await send({**message, "body": b"", "more_body": False})
                raise _EnoughError
            await send(message)

        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, send_head)
        except* _EnoughError:
            pass
        finally:
            scope["route"] = as_get.get("route")


class _EnoughError(Exception):
    pass


class SameOriginWrites:
    """CSRF: a browser that carries a cookie may only write from our own pages."""

    def __init__(self, app: ASGIApp, public_url: str | None) -> None:
        self._app = app
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        writes = scope["type"] == "http" and scope["method"] not in rules.SAFE_METHODS
        headers = Headers(scope=scope)
        if writes and not (
            rules.logs_in_by_token(scope["path"], headers) or rules.may_write(headers, self._public_url)
        ):
            refusal = problems.plain(403, "this request comes from another site's page")
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


class BodyLimit:
    """Refuses bodies that are too large, by what they announce or by what arrives."""

    def __init__(self, app: ASGIApp, limit: int, larger: Mapping[str, int]) -> None:
        """`larger`: the limits of what begins with these paths."""
        self._app = app
        self._limit = limit
        self._larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit_of(scope["path"])
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced) > limit:
            refusal = await problems.page_for(Request(scope), 413, CLOSE) or problems.plain(
                413, _complaint(limit), CLOSE
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, self._counting(receive, limit), send)

    def _limit_of(self, path: str) -> int:
        return max([limit for start, limit in self._larger.items() if path.startswith(start)], default=self._limit)

    def _counting(self, receive: Receive, limit: int) -> Receive:
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                # Of this class, because the framework takes every other error in a body for malformed JSON.
                raise HTTPException(413, _complaint(limit), CLOSE)
            return message

        return counted


def _complaint(limit: int) -> str:
    return f"the body has more than {limit} bytes"


CLOSE = {"connection": "close"}  # the rest of the body is not read
