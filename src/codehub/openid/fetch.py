"""Requests to providers, bounded: in time, in size, in where they lead. Called by `client`."""

import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from codehub import __version__
from codehub.openid.errors import ProviderAwayError, ProviderRefusedError

SECONDS = 10.0  # for one request, all of it: a person waits for it
CONNECT_SECONDS = 5.0
LARGEST = 262_144  # bytes of an answer; discovery documents have a few thousand
CONNECTIONS = 50


class Fetcher:
    """One for all providers of a process. No cookies, no redirects: what a provider says, it says itself."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: str, *, bearer: str | None = None) -> Mapping[str, Any]:
        """A JSON object."""
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        status, body = await self._ask("GET", url, headers=headers)
        if status != 200:
            raise ProviderRefusedError(f"it answered {status}")
        return body

    async def post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, Any]]:
        return await self._ask("POST", url, headers=headers, data=form)

    async def _ask(self, method: str, url: str, **request: Any) -> tuple[int, Mapping[str, Any]]:
        try:
            async with self._open().request(method, url, allow_redirects=False, **request) as answer:
                body = await _bounded(answer)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as e:
            # The error's own words could repeat what was sent.
            raise ProviderAwayError(f"it does not answer ({type(e).__name__})") from None
        if answer.status >= 500 or answer.status == 429:
            raise ProviderAwayError(f"it answered {answer.status}")
        if answer.status >= 300 and answer.status < 400:
            raise ProviderRefusedError(f"it answered {answer.status}, which leads elsewhere")
        return answer.status, _object(body)

    def _open(self) -> aiohttp.ClientSession:
        """With the first request: most labs have no provider."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=SECONDS, connect=CONNECT_SECONDS),
                headers={
                    "accept": "application/json",
                    "accept-encoding": "identity",
                    "user-agent": f"CodeHub/{__version__}",
                },
            )
        return self._session

    async def aclose(self) -> None:
        if self._session:
            await self._session.close()


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_chunked(16_384):
        body += piece
        if len(body) > LARGEST:
            answer.close()
            raise ProviderRefusedError(f"its answer has more than {LARGEST} bytes")
    return bytes(body)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise ProviderRefusedError("its answer is not JSON") from None
    if not isinstance(found, dict):
        raise ProviderRefusedError("its answer is not a JSON object")
    return found
