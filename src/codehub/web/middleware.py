"""What every request passes through, as plain ASGI: an id, log line and metrics; size limit; headers; CSRF."""

import time
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from codehub import ids, logs, metrics
from codehub.settings import ServerConfig
from codehub.web import problems

log = logs.get()
SAFE_METHODS = {"GET", "HEAD", "OPTIONS", "TRACE"}
QUIET = {"/healthz", "/readyz", "/metrics"}  # asked every few seconds by machines
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class RequestContext:
    """Outermost: gives the request an id and an address, logs and counts it, sets the headers every answer has."""

    def __init__(self, app: ASGIApp, server: ServerConfig, *, secure: bool) -> None:
        self._app = app
        self._server = server
        self._headers = {**SECURITY_HEADERS, **({"strict-transport-security": "max-age=31536000"} if secure else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = ids.new(16)
        state = scope.setdefault("state", {})
        state.update(request_id=request_id, address=self.client_address(scope), cookies=[])
        status = 500
        begun = time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message, state)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_headers)
            finally:
                self._note(scope, status, time.perf_counter() - begun)

    def client_address(self, scope: Scope) -> str | None:
        """The nearest address that is not one of our own proxies; X-Forwarded-For counts only behind those."""
        peer = scope["client"][0] if scope.get("client") else None
        hops = [h.strip() for h in Headers(scope=scope).get("x-forwarded-for", "").split(",") if h.strip()]
        while peer and hops and self._trusted(peer):
            peer = hops.pop()
        return peer

    def _trusted(self, address: str) -> bool:
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._server.trusted_proxies)

    def _add_headers(self, message: Message, state: dict[str, Any]) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self._headers.items():
            headers.setdefault(name, value)
        headers.setdefault("cache-control", "no-store")
        headers["x-request-id"] = state["request_id"]
        for cookie in state["cookies"]:
            headers.append("set-cookie", cookie)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unmatched")
        metrics.HTTP_REQUESTS.labels(scope["method"] if status != 405 else "other", route, str(status)).inc()
        metrics.HTTP_SECONDS.labels(route).observe(seconds)
        if scope["path"] not in QUIET:
            log.info("Request", method=scope["method"], path=scope["path"], status=status, ms=round(seconds * 1000, 1))


class SameOriginWrites:
    """CSRF: a browser that carries a cookie may only write from our own pages.

    Browsers say where a request comes from. Workspaces' pages are of the same *site* as ours, so `SameSite` cookies do
    not keep them out; `Sec-Fetch-Site` and `Origin` do. Programs send neither, and carry no cookie of somebody else.
    """

    def __init__(self, app: ASGIApp, public_url: str | None) -> None:
        self._app = app
        self._public_origin = public_url.rstrip("/") if public_url else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in SAFE_METHODS and not self._allowed(Headers(scope=scope)):
            refusal = problems.plain(403, "this request comes from another site's page")
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _allowed(self, headers: Headers) -> bool:
        if "authorization" in headers:
            return True  # no browser adds that by itself
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:
            return site in {"same-origin", "none"}
        if origin is None:
            return True
        return origin == self._public_origin or origin.partition("://")[2] == headers.get("host")


class BodyLimit:
    """Refuses bodies that are too large, by what they announce or by what arrives."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdigit() and int(announced) > self._limit:
            await self._refuse(scope, receive, send)
            return
        try:
            await self._app(scope, self._counting(receive), send)
        except _TooLargeError:
            await self._refuse(scope, receive, send)

    def _counting(self, receive: Receive) -> Callable[[], Awaitable[Message]]:
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise _TooLargeError
            return message

        return counted

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = problems.plain(413, f"the body has more than {self._limit} bytes", {"connection": "close"})
        await refusal(scope, receive, send)


class _TooLargeError(Exception):
    pass
