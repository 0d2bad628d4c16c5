"""Forms that make something: sent twice by a double click, they make one thing; and secrets that are shown one time.

Every form that is shown has a number of its own (`once`). Where a form led is remembered by it and by what was sent, in
Redis: who goes back to the page and types something else means something else.
"""

import contextlib
import hashlib
from typing import Any

from starlette.requests import Request

from codehub import ids
from codehub.db.redis import FAILURES
from codehub.policy.model import Principal
from codehub.web.forms import Form
from codehub.web.services import Services, services_of

REMEMBER_SECONDS = 3600  # how long a form that was sent is remembered
FIRST_SECONDS, PAUSE_SECONDS = 5.0, 0.1  # how long the second of two clicks waits for what the first makes
SHOWN_SECONDS = 120  # how long a secret waits for the page that shows it
AT_WORK = b"-"


def number() -> str:
    """For a form."""
    return ids.new()


class Once:
    """One form that was sent. Without Redis, and without a number, each is the first."""

    def __init__(self, services: Services, caller: Principal, form: Form) -> None:
        number, sent = form.get("once", "")[:64], hashlib.sha256(repr(sorted(form.items())).encode()).hexdigest()[:32]
        self._services = services
        self._key = f"codehub:form:{caller.name}:{number}:{sent}" if number else None

    async def led_to(self, meanwhile: str) -> str | None:
        """Where the same form led before; `meanwhile` where that does not show in time. None: it is the first."""
        if self._key is None:
            return None
        try:
            if await self._services.redis.set(self._key, AT_WORK, nx=True, ex=REMEMBER_SECONDS):
                return None
            return await self._result(self._key) or meanwhile
        except FAILURES:
            return None

    async def _result(self, key: str) -> str | None:
        clock = self._services.clock
        deadline = clock.monotonic() + FIRST_SECONDS
        while True:
            found: Any = await self._services.redis.get(key)
            if found != AT_WORK or clock.monotonic() >= deadline:
                return found.decode() if found and found != AT_WORK else None
            await clock.sleep(PAUSE_SECONDS)

    async def leads_to(self, path: str) -> None:
        if self._key:
            with contextlib.suppress(*FAILURES):
                await self._services.redis.set(self._key, path, ex=REMEMBER_SECONDS)

    async def failed(self) -> None:
        """The same form may be sent again."""
        if self._key:
            with contextlib.suppress(*FAILURES):
                await self._services.redis.delete(self._key)


async def keep(request: Request, caller: Principal, secret: str) -> str:
    """A secret for the page that an answer leads to; returns the key that its address names (`show`).

    It is kept enciphered by that key, which is used this once: neither Redis nor an access log has enough to read it.
    """
    key = ids.new_secret()
    await services_of(request).redis.set(_place(caller, key), _cipher(key, secret.encode()), ex=SHOWN_SECONDS)
    return key


async def take(request: Request, caller: Principal) -> str | None:
    """The secret that this page is to show; a second look finds nothing."""
    key = request.query_params.get("show", "")[:100]
    if not key:
        return None
    try:
        found: Any = await services_of(request).redis.getdel(_place(caller, key))
    except FAILURES:
        return None
    return _cipher(key, found).decode() if found else None


def _place(caller: Principal, key: str) -> str:
    login = caller.session_id or caller.token_id
    return f"codehub:shown:{hashlib.sha256(f'{login} {key}'.encode()).hexdigest()}"


def _cipher(key: str, text: bytes) -> bytes:
    stream = hashlib.shake_256(key.encode()).digest(len(text))
    return bytes(a ^ b for a, b in zip(text, stream, strict=True))
