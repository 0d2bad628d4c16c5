"""Where a waiting person stands, as the API says it: made of what the line answered. Pure.

Called by `service` and, in the proxy's workers, by `front_door`: both say the same.
"""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from codehub.waiting_room import eta
from codehub.waiting_room.model import Standing
from codehub.waiting_room.tokens import Waiting

WAITING = "waiting"  # what `status` always says: the other members say the rest
_encode = msgspec.json.Encoder().encode


class Status(NamedTuple):
    """A tuple, because one is made for every poll."""

    token: str  # to poll with from now on: another one where a second token of this person is the one that counts
    event_id: str
    position: int | None  # None: before a lottery opens
    eta_sec: int | None
    eta_low_sec: int
    eta_high_sec: int | None
    waiting_time: int  # seconds
    ready_for_entry: bool
    paused: bool
    passed: bool
    opens_at: datetime | None  # where that lies ahead
    offer_expires_at: datetime | None
    poll_after_ms: int
    logn: int  # the newest entry of the event's log that this answer knows of


def status_of(text: str, token: Waiting, standing: Standing, now: float, silent_seconds: float) -> Status:
    """`text`: the token as it is carried; `now`: seconds since 1970."""
    ready, ahead = standing.ready, None if standing.lottery else standing.live_ahead
    expected = eta.NOW if ready else eta.predict(eta.read(standing.eta), ahead, now)
    deadline = standing.offer_deadline_ms if ready else None
    opens = standing.opens_ms
    return Status(
        text,
        token.event,
        standing.position,
        expected.eta_sec,
        expected.low_sec,
        expected.high_sec,
        max(0, int(now - token.joined_ms / 1000)),
        ready,
        standing.paused,
        standing.passed,
        _at(opens) if opens is not None and opens > now * 1000 else None,
        None if deadline is None else _at(deadline),
        eta.poll_after_ms(expected, silent_seconds),
        standing.logn,
    )


def _at(moment_ms: int) -> datetime:
    return datetime.fromtimestamp(moment_ms / 1000, UTC)


def shown(status: Status, now: float) -> dict[str, Any]:
    """The members of the API's answer."""
    expires = status.offer_expires_at
    return {
        "status": WAITING,
        "position": status.position,
        "eta_sec": status.eta_sec,
        "eta_low_sec": status.eta_low_sec,
        "eta_high_sec": status.eta_high_sec,
        "waiting_time": status.waiting_time,
        "ready_for_entry": status.ready_for_entry,
        "poll_after_ms": status.poll_after_ms,
        "paused": status.paused,
        "passed": status.passed,
        "opens_at": status.opens_at,
        "offer_expires_at": expires,
        "offer_sec": None if expires is None else max(0, int(expires.timestamp() - now)),
        "waiting_token": status.token,
    }


def as_json(status: Status, now: float) -> bytes:
    return _encode(shown(status, now))
