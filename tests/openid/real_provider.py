"""A provider that others wrote (`idpyoidc`), on a port of this machine: its endpoints behind aiohttp.

It lets in whoever comes, as the person it is told to. Everything else is its own: requests, PKCE, codes, tokens, keys.
"""

import contextlib
import json
import pathlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from cryptojwt.key_bundle import KeyBundle
from cryptojwt.key_jar import build_keyjar
from idpyoidc.server import Server
from idpyoidc.server.configure import OPConfiguration
from idpyoidc.server.cookie_handler import CookieHandler

CLIENT_ID, CLIENT_SECRET = "codehub", "a-secret-of-thirty-two-characters"
KEYS = [{"type": "RSA", "use": ["sig"]}, {"type": "EC", "crv": "P-256", "use": ["sig"]}]
ENCRYPTION = {
    "kwargs": {
        "keys": {"key_defs": [{"type": "OCT", "use": ["enc"], "kid": kid} for kid in ("password", "salt")]},
        "iterations": 1,
    }
}
PEOPLE: dict[str, dict[str, Any]] = {
    "mina": {
        "name": "김미나",
        "preferred_username": "mina",
        "email": "mina@school.example",
        "email_verified": True,
        "groups": ["class-3b"],
    },
    "kim": {"name": "Kim", "preferred_username": "kim", "groups": ["staff"]},
}
OIDC = "idpyoidc.server.oidc"
ENDPOINTS = {
    "provider_config": (".well-known/openid-configuration", f"{OIDC}.provider_config.ProviderConfiguration"),
    "authorization": ("authorization", f"{OIDC}.authorization.Authorization"),
    "token": ("token", f"{OIDC}.token.Token"),
    "userinfo": ("userinfo", f"{OIDC}.userinfo.UserInfo"),
    "session": ("session", f"{OIDC}.session.Session"),
}
MORE = {
    "provider_config": {"client_authn_method": None},
    "authorization": {"client_authn_method": None},
    "token": {"client_authn_method": ["client_secret_basic", "client_secret_post"]},
    "userinfo": {"client_authn_method": ["bearer_header"]},
}


def _config(issuer: str) -> dict[str, Any]:
    session = {
        "post_logout_uri_path": "bye",
        "signing_alg": "ES256",
        "logout_verify_url": f"{issuer}/verify_logout",
        "client_authn_method": None,
    }
    jwt = {"class": "idpyoidc.server.token.jwt_token.JWTToken", "kwargs": {"lifetime": 300, "aud": [issuer]}}
    return {
        "issuer": issuer,
        "keys": {"uri_path": "jwks.json", "key_defs": KEYS},
        "preferences": {
            "subject_types_supported": ["public"],
            "scopes_supported": ["openid", "profile", "email", "groups"],
            "claims_supported": ["sub", *PEOPLE["mina"]],
        },
        "scopes_to_claims": {
            "openid": ["sub"],
            "profile": ["name", "preferred_username"],
            "email": ["email", "email_verified"],
            "groups": ["groups"],
        },
        "endpoint": {
            name: {"path": path, "class": cls, "kwargs": MORE.get(name, session)}
            for name, (path, cls) in ENDPOINTS.items()
        },
        "authentication": {
            "anybody": {
                "acr": "urn:oasis:names:tc:SAML:2.0:ac:classes:InternetProtocolPassword",
                "class": "idpyoidc.server.user_authn.user.NoAuthn",
                "kwargs": {"user": "mina"},
            }
        },
        "userinfo": {"class": "idpyoidc.server.user_info.UserInfo", "kwargs": {"db": PEOPLE}},
        "token_handler_args": {
            "code": {"lifetime": 300, "kwargs": {"crypt_conf": ENCRYPTION}},
            "token": jwt,
            "id_token": {"class": "idpyoidc.server.token.id_token.IDToken", "kwargs": {}},
        },
        "add_on": {
            "pkce": {
                "function": "idpyoidc.server.oauth2.add_on.pkce.add_support",
                "kwargs": {"essential": True, "code_challenge_method": ["S256"]},
            }
        },
        "session_params": {"encrypter": ENCRYPTION},
    }


