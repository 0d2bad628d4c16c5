"""Whose limits a request to the platform's own pages and API counts for: a person's, or those of anonymous clients.

The proxy asks before it reads a body. Only limits hang on the answer, never what a principal may do: the API decides
that, and looks closer. So nothing is waited for: a signature is enough not to be anonymous, and whose it is, is asked
of the database on the side and remembered for the requests that follow.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from codehub.errors import CodeHubError
from codehub.policy.model import Principal

REMEMBER = 20_000  # credentials, as hashes of 16 bytes
ASK_AT_ONCE = 1  # questions to the database: anonymous clients can make us ask with invented tokens
CANDIDATES = 4  # cookies of the right name that are looked at
KEY = os.urandom(32)


def digest(*parts: bytes) -> bytes:
    """How a credential is remembered: in a few bytes, and useless to a reader of our memory."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=16, key=KEY).digest()


class Known(Protocol):
    """What is asked of `auth.credentials`."""

    def session_of(self, cookie: str, /) -> str | None: ...

    async def person_of(self, session_id: str, /) -> str: ...

    async def by_token(self, token: str, /) -> Principal: ...


class Principals:
    def __init__(self, credentials: Known, cookie_name: str) -> None:
        self._credentials = credentials
        self._cookie = re.compile(rb"(?:^|;)[ \t]*" + re.escape(cookie_name.encode()) + rb"=([^;, \t]*)")
        self._names: dict[bytes, str] = {}
        self._asking: dict[bytes, asyncio.Task[None]] = {}

    def of(self, cookie: bytes, authorization: bytes) -> str:
        """A person's name; empty for an anonymous client. Without a name yet, a session counts for itself."""
        scheme, _, token = authorization.partition(b" ")
        if scheme.lower() == b"bearer":
            return self._of_token(token.strip())
        for found in self._cookie.findall(cookie)[:CANDIDATES] if cookie else ():
            if who := self._of_session(found):
                return who
        return ""

    def _of_token(self, token: bytes) -> str:
        key = digest(b"token", token)

        async def ask() -> str:
            return (await self._credentials.by_token(token.decode("latin-1"))).name

        return self._names.get(key) or self._ask(key, ask)

    def _of_session(self, cookie: bytes) -> str:
        key = digest(b"session", cookie)
        if name := self._names.get(key):
            return name
        session_id = self._credentials.session_of(cookie.decode("latin-1"))
        if session_id is None:
            return ""
        self._ask(key, lambda: self._credentials.person_of(session_id))
        return f"session {session_id}"

    def _ask(self, key: bytes, question: Callable[[], Awaitable[str]]) -> str:
        if len(self._asking) < ASK_AT_ONCE and key not in self._asking:
            task = asyncio.get_running_loop().create_task(self._learn(key, question))
            self._asking[key] = task
        return ""

    async def _learn(self, key: bytes, question: Callable[[], Awaitable[str]]) -> None:
        try:
            name = await question()
        except CodeHubError:
            return  # anonymous after all, or the database is away
        finally:
            del self._asking[key]
        if len(self._names) >= REMEMBER:
            self._names.clear()
        self._names[key] = name

    def forget(self) -> None:
        """A person was deactivated, or something revoked."""
        self._names.clear()

    async def stop(self) -> None:
        for task in list(self._asking.values()):
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
