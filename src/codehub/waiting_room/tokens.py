"""What waiting people carry: their id in an event, the waiting token, the reservation token. Pure.

Made by `service`, read by `service`, `stream` and `front_door`. A token is signed and the same, byte for byte, whenever
it is made again from the same place: a second tab and a repeated request get what the first one got.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import NamedTuple

import msgspec

from codehub.auth.signing import QuickSigner

EVENT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LONGEST = 2048  # characters of a token: names are bounded, so whatever is longer is not ours
CACHED = 4096  # tokens that were read lately: a page asks every two seconds, and reading is most of its cost


class Waiting(NamedTuple):
    """What a waiting token says."""

    event: str
    pid: str
    seq: int
    joined_ms: int
    person: str
    name: str


class Reservation(NamedTuple):
    """What a reservation token says. Whether it is still good is said by the row."""

    event: str
    person: str
    seq: int
    expires_ms: int


_waiting_body = msgspec.msgpack.Decoder(tuple[int, int, str, str])
_reservation_body = msgspec.msgpack.Decoder(tuple[str, int, int])


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def pid(secret: bytes, person: str) -> str:
    """The same person is the same in an event, always; from it, none can be told who it is."""
    return _text(hmac.digest(secret, person.encode(), "sha256")[:9])


def lottery_number(secret: bytes, person: str) -> int:
    """31 bits: where this person is drawn, however often and whenever they join."""
    return int.from_bytes(hmac.digest(secret, b"lottery" + person.encode(), "sha256")[:4]) >> 1


class Tokens:
    def __init__(self, secret_keys: str) -> None:
        self._waiting = QuickSigner(secret_keys, "waiting token")
        self._reservation = QuickSigner(secret_keys, "reservation token")
        self._read = lru_cache(CACHED)(self._verified)

    def waiting(self, token: Waiting) -> str:
        body = msgspec.msgpack.encode((token.seq, token.joined_ms, token.person, token.name))
        return self._waiting.sign(f"{token.event}.{token.pid}.{_text(body)}")

    def reservation(self, token: Reservation) -> str:
        body = msgspec.msgpack.encode((token.person, token.seq, token.expires_ms))
        return self._reservation.sign(f"{token.event}.{_text(body)}")

    def read_waiting(self, token: str) -> Waiting | None:
        """What a token says, if it is ours, whole and unchanged; else None, whatever is wrong with it."""
        try:
            return self._read(token)
        except _NotOursError:
            return None

    def read_reservation(self, token: str) -> Reservation | None:
        payload = self._reservation.verify(token) if _possible(token) else None
        if payload is None:
            return None
        event, _, body = payload.partition(".")
        return Reservation(event, *_reservation_body.decode(_bytes(body)))

    def _verified(self, token: str) -> Waiting:
        payload = self._waiting.verify(token) if _possible(token) else None
        if payload is None:
            raise _NotOursError
        event, pid_, body = payload.split(".")
        return Waiting(event, pid_, *_waiting_body.decode(_bytes(body)))


class _NotOursError(Exception):
    """Raised, because only what is returned is cached: a flood of wrong tokens pushes no right one out."""


def _possible(token: str) -> bool:
    return len(token) <= LONGEST and token.isascii()
