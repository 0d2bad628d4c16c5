"""Questions to a passkey: signed by us, for one purpose, one browser and a few minutes; answered once.

Nothing is kept of a question that is asked: whoever opens the sign-in page asks one. Of one that was answered with a
good signature, Redis knows that it was, for as long as it would be good. `service` calls.
"""

import hashlib
from datetime import datetime

from codehub import ids
from codehub.auth.signing import Signer
from codehub.clock import Clock
from codehub.db.redis import FAILURES, Client
from codehub.errors import UnavailableError
from codehub.passkeys.errors import PasskeyChallengeError
from codehub.passkeys.model import Purpose

OVER = "this took too long, was answered before, or was asked in another browser: try again"


class Challenges:
    def __init__(self, client: Client, clock: Clock, secret_key: str, seconds: int) -> None:
        self._redis = client
        self._clock = clock
        self._signer = Signer(secret_key, "passkey-challenge")
        self.seconds = seconds

    def new(self, purpose: Purpose, holder: str) -> bytes:
        """`holder`: what only this browser has, and sends with its answer: a cookie, or its session."""
        expires = int(self._clock.now().timestamp()) + self.seconds
        return self._signer.sign(f"{purpose}.{_digest(holder)}.{expires}.{ids.new(26)}").encode()

    def check(self, challenge: bytes, purpose: Purpose, holder: str) -> None:
        """Raises unless it was asked here, for this purpose, of this browser, and not long ago."""
        payload = self._signer.verify(challenge.decode("latin-1"))
        said, _, rest = (payload or "").partition(".")
        whose, _, rest = rest.partition(".")
        if payload is None or said != purpose or whose != _digest(holder) or self._now() >= int(rest.partition(".")[0]):
            raise PasskeyChallengeError(OVER)

    async def use(self, challenge: bytes) -> None:
        """Raises when it was used before. Where Redis does not say, no login is let through."""
        key = f"codehub:passkey:used:{hashlib.sha256(challenge).hexdigest()}"
        try:
            first = await self._redis.set(key, "", nx=True, ex=self.seconds)
        except FAILURES as e:
            raise UnavailableError(f"Redis does not answer: {e}") from e
        if not first:
            raise PasskeyChallengeError(OVER)

    def _now(self) -> int:
        now: datetime = self._clock.now()
        return int(now.timestamp())


def _digest(holder: str) -> str:
    return hashlib.sha256(holder.encode()).hexdigest()[:32]
