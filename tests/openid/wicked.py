"""A provider of our own that does what it is told, also what no good one would do. Signs with real keys.

Left alone it is a good one: a person who comes is `claims["sub"]`, at once, and codes are good once, with PKCE.
"""

import asyncio
import base64
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from codehub.clock import Clock

CLIENT_ID = "codehub"
CLIENT_SECRET = "between-the-two-of-us"


def half_hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:16]).rstrip(b"=").decode()


def new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


@dataclass
class Wicked:
    issuer: str
    clock: Clock
    claims: dict[str, Any] = field(default_factory=dict)  # of who comes, and whatever a token says otherwise
    left_out: set[str] = field(default_factory=set)  # claims
    userinfo: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, str] = field(default_factory=dict)  # what its redirect back says otherwise
    discovery: dict[str, Any] = field(default_factory=dict)  # what it says of itself otherwise
    token_answer: dict[str, Any] = field(default_factory=dict)
    sign: Callable[[dict[str, Any]], str] | None = None
    key: RSAKey = field(default_factory=lambda: new_key("first"))
    published: list[Any] | None = None
    status: int = 0  # of every answer, if not 0
    redirects_to: str = ""  # of every answer
    oversized: bool = False
    hangs: bool = False
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)  # paths, in order
    used_codes: set[str] = field(default_factory=set)
    replays_codes: bool = False  # gives tokens for a code again
    logouts: list[dict[str, str]] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._misbehave])
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/jwks", self._jwks)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        app.router.add_get("/userinfo", self._userinfo)
        app.router.add_get("/logout", self._logout)
        return app

    @web.middleware
    async def _misbehave(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(request.path)
        while self.hangs:
            await asyncio.sleep(0.02)
        if self.redirects_to:
            raise web.HTTPFound(self.redirects_to)
        if self.oversized:
            return web.Response(body=b" " * 2_000_000)
        if self.status:
            return web.json_response({"error": "oh"}, status=self.status)
        answered: web.StreamResponse = await handler(request)
        return answered

    async def _discovery(self, request: web.Request) -> web.Response:
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/logout",
            "authorization_response_iss_parameter_supported": True,
        }
        return web.json_response({k: v for k, v in {**document, **self.discovery}.items() if v is not None})

    async def _jwks(self, request: web.Request) -> web.Response:
        keys = KeySet([self.key]).as_dict(private=False)["keys"] if self.published is None else self.published
        return web.json_response({"keys": keys})

    async def _authorize(self, request: web.Request) -> web.Response:
        asked, code = dict(request.query), secrets.token_urlsafe()
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        self.codes[code] = asked
        said = {"code": code, "state": asked["state"], "iss": self.issuer, **self.answer}
        said = {k: v for k, v in said.items() if v}
        raise web.HTTPFound(f"{asked['redirect_uri']}?{urlencode(said)}")

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        code = str(form["code"])
        begun = self.codes.get(code)
        challenge = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        if (
            begun is None
            or (code in self.used_codes and not self.replays_codes)
            or base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != begun["code_challenge"]
            or form["redirect_uri"] != begun["redirect_uri"]
        ):
            return web.json_response({"error": "invalid_grant"}, status=400)
        given = request.headers.get("authorization", "")
        if base64.b64decode(given.removeprefix("Basic ")).decode() != f"{CLIENT_ID}:{CLIENT_SECRET}":
            return web.json_response({"error": "invalid_client"}, status=401)
        self.used_codes.add(code)
        answer = {"access_token": "open-sesame", "token_type": "Bearer", "id_token": self.id_token(begun["nonce"])}
        return web.json_response({k: v for k, v in {**answer, **self.token_answer}.items() if v is not None})

    def id_token(self, nonce: str) -> str:
        now = int(self.clock.timestamp())
        claims = {
            "iss": self.issuer,
            "sub": "s-mina",
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            "at_hash": half_hash("open-sesame"),
            "name": "김미나",
            "preferred_username": "mina",
            "email": "mina@school.example",
            "email_verified": True,
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if name not in self.left_out}
        if self.sign:
            return self.sign(claims)
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    async def _userinfo(self, request: web.Request) -> web.Response:
        assert request.headers["authorization"] == "Bearer open-sesame"
        return web.json_response({"sub": self.claims.get("sub", "s-mina"), **self.userinfo})

    async def _logout(self, request: web.Request) -> web.Response:
        self.logouts.append(dict(request.query))
        raise web.HTTPFound(request.query["post_logout_redirect_uri"])


@contextlib.asynccontextmanager
async def running(clock: Clock) -> AsyncIterator[Wicked]:
    provider = Wicked("", clock)
    runner = web.AppRunner(provider.app(), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    provider.issuer = f"http://127.0.0.1:{port}"
    try:
        yield provider
    finally:
        await runner.cleanup()
