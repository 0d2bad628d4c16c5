"""What a profile is, and the reader for WebSockets whose messages need not be read."""

from collections.abc import Callable
from typing import Protocol

from codehub.activity.model import Kind
from codehub.activity.websocket import Reader

Tell = Callable[[Kind], None]
Readers = tuple[Reader, Reader]  # of what the browser says, and of what the workspace says


class Profile(Protocol):
    reads_messages: bool  # then the handshake must not agree on compression

    def request(self, method: bytes, path: bytes, query: bytes) -> Kind:
        """Of an HTTP request, its path as the IDE knows it. `BROWSING`: a listing, which may be a refresh."""
        ...

    def readers(self, path: bytes, query: bytes, say: Tell, hear: Tell) -> Readers:
        """For a WebSocket that was opened: `say` is told what the browser's messages are, `hear` the workspace's."""
        ...


class Uniform:
    """Every data message is of one kind; none is read."""

    __slots__ = ("_kind", "_tell")
    wants = 0

    def __init__(self, kind: Kind, tell: Tell) -> None:
        self._kind = kind
        self._tell = tell

    def begins(self) -> None:
        self._tell(self._kind)

    def control(self) -> None:
        self._tell(Kind.CONTROL_FRAME)

    unreadable = begins

    def take(self, payload: bytes) -> None: ...

    def pass_by(self, count: int) -> int:
        return count


def uniform(kind: Kind, say: Tell, hear: Tell) -> Readers:
    return Uniform(kind, say), Uniform(kind, hear)
