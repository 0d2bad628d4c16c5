"""VS Code in the browser (code-server): half a dozen messages a second from a tab that no person touches.

Its protocol puts messages of its own into WebSocket frames, several in one or one in several: a header of 13 bytes
(type, id, acknowledged id, length), then the body. The type is not enough: a lock file below `User/workspaceStorage` is
rewritten every few seconds and comes back as file events, so the beginning of each body is read for what it is about.
Two dialects: the window's own connection calls channels, and the extension host's calls methods.
"""

import re

from codehub.activity.model import Kind
from codehub.activity.profiles.base import Followers, Tell, reading, uniform

HEADER_BYTES = 13
READ_BYTES = 2048  # of a body; what it is about stands at its beginning
LONGEST_MESSAGE = 1 << 30  # a header that says more is not one: we have lost the thread
REGULAR, CONTROL = 1, 2
QUIET_TYPES = frozenset({3, 5, 6, 7, 8, 9})  # acknowledgements, disconnect, replay, pause, resume, keep-alive

# Files that the IDE keeps for itself and rewrites all the time; and files, whosever they are.
OWN_FILE = re.compile(
    rb'"path":"[^"]*/(?:User/(?:workspaceStorage|globalStorage|History|Backups)/|logs/\d{8}T\d{6}|heartbeat")'
    rb'|"path":"/\d{8}T\d{6}[^"]*","scheme":"vscode-log"'
)
ANY_FILE = re.compile(rb'"path":"')
TERMINAL_EVENT = re.compile(rb'\{"id":\d+,"(?:event|property)":')
PING = re.compile(rb'"method":"ping"|"id":\d+,"result":null\}')
# (channel, command) that a window calls by itself.
OWN_CALLS = frozenset({(b"telemetry", b"ping"), (b"extensions", b"getExtensionsControlManifest")})
PERSONS_TELEMETRY = b'"workbenchActionExecuted"'  # a person ran a command
# Methods that are called with no person there; with `[true]` the first two say that a person came.
WINDOW_METHODS = frozenset({b"$onDidChangeWindowActive", b"$onDidChangeWindowFocus"})
OWN_METHODS = frozenset({b"$onDidTunnelsChange", b"$onFoundNewCandidates"}) | WINDOW_METHODS
CALL, LISTEN = 100, 102  # of a channel; other numbers are cancellations and answers
EVENT = 204
POLLED = frozenset({b"/healthz", b"/update/check"})


class VSCode:
    by_query: tuple[bytes, ...] = ()

    def request(self, _method: bytes, path: bytes, _query: bytes) -> Kind:
        return Kind.POLLING if path in POLLED else Kind.REQUEST

    def followers(self, _path: bytes, query: bytes, say: Tell, hear: Tell) -> Followers:
        if b"reconnectionToken=" not in query:  # not the IDE's: a program's that runs in the workspace
            return uniform(Kind.MESSAGE, say, hear)
        return reading(Messages(say), Messages(hear))


