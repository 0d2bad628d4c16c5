"""Following a WebSocket from the side: real frames, cut anywhere, masked or not, in fragments, with pings between."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.activity.model import Kind
from codehub.activity.profiles import vscode
from codehub.activity.profiles.base import Uniform
from codehub.activity.profiles.vscode import VSCode
from codehub.activity.websocket import Follower

MASK = b"\x12\x34\x56\x78"


def frame(code: int, payload: bytes, *, fin: bool = True, mask: bytes = b"", reserved: int = 0) -> bytes:
    first = bytes([(0x80 if fin else 0) | reserved | code])
    bit, size = (0x80 if mask else 0), len(payload)
    if size < 126:
        length = bytes([bit | size])
    elif size < 65536:
        length = bytes([bit | 126]) + size.to_bytes(2, "big")
    else:
        length = bytes([bit | 127]) + size.to_bytes(8, "big")
    body = bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if mask else payload
    return first + length + mask + body


class Told(list[int]):
    """Whoever is told of messages, and keeps it."""

    tell = list.append


class Everything:
    """A reader that wants it all."""

    wants = 1 << 62

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.payload = b""

    def begins(self) -> None:
        self.heard.append("data")

    def control(self) -> None:
        self.heard.append("control")

    def unreadable(self) -> None:
        self.heard.append("unreadable")

    def take(self, payload: bytes) -> None:
        self.payload += payload

    def pass_by(self, count: int) -> int:
        return count


messages = st.lists(
    st.tuples(st.sampled_from(["text", "binary", "fragments", "ping", "compressed"]), st.binary(max_size=300)),
    max_size=8,
)


@given(messages, st.booleans(), st.integers(1, 50))
def test_payloads_come_out_whole_whatever_the_pieces(sent: list[tuple[str, bytes]], masked: bool, size: int) -> None:
    mask, stream, expected, heard = MASK if masked else b"", b"", b"", list[object]()
    for kind, payload in sent:
        if kind == "fragments":
            half = len(payload) // 2
            stream += frame(2, payload[:half], fin=False, mask=mask) + frame(9, b"hi", mask=mask)
            stream += frame(0, payload[half:], mask=mask)
            heard += ["data", "control"]
        elif kind == "ping":
            stream += frame(9, payload[:125], mask=mask)
            heard.append("control")
        elif kind == "compressed":
            stream += frame(2, payload, mask=mask, reserved=0x40)
            heard.append("unreadable")
        else:
            stream += frame(1 if kind == "text" else 2, payload, mask=mask)
            heard.append("data")
        expected += payload if kind in {"text", "binary", "fragments"} else b""
    reader = Everything()
    follower = Follower(reader)
    for begin in range(0, len(stream), size):
        follower.follow(stream[begin : begin + size])
    assert reader.payload == expected
    assert reader.heard == heard


@given(messages, st.booleans(), st.integers(0, 50))
def test_messages_that_nobody_reads_are_counted_whatever_the_pieces(
    sent: list[tuple[str, bytes]], masked: bool, size: int
) -> None:
    mask, parts, expected, told = MASK if masked else b"", list[bytes](), list[Kind](), Told()
    for kind, payload in sent:
        code, reserved = {"text": (1, 0), "ping": (9, 0), "compressed": (2, 0x40)}.get(kind, (2, 0))
        parts.append(
            frame(code, payload[:125] if code == 9 else payload, mask=mask, reserved=reserved, fin=kind != "fragments")
        )
        expected.append(Kind.CONTROL_FRAME if code == 9 else Kind.KERNEL)
        if kind == "fragments":
            parts += [frame(0, payload, mask=mask, fin=False), frame(9, b"hi", mask=mask), frame(0, b"", mask=mask)]
            expected.append(Kind.CONTROL_FRAME)
    follower, stream = Uniform(Kind.KERNEL, told), b"".join(parts)
    for piece in parts if size == 0 else [stream[at : at + size] for at in range(0, len(stream), size)]:
        follower.follow(piece)
    assert told == expected


def test_a_large_message_is_counted_once_and_passes_by() -> None:
    told = Told()
    follower = Uniform(Kind.MESSAGE, told)
    data = frame(2, bytes(200_000), mask=MASK)
    for begin in range(0, len(data), 4096):
        follower.follow(data[begin : begin + 4096])
    follower.follow(frame(9, b"", mask=MASK))
    assert told == [Kind.MESSAGE, Kind.CONTROL_FRAME]


def message(type_: int, body: bytes) -> bytes:
    return bytes([type_]) + bytes(8) + len(body).to_bytes(4, "big") + body


def told_by(*frames: bytes) -> list[int]:
    told = Told()
    said, _ = VSCode().followers(b"/stable", b"reconnectionToken=x", told, told)
    for each in frames:
        said.follow(each)
    return told


def call(channel: bytes, command: bytes, rest: bytes = b"") -> bytes:
    names = b"".join(b"\x01" + bytes([len(name)]) + name for name in (channel, command))
    return b"\x04\x04\x06\x64\x06\x05" + names + rest


KEPT = b'{"path":"/home/a/.local/share/code-server/User/workspaceStorage/x/vscode.lock"}'
MINE = b'{"path":"/home/a/project/main.py"}'


@pytest.mark.parametrize(("body", "kind"), [
    (call(b"remoteFilesystem", b"writeFile", KEPT), Kind.HOUSEKEEPING),
    (call(b"remoteFilesystem", b"writeFile", MINE), Kind.FILES),
    (call(b"remoteFilesystem", b"writeFile", KEPT + MINE), Kind.FILES),
    (call(b"remoteFilesystem", b"writeFile", KEPT * 50), Kind.FILES),  # what is beyond the beginning may be anything
    (call(b"remoteterminal", b"$input", b"x"), Kind.TERMINAL),
    (call(b"telemetry", b"ping"), Kind.HOUSEKEEPING),
    (call(b"telemetry", b"logTelemetry", b'{"eventName":"workbenchActionExecuted"}'), Kind.REQUEST),
    (call(b"somethingNew", b"doIt"), Kind.MESSAGE),
    (b"\x04\x02\x06\xcc\x01\x06\x07" + b'\x05\x20{"id":1,"event":"out"}', Kind.TERMINAL),
    (b"\x04\x02\x06\xcc\x01\x06\x07" + KEPT, Kind.HOUSEKEEPING),
    (b"\x04\x02\x06\xcc\x01\x06\x07" + b"unknown", Kind.MESSAGE),
    (b"\x04\x02\x06\xc9\x01\x06\x07\x00", Kind.REPLY),
    (b"\x01\x00\x00\x00\x07\x66\x0c$onFileEvent" + KEPT, Kind.HOUSEKEEPING),
    (b"\x01\x00\x00\x00\x07\x66\x0c$onFileEvent" + MINE, Kind.FILES),
    (b"\x01\x00\x00\x00\x07\x5f\x13$acceptModelChanged[]", Kind.EDITING),
    (b"\x01\x00\x00\x00\x07\x76\x18$onDidChangeWindowActive\x00\x00\x00\x07[false]", Kind.HOUSEKEEPING),
    (b"\x01\x00\x00\x00\x07\x76\x18$onDidChangeWindowActive\x00\x00\x00\x06[true]", Kind.EDITING),
    (b"{}", Kind.MESSAGE),
])  # fmt: skip
def test_a_message_of_vs_code_is_known_by_what_it_is_about(body: bytes, kind: Kind) -> None:
    assert told_by(frame(2, message(1, body), mask=MASK)) == [kind]


def test_messages_of_vs_code_lie_in_frames_as_they_come() -> None:
    stream = b"".join(
        [message(9, b""), message(1, call(b"telemetry", b"ping")), message(3, b""), message(2, b"{}")] * 5
    )
    cuts = sorted(random.Random(7).sample(range(1, len(stream)), 9))
    frames = [frame(2, stream[a:b], mask=MASK) for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    told = told_by(*frames)
    assert told == [Kind.KEEP_ALIVE, Kind.HOUSEKEEPING, Kind.KEEP_ALIVE, Kind.KEEP_ALIVE] * 5


@pytest.mark.parametrize(
    "nonsense", [b"\xff" * 40, message(1, b"")[:9] + b"\xff\xff\xff\xff"], ids=["no such type", "no such length"]
)
def test_where_it_cannot_be_understood_everything_counts_from_there_on(nonsense: bytes) -> None:
    told = told_by(frame(2, nonsense), frame(2, message(9, b"")), frame(2, message(9, b"")))
    assert told == [Kind.UNREADABLE] * 3


def test_a_compressed_frame_counts_because_nobody_can_read_it() -> None:
    assert told_by(frame(2, message(9, b""), reserved=0x40)) == [Kind.UNREADABLE]


def test_a_program_in_the_workspace_has_sockets_of_its_own() -> None:
    told = Told()
    said, _ = VSCode().followers(b"/proxy/3000/", b"", told, told)
    said.follow(frame(1, b"x", mask=MASK))
    assert told == [Kind.MESSAGE]


@given(st.binary(max_size=400))
def test_no_body_makes_the_profile_fail(body: bytes) -> None:
    assert vscode.kind_of(body, whole=True) in Kind
