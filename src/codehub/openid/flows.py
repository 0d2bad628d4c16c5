"""Logins that have begun: one record each, in Redis, for ten minutes; and what a browser holds to finish its own.

A record is taken away as it is read, so that an answer of a provider is good once. The browser's cookie is signed and
bound to the record by a fingerprint: an answer that another browser asked for, which would log this one in as another
person, finds nothing.
"""

import base64
import hashlib
import json
from dataclasses import asdict, replace
from typing import Any

from codehub import ids
from codehub.auth.signing import Signer, fingerprint
from codehub.clock import Clock
from codehub.db.redis import FAILURES, Client
from codehub.errors import UnavailableError
from codehub.openid.errors import FlowOverError
from codehub.openid.model import Flow, Subject

SECONDS = 600  # to log in there: with a second factor, and a password that has to be looked up
OVER = "there is no such login under way in this browser"


def challenge_of(verifier: str) -> str:
    """PKCE, S256."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class Flows:
    def __init__(self, client: Client, clock: Clock, secret_key: str) -> None:
        self._redis = client
        self._clock = clock
        self._signer = Signer(secret_key, "openid-browser")

    def browser_secret(self, cookie: str) -> str | None:
        """What this browser holds; None: nothing of ours, or from long ago."""
        secret, _, until = (self._signer.verify(cookie) or "").partition(".")
        return secret if until.isdecimal() and int(until) > self._clock.timestamp() else None

    def browser_cookie(self, secret: str) -> str:
        """The same secret for longer: logins that began in two tabs can both be finished."""
        return self._signer.sign(f"{secret}.{int(self._clock.timestamp()) + SECONDS}")

    async def begin(
        self, provider: str, browser_secret: str, redirect_uri: str, person_id: str, session_id: str
    ) -> Flow:
        state, nonce, verifier = ids.new_secret(), ids.new_secret(), ids.new_secret()
        held = fingerprint(browser_secret).hex()
        flow = Flow(provider, state, nonce, verifier, held, redirect_uri, person_id, session_id)
        await self._keep("flow", state, asdict(replace(flow, state="")))
        return flow

    async def peek(self, state: str, browser_secret: str | None) -> Flow:
        """Without taking it: on the way to the provider."""
        return self._flow(await self._do(self._redis.get(_key("flow", state))), state, browser_secret)

    async def take(self, state: str, browser_secret: str | None) -> Flow:
        return self._flow(await self._do(self._redis.getdel(_key("flow", state))), state, browser_secret)

    @staticmethod
    def _flow(found: Any, state: str, browser_secret: str | None) -> Flow:
        flow = replace(Flow(**json.loads(found)), state=state) if found else None
        if flow is None or browser_secret is None or fingerprint(browser_secret).hex() != flow.browser:
            raise FlowOverError(OVER)
        return flow

    async def propose(self, session_id: str, subject: Subject) -> str:
        """Kept until its person has said yes in the same session; the secret that says so."""
        secret = ids.new_secret()
        await self._keep("link", f"{session_id}.{secret}", asdict(subject))
        return secret

    async def proposed(self, session_id: str, secret: str, *, take: bool) -> Subject:
        key = _key("link", f"{session_id}.{secret}")
        found = await self._do(self._redis.getdel(key) if take else self._redis.get(key))
        if not found:
            raise FlowOverError("there is no such login to be linked")
        said = json.loads(found)
        return Subject(**said | {"wanted_names": tuple(said["wanted_names"]), "groups": tuple(said["groups"])})

    async def _keep(self, kind: str, secret: str, record: dict[str, Any]) -> None:
        await self._do(self._redis.set(_key(kind, secret), json.dumps(record), ex=SECONDS))

    @staticmethod
    async def _do(command: Any) -> Any:
        try:
            return await command
        except FAILURES as e:
            raise UnavailableError(f"Redis does not answer: {e}") from e


def _key(kind: str, secret: str) -> str:
    """What is kept names no secret either."""
    return f"codehub:openid:{kind}:{fingerprint(secret).hex()}"