class Messages:
    """One direction of the protocol. Once it does not add up, everything counts."""

    __slots__ = ("_body", "_head", "_lost", "_rest", "_tell", "_type", "wants")

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._head = b""
        self._body = b""
        self._type = 0
        self._rest = 0  # bytes of the body at hand that need not be read
        self._lost = False
        self.wants = HEADER_BYTES

    def begins(self) -> None:
        if self._lost:
            self._tell.tell(Kind.UNREADABLE)

    def control(self) -> None:
        self._tell.tell(Kind.CONTROL_FRAME)

    def unreadable(self) -> None:
        self._lose()

    def take(self, payload: bytes) -> None:
        self.wants -= len(payload)
        if self._type:
            self._body += payload
            if self.wants == 0:
                self._finish()
            return
        self._head += payload
        if self.wants == 0:
            self._begin(self._head)

    def pass_by(self, count: int) -> int:
        if self._lost:
            return count
        count = min(count, self._rest)
        self._rest -= count
        if self._rest == 0:
            self.wants = HEADER_BYTES
        return count

    def _begin(self, head: bytes) -> None:
        self._head = b""
        type_, size = head[0], int.from_bytes(head[9:], "big")
        if (type_ not in QUIET_TYPES and type_ not in (REGULAR, CONTROL)) or size > LONGEST_MESSAGE:
            self._lose()
        elif type_ == REGULAR and size:
            self._type, self._body = type_, b""
            self.wants = min(size, READ_BYTES)
            self._rest = size - self.wants
        else:
            self._tell.tell(Kind.KEEP_ALIVE)
            self._skip(size)

    def _finish(self) -> None:
        self._tell.tell(kind_of(self._body, whole=self._rest == 0))
        self._type, self._body = 0, b""
        self._skip(self._rest)

    def _skip(self, size: int) -> None:
        self._rest = size
        self.wants = 0 if size else HEADER_BYTES

    def _lose(self) -> None:
        self._lost, self.wants, self._rest = True, 0, 0
        self._tell.tell(Kind.UNREADABLE)


def kind_of(body: bytes, *, whole: bool) -> Kind:
    """What a message is about, by its beginning."""
    if len(body) > 2 and body[0] == 4 and body[1] in (2, 4) and body[2] == 6:
        return _channel_kind(body, whole=whole)
    if len(body) > 7 and 1 <= body[0] <= 4:
        return _method_kind(body[7 : 7 + body[6]], body, whole=whole)
    if len(body) > 4 and 5 <= body[0] <= 12 and body[1] == 0:
        return Kind.REPLY
    return Kind.MESSAGE


def _channel_kind(body: bytes, *, whole: bool) -> Kind:
    """An array of numbers and texts: what, its number, and for a call the channel and the command."""
    what, at = _number(body, 3)
    if what == EVENT:
        if PING.search(body):
            return Kind.HOUSEKEEPING
        return Kind.TERMINAL if TERMINAL_EVENT.search(body) else _files(body, whole=whole)
    if what not in (CALL, LISTEN):
        return Kind.REPLY
    _, at = _number(body, at + 1)
    channel, at = _text(body, at)
    command, at = _text(body, at)
    return _call_kind(channel, command, body, whole=whole)


def _call_kind(channel: bytes, command: bytes, body: bytes, *, whole: bool) -> Kind:
    if (channel, command) in OWN_CALLS:
        return Kind.HOUSEKEEPING
    if channel == b"telemetry":
        return Kind.REQUEST if PERSONS_TELEMETRY in body else Kind.HOUSEKEEPING
    if channel == b"agentHostProxy" and PING.search(body):
        return Kind.HOUSEKEEPING
    if channel == b"remoteterminal":
        return Kind.TERMINAL
    return _files(body, whole=whole)


def _method_kind(method: bytes, body: bytes, *, whole: bool) -> Kind:
    if method in OWN_METHODS:
        return Kind.EDITING if method in WINDOW_METHODS and b"[true]" in body else Kind.HOUSEKEEPING
    if method == b"$onFileEvent":
        return _files(body, whole=whole)
    return Kind.EDITING


def _files(body: bytes, *, whole: bool) -> Kind:
    """By the files that are named: all the IDE's own, or not. Of those beyond what was read, nothing is known."""
    named = len(ANY_FILE.findall(body))
    if named == 0:
        return Kind.MESSAGE
    return Kind.HOUSEKEEPING if whole and len(OWN_FILE.findall(body)) == named else Kind.FILES


def _number(body: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; and where it ends."""
    number, shift = 0, 0
    while at < len(body):
        byte = body[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if not byte & 0x80:
            break
        shift += 7
    return number, at


def _text(body: bytes, at: int) -> tuple[bytes, int]:
    size, at = _number(body, at + 1)
    return body[at : at + size], at + size
