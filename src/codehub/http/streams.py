"""Answers without an end (news, logs as they are written): how many there may be, for each person and in this process.

Each holds a connection and memory for as long as its reader likes.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable

from starlette.types import Receive, Scope, Send

from codehub.errors import StreamLimitError
from codehub.http.lasting import Lasting, OpenStreams
from codehub.policy import rules as policy_rules
from codehub.policy.model import Principal
from codehub.settings import LimitsConfig

RETRY_SECONDS = 10


class Streams:
    def __init__(self, limits: LimitsConfig, all_open: OpenStreams) -> None:
        self._limits = limits
        self._all_open = all_open
        self._open: Counter[str] = Counter()

    def begin(self, caller: Principal, pieces: AsyncIterator[bytes], media_type: str) -> "Stream":
        """Takes a place; the answer gives it back however it ends."""
        most = policy_rules.allowance(caller, self._limits.max_streams_per_user)
        if most is not None and self._open[caller.name] >= most:
            raise StreamLimitError(
                f"{most} are open: close another tab or program that follows", retry_after=RETRY_SECONDS
            )
        overall = self._limits.max_streams
        if overall and self._open.total() >= overall:
            raise StreamLimitError("too many are open: try again in a moment", retry_after=RETRY_SECONDS)
        self._open[caller.name] += 1
        return Stream(self._all_open, caller, pieces, media_type, lambda: self._end(caller.name))

    def _end(self, person: str) -> None:
        self._open[person] -= 1
        if self._open[person] <= 0:
            del self._open[person]


class Stream(Lasting):
    def __init__(
        self,
        all_open: OpenStreams,
        caller: Principal,
        pieces: AsyncIterator[bytes],
        media_type: str,
        ended: Callable[[], None],
    ) -> None:
        super().__init__(all_open, caller, _at_once(pieces), media_type)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


async def _at_once(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The answer begins now: middleware that may compress it holds the head back until there is a first piece."""
    yield b""
    async for piece in pieces:
        yield piece
