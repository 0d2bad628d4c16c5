"""What a profile is, and the follower of WebSockets whose messages need not be read."""

from typing import Protocol

from codehub.activity.model import Kind
from codehub.activity.websocket import CONTROL, Follower, Reader
from codehub.proxy.frames import SHORTEST, WHOLE_SIZE, Boundary
from codehub.proxy.model import FrameObserver

Followers = tuple[FrameObserver, FrameObserver]  # of what the browser says, and of what the workspace says
CODE = 0x0F  # of a frame's first byte: what it is
CONTROL_FRAME = int(Kind.CONTROL_FRAME)


class Tell(Protocol):
    """The observer that is told of what kind messages are."""

    def tell(self, kind: int, /) -> None: ...


class Profile(Protocol):
    by_query: tuple[bytes, ...]  # beginnings of paths whose requests are told apart by their query, too

    def request(self, method: bytes, path: bytes, query: bytes) -> Kind:
        """Of an HTTP request, its path as the IDE knows it. `BROWSING`: a listing, which may be a refresh."""
        ...

    def followers(self, path: bytes, query: bytes, say: Tell, hear: Tell) -> Followers:
        """For a WebSocket that was opened: `say` is told what the browser's messages are, `hear` the workspace's."""
        ...


class Uniform(Boundary):
    """Every data message is of one kind; none is read. Only the beginnings of frames matter, whatever is in them."""

    __slots__ = ("_kind", "_tell")

    def __init__(self, kind: Kind, tell: Tell) -> None:
        super().__init__()
        self._kind = int(kind)  # as a list's index a plain number is found in half the time
        self._tell = tell

    def follow(self, data: bytes) -> None:
        """As a boundary does, written out: this is called for every message of nearly every WebSocket."""
        if self.left == 0 and len(data) >= SHORTEST:
            whole = WHOLE_SIZE[data[1]]
            if whole < 0:
                whole = (data[2] << 8 | data[3]) - whole
            if whole == len(data):
                code = data[0] & CODE
                if code:
                    self._tell.tell(self._kind if code < CONTROL else CONTROL_FRAME)
                return
        for first in self.walk(data):
            if code := first & CODE:  # else it goes on with a message
                self._tell.tell(self._kind if code < CONTROL else CONTROL_FRAME)


def uniform(kind: Kind, say: Tell, hear: Tell) -> Followers:
    return Uniform(kind, say), Uniform(kind, hear)


def reading(said: Reader, heard: Reader) -> Followers:
    return Follower(said), Follower(heard)
