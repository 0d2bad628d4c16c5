"""Recordings of real IDEs: one JSON line per thing seen, compressed. Written by `record.py`, replayed by the tests.

WebSocket bytes are kept as whole frames. Masks are taken off (they are random and would not compress), and what one of
VS Code's messages carries beyond its first kilobytes is replaced by zeros: lengths stay, nobody looks at the rest.
"""

import base64
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import zstandard

from codehub.proxy.frames import frame_size

FOLDER = pathlib.Path(__file__).parent / "recordings"
KEPT_BYTES, HEADER_BYTES = 2048, 13


def save(path: pathlib.Path, entries: list[list[Any]]) -> None:
    lines = "".join(json.dumps(entry) + "\n" for entry in _whole_frames(entries))
    path.write_bytes(zstandard.ZstdCompressor(level=19).compress(lines.encode()))


def load(path: pathlib.Path) -> Iterator[list[Any]]:
    """[seconds, "mark", name], [seconds, "request", method, target], [seconds, "open", tunnel, target],
    [seconds, "data", tunnel, from the browser?, one frame], [seconds, "close", tunnel]."""
    for line in zstandard.ZstdDecompressor().decompress(path.read_bytes(), 1 << 30).decode().splitlines():
        entry = json.loads(line)
        if entry[1] == "data":
            entry[4] = base64.b64decode(entry[4])
        yield entry


def _whole_frames(entries: list[list[Any]]) -> Iterator[list[Any]]:
    rests: dict[tuple[int, bool], bytes] = {}
    trims: dict[tuple[int, bool], Trim] = {}
    for entry in entries:
        if entry[1] == "open" and "reconnectionToken=" in entry[3]:
            trims.update({(entry[2], way): Trim() for way in (True, False)})
        if entry[1] != "data":
            yield entry
            continue
        seconds, _, tunnel, from_client, piece = entry
        way = (tunnel, from_client)
        data = rests.pop(way, b"") + piece
        while (size := frame_size(data, 0)) and len(data) >= size:
            frame, data = plain(data[:size], trims.get(way)), data[size:]
            yield [seconds, "data", tunnel, from_client, base64.b64encode(frame).decode()]
        rests[way] = data


class Trim:
    """Blanks the ends of VS Code's messages, which lie in frames as they come: several in one, one in several."""

    def __init__(self) -> None:
        self._header = b""
        self._left = 0
        self._keep = 0

    def __call__(self, payload: bytes) -> bytes:
        kept, at = [], 0
        while at < len(payload):
            if self._left == 0:
                piece = payload[at : at + HEADER_BYTES - len(self._header)]
                kept.append(piece)
                self._header += piece
                at += len(piece)
                if len(self._header) == HEADER_BYTES:
                    self._left, self._header = int.from_bytes(self._header[9:], "big"), b""
                    self._keep = KEPT_BYTES
                continue
            piece = payload[at : at + self._left]
            kept += [piece[: self._keep], bytes(len(piece[self._keep :]))]
            self._left -= len(piece)
            self._keep = max(0, self._keep - len(piece))
            at += len(piece)
        return b"".join(kept)


def plain(frame: bytes, trim: Trim | None) -> bytes:
    """The same frame with a mask of zeros, if it has one."""
    header = 2 + {126: 2, 127: 8}.get(frame[1] & 0x7F, 0)
    payload = frame[header:]
    if frame[1] & 0x80:
        mask, payload = payload[:4], payload[4:]
        long_mask = (mask * (len(payload) // 4 + 1))[: len(payload)]
        payload = (int.from_bytes(payload, "big") ^ int.from_bytes(long_mask, "big")).to_bytes(len(payload), "big")
        header, frame = header + 4, frame[:header] + bytes(4)
    is_data = not frame[0] & 0x8
    return frame[:header] + (trim(payload) if trim and is_data else payload)