@dataclass
class RealProvider:
    server: Server
    issuer: str
    goodbyes: list[str]  # whom it has logged out
    down: bool = False

    def come_as(self, name: str) -> None:
        self.server.context.authn_broker.db["anybody"]["method"].user = name

    def register(self, callback: str, after_logout: str) -> None:
        self.server.context.cdb[CLIENT_ID] = {
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "client_salt": "salted",
            "redirect_uris": [(callback, None)],
            "post_logout_redirect_uri": (after_logout, None),
            "response_types_supported": ["code"],
            "token_endpoint_auth_method": "client_secret_basic",
            "allowed_scopes": ["openid", "profile", "email", "groups"],
        }
        self.server.keyjar.add_symmetric(CLIENT_ID, CLIENT_SECRET)

    def key_ids(self) -> set[str]:
        return {key["kid"] for key in self.server.keyjar.export_jwks()["keys"]}

    def rotate(self) -> None:
        """New keys, and the old ones are not published any more."""
        new = build_keyjar(KEYS).export_jwks(private=True)
        for owner in ("", self.issuer):
            self.server.keyjar.return_issuer(owner).set([KeyBundle(new["keys"])])

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            raise web.HTTPServiceUnavailable
        path = request.path.strip("/")
        if path == "jwks.json":
            return web.json_response(self.server.keyjar.export_jwks())
        if path == "verify_logout":
            return self._verified_logout(request)
        name = next((name for name, (at, _) in ENDPOINTS.items() if at == path), None)
        if name is None:
            raise web.HTTPNotFound
        asked = dict(await request.post() if request.method == "POST" else request.query)
        return self._ask(self.server.get_endpoint(name), asked, request)

    def _ask(self, endpoint: Any, asked: dict[str, Any], request: web.Request) -> web.Response:
        handler = self.server.context.cookie_handler
        cookies = [{"name": name, "value": value} for name, value in request.cookies.items()]
        info = {
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "method": request.method,
            "url": str(request.url),
            "cookie": [c for c in cookies if c["name"] in handler.name.values()],
        }
        parsed = endpoint.parse_request(asked, http_info=info)
        args = parsed if "error" in parsed else endpoint.process_request(parsed, http_info=info)
        return self._respond(endpoint, args, parsed)

    @staticmethod
    def _respond(endpoint: Any, args: Any, parsed: Any) -> web.Response:
        if "redirect_location" in args:
            return web.Response(status=302, headers={"location": args["redirect_location"]})
        if "error" in args:
            return web.json_response(args.to_dict() if hasattr(args, "to_dict") else dict(args), status=400)
        made = endpoint.do_response(request=parsed, **args)
        if endpoint.response_placement == "url":
            response = web.Response(status=302, headers={"location": made["response"]})
        else:
            response = web.Response(body=made["response"], content_type="application/json")
        for cookie in made.get("cookie", args.get("cookie", [])):
            response.set_cookie(cookie["name"], cookie["value"], path="/")
        return response

    def _verified_logout(self, request: web.Request) -> web.Response:
        """The page on which a person would be asked; here they say yes."""
        session = self.server.get_endpoint("session")
        said = session.unpack_signed_jwt(request.query["sjwt"])
        info = self.server.context.session_manager.get_session_info(said["sid"])
        session.do_verified_logout(sid=said["sid"])
        self.goodbyes.append(info["user_id"])
        return web.Response(status=302, headers={"location": said["redirect_uri"]})


@contextlib.asynccontextmanager
async def running(folder: pathlib.Path) -> AsyncIterator[RealProvider]:
    holder: list[RealProvider] = []
    app = web.Application()

    async def answer(request: web.Request) -> web.StreamResponse:
        return await holder[0].answer(request)

    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    issuer = f"http://127.0.0.1:{runner.addresses[0][1]}"
    cookies = CookieHandler(
        sign_key="k" * 48, name={"session": "op", "register": "op_reg", "session_management": "op_sman"}
    )
    config = OPConfiguration(conf=json.loads(json.dumps(_config(issuer))), base_path=str(folder))
    server = Server(config, cwd=str(folder), cookie_handler=cookies)
    # A client that proves nothing is let in at the end of a session only without this.
    server.context.client_authn_methods.pop("none", None)
    holder.append(RealProvider(server, issuer, []))
    try:
        yield holder[0]
    finally:
        await runner.cleanup()
