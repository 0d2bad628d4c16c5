"""What a message's head means: RFC 9112, strictly. Pure; called by `downstream` and `upstream`.

Whatever could be read in two ways is refused. Parsed parts come out, and only those are ever written to the other side:
no byte of a head is passed on because it was received.
"""

import copy
import re
from functools import lru_cache

from codehub.proxy.model import CHUNKED, NOTHING, UNTIL_EOF, Block, Field, RequestHead, ResponseHead

VISIBLE = bytes([9, *range(32, 127), *range(128, 256)])  # what a field's value may have, RFC 9110 5.5
TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# No `#`, no space, nothing beyond ASCII; origin-form, or the asterisk of OPTIONS.
REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) (/[!-\"$-~]*|\*) HTTP/1\.([01])")
# What only a client that takes us for its proxy sends; the host in it counts, and no user's name may be in it.
ABSOLUTE_TARGET = re.compile(rb"(?i:https?)://([^/?@]+)([/?][!-\"$-~]*)?")
ANY_REQUEST_LINE = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [!-~]+ HTTP/([0-9])\.([0-9])")
STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?")
HOST = re.compile(rb"(?:[0-9A-Za-z](?:[0-9A-Za-z._-]*[0-9A-Za-z.])?|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?")
# CGI-like servers see letters and digits, and take everything between them for the same.
PLAIN_NAME = re.compile(rb"[a-z0-9]+(?:-[a-z0-9]+)*")
FOLDED = re.compile(rb"[^a-z0-9]+")
LENGTH = re.compile(rb"[0-9]{1,18}")
# In a head that is not complete yet, so that a sender of line feeds is told at once instead of at the time-out.
UNREADABLE = re.compile(rb"(?<!\r)\n|\r(?=[^\n])|[^\t\r\n\x20-\x7e\x80-\xff]")
NAME_BYTES = 128
# What is remembered is bounded in number and in size: it may be a stranger's, and comes to a few megabytes at most.
REMEMBERED_BYTES = 2048  # of a head
REMEMBERED_FIELDS = 48
REMEMBERED_BLOCKS = 512
REMEMBERED_LINE = 512  # bytes of one header
REMEMBERED_OPTIONS = 128  # bytes of a `Connection` header
ONCE = {b"host", b"content-length", b"transfer-encoding", b"expect", b"upgrade"}
ONCE |= {b"authorization", b"origin", b"sec-websocket-key", b"sec-websocket-version", b"content-type"}
ALWAYS_PASSED = {b"host", b"content-length", b"transfer-encoding", b"close", b"keep-alive", b"upgrade"}
BODYLESS = {204, 304}
REFUSED_METHODS = {b"CONNECT", b"TRACE"}
STATUS_LINE_BYTES = 1024


class RefusalError(Exception):
    """This message is not passed on. The connection that it came by ends."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Partial:
    """The beginning of a head. However many pieces it comes in, every byte is looked at once."""

    __slots__ = ("_clean", "data")

    def __init__(self) -> None:
        self.data = bytearray()
        self._clean = 0  # so much of it has no end in it, and nothing unreadable

    def complete(self, piece: bytes) -> bool:
        """Is it complete with this piece?"""
        data, clean = self.data, self._clean
        data += piece
        if data.find(b"\r\n\r\n", max(clean - 3, 0)) >= 0:
            return True
        if UNREADABLE.search(data, max(clean - 1, 0)):
            raise RefusalError(400, "The head has a bare line end or a control character.")
        self._clean = len(data)
        return False


def read_field(line: bytes) -> Field:
    """One header line, without its end."""
    if line.translate(None, VISIBLE):
        raise RefusalError(400, "The head has a bare line end or a control character.")
    name, colon, value = line.partition(b":")
    if not colon:
        raise RefusalError(400, "A header line has no colon.")
    if len(name) > NAME_BYTES:
        raise RefusalError(431, "A header's name is too long.")
    if TOKEN.fullmatch(name) is None:
        raise RefusalError(400, "A header's name is not valid.")
    key, value = name.lower(), value.strip()
    guard = key if PLAIN_NAME.fullmatch(key) else FOLDED.sub(b"-", key).strip(b"-")
    return Field(key, value, guard, name + b": " + value)


# The same few lines come over and over again: a browser's on every request, a server's on every answer.
_read_field_again = lru_cache(maxsize=1024)(read_field)


def read_fields(lines: list[bytes], size: int) -> tuple[list[Field], dict[bytes, bytes]]:
    """All header lines; `size` is that of the head, because long ones are not worth remembering."""
    if size <= REMEMBERED_LINE:
        fields = list(map(_read_field_again, lines))
    else:
        fields = [(_read_field_again if len(line) <= REMEMBERED_LINE else read_field)(line) for line in lines]
    index = {field[0]: field[1] for field in fields}
    return fields, index if len(index) == len(fields) else _joined(fields)


def _joined(fields: list[Field]) -> dict[bytes, bytes]:
    """Some name comes more than once."""
    index: dict[bytes, bytes] = {}
    for key, value, _, _ in fields:
        if key not in index:
            index[key] = value
        elif key in ONCE:
            raise RefusalError(400, f"The header {key.decode()} may come only once.")
        else:
            index[key] += (b"; " if key == b"cookie" else b", ") + value
    return index


def _lines(block: bytes, most: int) -> list[bytes]:
    lines = block.split(b"\r\n") if block else []
    if len(lines) > most:
        raise RefusalError(431, "There are too many headers.")
    return lines


def request(head: bytes, most_fields: int) -> RequestHead:
    """`head` is everything before the empty line."""
    first, _, rest = head.partition(b"\r\n")
    line = REQUEST_LINE.fullmatch(first)
    if line is None:
        return _absolute_request(first, rest, most_fields)
    result = RequestHead()
    result.method, result.target, minor = line.groups()
    if result.method in REFUSED_METHODS:
        raise RefusalError(501, "This method is not served.")
    if result.target == b"*" and result.method != b"OPTIONS":
        raise RefusalError(400, "Only OPTIONS may ask for *.")
    result.minor = 1 if minor == b"1" else 0
    result.block = block = _blocks.get((rest, minor)) or _new_block(rest, minor, most_fields)
    result.length = block.length
    result.upgrade = block.upgrade and result.method == b"GET"
    return result


def _absolute_request(line: bytes, rest: bytes, most_fields: int) -> RequestHead:
    """A target with scheme and host, RFC 9112 3.2.2: that host is meant, whatever the Host header says."""
    method, _, more = line.partition(b" ")
    whole, _, version = more.rpartition(b" ")
    found = ABSOLUTE_TARGET.fullmatch(whole)
    if found is None:
        raise _bad_request_line(line)
    path = found[2] or (b"*" if method == b"OPTIONS" else b"/")
    path = path if path[:1] != b"?" else b"/" + path
    result = request(b"%b %b %b\r\n%b" % (method, path, version, rest), most_fields)
    result.block = block = copy.copy(result.block)  # others share the one with the host that was said
    block.host = _host(found[1], 1)
    block.index = {**block.index, b"host": block.host}
    block.small = False
    return result


def _bad_request_line(line: bytes) -> RefusalError:
    known = ANY_REQUEST_LINE.fullmatch(line)
    if known is None:
        return RefusalError(400, "The request line is not valid.")
    if known[1] != b"1" or known[2] not in (b"0", b"1"):
        return RefusalError(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    if line.startswith(b"CONNECT "):
        return RefusalError(501, "This is not a forward proxy.")
    return RefusalError(400, "The request's target must be a path.")


def read_block(text: bytes, minor: int, most_fields: int) -> Block:
    """All headers of a request, without the empty line."""
    block = Block()
    lines = _lines(text, most_fields)
    block.small = len(text) <= REMEMBERED_BYTES and len(lines) <= REMEMBERED_FIELDS
    block.minor = minor
    block.fields, block.index = read_fields(lines, len(text))
    get = block.index.get
    block.host = _host(get(b"host"), minor)
    block.length = _request_length(get(b"content-length"), get(b"transfer-encoding"), minor)
    block.keep_alive, block.named, asks_upgrade = _connection(get(b"connection"), minor)
    expect = get(b"expect")
    if expect is not None and expect.lower() != b"100-continue":
        raise RefusalError(417, "Only 100-continue can be expected.")
    block.expects = expect is not None and minor == 1 and block.length != 0
    upgrade = get(b"upgrade") if asks_upgrade and minor else None
    block.upgrade = upgrade is not None and block.length == 0 and upgrade.lower() == b"websocket"
    return block


_blocks: dict[tuple[bytes, bytes], Block] = {}


def _new_block(text: bytes, minor: bytes, most_fields: int) -> Block:
    block = read_block(text, 1 if minor == b"1" else 0, most_fields)
    if block.small:
        if len(_blocks) >= REMEMBERED_BLOCKS:
            _blocks.clear()
        _blocks[text, minor] = block
    return block


def _host(value: bytes | None, minor: int) -> bytes:
    if value is None:
        if minor:
            raise RefusalError(400, "The Host header is missing.")
        return b"localhost"
    found = HOST.fullmatch(value)
    if found is None or len(value) > 260 or (found[1] and int(found[1]) > 65535):
        raise RefusalError(400, "The Host header is not valid.")
    return value


def _request_length(length: bytes | None, encoding: bytes | None, minor: int) -> int:
    if encoding is not None:
        if length is not None:
            raise RefusalError(400, "Content-Length and Transfer-Encoding exclude each other.")
        if minor == 0:
            raise RefusalError(400, "HTTP/1.0 has no Transfer-Encoding.")
        if encoding.lower() != b"chunked":
            status = 400 if b"chunked" in encoding.lower() else 501
            raise RefusalError(status, "The only Transfer-Encoding is chunked.")
        return CHUNKED
    return 0 if length is None else _length(length)


@lru_cache(maxsize=256)
def _length(text: bytes) -> int:
    if LENGTH.fullmatch(text) is None:
        raise RefusalError(400, "The Content-Length is not valid.")
    return int(text)


def _connection(value: bytes | None, minor: int) -> tuple[bool, frozenset[bytes], bool]:
    """(keep the connection, names it makes hop-by-hop, an upgrade is asked for)"""
    if value is None:
        return minor == 1, NOTHING, False
    return (_options_again if len(value) <= REMEMBERED_OPTIONS else _options)(value, minor)


def _options(value: bytes, minor: int) -> tuple[bool, frozenset[bytes], bool]:
    options = {word.strip() for word in value.lower().split(b",")}
    keep = b"close" not in options and (minor == 1 or b"keep-alive" in options)
    # A client that names a header that decides the framing would make us forget it.
    return keep, frozenset(options - ALWAYS_PASSED), b"upgrade" in options


_options_again = lru_cache(maxsize=256)(_options)


@lru_cache(maxsize=256)
def _status_line(line: bytes) -> tuple[int, int, bytes]:
    """(minor version, status, the line written anew)"""
    found = STATUS_LINE.fullmatch(line)
    if found is None or len(line) > STATUS_LINE_BYTES:
        raise RefusalError(502, "The status line is not valid.")
    return int(found[1]), int(found[2]), b"HTTP/1.1 %b %b" % (found[2], found[3] or b"")


def response(head: bytes, most_fields: int, method: bytes) -> ResponseHead:
    """An upstream's answer to a request of this method."""
    first, _, rest = head.partition(b"\r\n")
    result = ResponseHead()
    result.minor, result.status, result.line = _status_line(first)
    result.fields, result.index = read_fields(_lines(rest, most_fields), len(rest))
    get = result.index.get
    result.keep_alive, result.named, upgrade = _connection(get(b"connection"), result.minor)
    result.upgrade = upgrade and get(b"upgrade", b"").lower() == b"websocket"
    result.length = _response_length(result, method)
    return result


def _response_length(head: ResponseHead, method: bytes) -> int:
    length, encoding = head.index.get(b"content-length"), head.index.get(b"transfer-encoding")
    if encoding is not None and (length is not None or head.minor == 0 or encoding.lower() != b"chunked"):
        raise RefusalError(502, "The answer's framing is ambiguous.")
    announced = _length(length) if length is not None else UNTIL_EOF
    if method == b"HEAD" or head.status < 200 or head.status in BODYLESS:
        return 0
    return CHUNKED if encoding is not None else announced
