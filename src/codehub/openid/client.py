"""What is asked of one provider: what it publishes, its keys, and what a code is worth. Used by `service`.

Documents and keys are kept for an hour. A token with an unknown key has them read anew once, because keys are rotated;
not more often than every half minute, whatever tokens say. While a provider is away, what was read of it stays good for
a day, and those who come at once do not each wait for it.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

from joserfc.jwk import Key

from codehub import logs
from codehub.clock import Clock
from codehub.openid import rules, tokens
from codehub.openid.errors import (
    BadTokenError,
    LoginRefusedError,
    ProviderRefusedError,
    UnknownKeyError,
)
from codehub.openid.fetch import Fetcher
from codehub.openid.model import Claims, Flow, Metadata, Tokens
from codehub.settings.openid import Provider

log = logs.get()
T = TypeVar("T")
FRESH_SECONDS = 3600.0
KEPT_SECONDS = 86_400.0
AGAIN_SECONDS = 30.0  # between two readings because of an unknown key
AWAY_SECONDS = 3.0  # in which nobody waits for a provider again that has just not answered
DISCOVERY = "/.well-known/openid-configuration"
LONGEST_ERROR = 40


class Kept(Generic[T]):
    """Something read of a provider, by one request at a time."""

    def __init__(self, clock: Clock, read: Callable[[], Awaitable[T]]) -> None:
        self._clock = clock
        self._read = read
        self._reading = asyncio.Lock()
        self._value: T | None = None
        self._read_at = self._failed_at = float("-inf")
        self._failure: LoginRefusedError | None = None

    async def get(self, *, newer_than: float = FRESH_SECONDS) -> T:
        """As it was read within so many seconds; older where it cannot be read now.

        While it is away, one request waits for it, and the others are told at once: each that waits takes a place of
        those that strangers behind one address have.
        """
        if self._failure and self._reading.locked():
            return self._older(self._failure)
        async with self._reading:
            now = self._clock.monotonic()
            if self._value is not None and now - self._read_at < newer_than:
                return self._value
            if self._failure and now - self._failed_at < AWAY_SECONDS:
                return self._older(self._failure)
            try:
                self._value = await self._read()
            except LoginRefusedError as e:
                self._failure, self._failed_at = e, self._clock.monotonic()
                return self._older(e)
            self._read_at, self._failure = now, None
            return self._value

    def _older(self, failure: LoginRefusedError) -> T:
        if self._value is None or self._clock.monotonic() - self._read_at > KEPT_SECONDS:
            raise type(failure)(failure.detail)
        return self._value


class Client:
    def __init__(self, provider: Provider, fetcher: Fetcher, clock: Clock) -> None:
        self.provider = provider
        self._fetcher = fetcher
        self._clock = clock
        self._metadata = Kept(clock, self._read_metadata)
        self._keys = Kept(clock, self._read_keys)

    async def metadata(self) -> Metadata:
        return await self._metadata.get()

    async def _read_metadata(self) -> Metadata:
        document = await self._fetcher.get(self.provider.issuer.rstrip("/") + DISCOVERY)
        return rules.read_metadata(self.provider, document)

    async def _read_keys(self) -> Sequence[Key]:
        return tokens.read_keys(await self._fetcher.get((await self.metadata()).jwks_uri))

    async def authorization_url(self, flow: Flow, challenge: str) -> str:
        asked = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": flow.redirect_uri,
            "scope": " ".join(self.provider.scopes),
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return _with_query((await self.metadata()).authorization_endpoint, asked)

    async def logout_url(self, id_token: str | None, back_to: str) -> str | None:
        """Where a browser is sent to be logged out there; None: there is no such place."""
        endpoint = (await self.metadata()).end_session_endpoint
        if not endpoint or not self.provider.logout:
            return None
        # The token names us, too; some providers stumble over being told twice.
        who = {"id_token_hint": id_token} if id_token else {"client_id": self.provider.client_id}
        return _with_query(endpoint, {**who, "post_logout_redirect_uri": back_to})

    async def claims(self, flow: Flow, code: str) -> tuple[Claims, str]:
        """What it says of the person behind this code, checked; and the ID token, for the logout."""
        metadata = await self.metadata()
        given = await self._exchange(metadata, flow, code)
        algorithm, claims = await self._verified(given.id_token)
        rules.check_claims(claims, self.provider, flow.nonce, self._clock.now())
        if given.access_token is None:
            return claims, given.id_token
        rules.check_access_token(claims, algorithm, given.access_token)
        if metadata.userinfo_endpoint and rules.wants_more(claims, self.provider):
            more = await self._fetcher.get(metadata.userinfo_endpoint, bearer=given.access_token)
            if more.get("sub") != claims["sub"]:
                raise BadTokenError("what it tells of the person is another one's")
            claims = rules.merged(claims, more)
        return claims, given.id_token

    async def _exchange(self, metadata: Metadata, flow: Flow, code: str) -> Tokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": flow.redirect_uri,
            "code_verifier": flow.verifier,
        }
        headers, more = self._proof(metadata)
        status, answer = await self._fetcher.post(metadata.token_endpoint, {**form, **more}, headers)
        id_token, access_token = answer.get("id_token"), answer.get("access_token")
        if status != 200:
            raise self._refusal(answer.get("error"), status)
        if not isinstance(id_token, str):
            raise BadTokenError("it sent no ID token")
        if isinstance(access_token, str) and not (access_token.isascii() and access_token.isprintable()):
            raise BadTokenError("it sent no usable access token")
        return Tokens(id_token, access_token if isinstance(access_token, str) else None)

    def _proof(self, metadata: Metadata) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Who we are, as headers and fields: by our secret, as it wants to be told; without one, PKCE is the proof."""
        client_id, secret = self.provider.client_id, self.provider.client_secret
        if secret is None:
            return {}, {"client_id": client_id}
        if "client_secret_basic" not in metadata.token_auth_methods and (
            "client_secret_post" in metadata.token_auth_methods
        ):
            return {}, {"client_id": client_id, "client_secret": secret}
        pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
        return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, {}

    @staticmethod
    def _refusal(error: object, status: int) -> LoginRefusedError:
        said = error[:LONGEST_ERROR] if isinstance(error, str) and error.isprintable() else f"status {status}"
        if error == "invalid_grant":
            return BadTokenError("it does not take the code (any more): invalid_grant")
        return ProviderRefusedError(f"it refuses to say who it was: {said}")

    async def _verified(self, token: str) -> tuple[str, Claims]:
        try:
            return tokens.verified(token, await self._keys.get())
        except UnknownKeyError:
            newer = await self._keys.get(newer_than=AGAIN_SECONDS)
            return tokens.verified(token, newer)


def _with_query(endpoint: str, said: Mapping[str, str]) -> str:
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(said)}"
