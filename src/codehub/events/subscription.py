"""One open stream's share of the events: a bounded buffer between the hub, which fills it, and the answer."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence

from codehub import metrics

BUFFERED_AT_MOST = (
    500  # frames that wait for one slow reader; they are shared between readers, and a few hundred bytes each
)
RESET = b""  # in place of a frame: what would be here cannot be said


def frame(position: int, kind: str, data: str) -> bytes:
    """A Server-Sent Event. `data` has no line break."""
    return f"id: {position}\nevent: {kind}\ndata: {data}\n\n".encode()


class Subscription:
    """`position` says how far the hub is."""

    def __init__(self, position: Callable[[], int]) -> None:
        self.audiences: set[str] = set()
        self._position = position
        self._moves: list[tuple[str, bool]] | None = []  # memberships that changed before it began
        self._missed: Sequence[bytes] = ()  # what a resumed one gets first
        self._buffer: deque[tuple[int, bytes]] = deque()
        self._sent_to = 0  # by a process that was ahead of this one
        self._reset = False
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None

    # --- for the hub

    def begin(self) -> list[tuple[str, bool]]:
        """From now on it gets its events. Returns the memberships that changed since it listens."""
        moves, self._moves = self._moves or [], None
        return moves

    def note_move(self, audience: str, *, joins: bool) -> None:
        if self._moves is not None:
            self._moves.append((audience, joins))

    def put(self, position: int, piece: bytes) -> None:
        if self._moves is not None or self._reset or position <= self._sent_to:
            return
        if piece == RESET:
            self.reset("unrendered")
        elif len(self._buffer) >= BUFFERED_AT_MOST:
            self.reset("slow_reader")
        else:
            self._buffer.append((position, piece))
            self._wake()

    def resume(self, cursor: int, missed: Sequence[bytes]) -> None:
        """What it missed comes first. Up to the cursor it has everything, perhaps from a process ahead of this one."""
        if RESET in missed:
            self.reset("unrendered")
        elif not self._reset:
            self._missed = missed
            self._buffer = deque(item for item in self._buffer if item[0] > cursor)
            self._sent_to = cursor

    def reset(self, reason: str) -> None:
        """Until the reader is told, nothing more is kept for it: it reads the state after that."""
        metrics.EVENT_RESETS.labels(reason).inc()
        self._reset = True
        self._missed = ()
        self._buffer.clear()
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    # --- for the answer

    async def next(self, seconds: float) -> bytes | None:
        """All frames that wait, a heartbeat after so many seconds without one; None: the process stops."""
        if not (self._reset or self._missed or self._buffer or self._ended):
            await self._wait(seconds)
        if self._ended:
            return None
        if self._reset:
            self._reset = False
            return frame(self._reached(), "reset", "{}")
        if not (self._missed or self._buffer):
            return frame(self._reached(), "heartbeat", "{}")
        pieces = [*self._missed, *(piece for _, piece in self._buffer)]
        self._missed = ()
        self._buffer.clear()
        return b"".join(pieces)

    def _reached(self) -> int:
        """Where it can resume while nothing waits for it: a quiet stream's cursor keeps up, too."""
        return max(self._position(), self._sent_to)

    async def _wait(self, seconds: float) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._waiter
