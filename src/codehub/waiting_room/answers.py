"""What the scripts answer, as the model has it. Pure; used by `line`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from codehub.waiting_room.model import (
    EXPIRED,
    Check,
    Expired,
    Joined,
    LineCounts,
    LogEntry,
    LogKind,
    Member,
    MemberState,
    Overdue,
    Pick,
    Standing,
    Swept,
)

# Kinds of a standing; `lua/common.lua` has the same.
WAITING, PASSED, READY, NOT_READY, CHECK, GONE = range(6)


class Waiting(msgspec.Struct):
    """What `queue:waiting:…` holds."""

    user_id: str
    seq: int
    joined: int


class Head(NamedTuple):
    """What a script says of the event, once for all whom it was asked about."""

    paused: int
    lottery: int
    eta: bytes
    logn: int
    opens: int


_waiting = msgspec.json.Decoder(Waiting)


def name(text: bytes) -> str:
    return _waiting.decode(text).user_id


def joined(seq: int, text: bytes, *, new: bool) -> Joined:
    stored = _waiting.decode(text)
    return Joined(seq, stored.joined, stored.user_id, new)


def polled(head: Head, flat: Sequence[int]) -> list[Standing | Check | Expired]:
    """One of each four numbers."""
    paused, lottery, eta, logn = bool(head.paused), bool(head.lottery), head.eta.decode(), head.logn
    opens = head.opens or None
    given: list[Standing | Check | Expired] = []
    numbers = iter(flat)
    for kind, position, ahead, deadline in zip(numbers, numbers, numbers, numbers, strict=True):
        if kind == CHECK:
            given.append(Check(position))
        elif kind == GONE:
            given.append(EXPIRED)
        else:
            given.append(
                Standing(
                    None if lottery else position,
                    ahead,
                    kind == READY,
                    paused,
                    lottery,
                    deadline or None,
                    kind == PASSED,
                    eta,
                    logn,
                    opens,
                )
            )
    return given


def peeked(head: Head, numbers: Sequence[int]) -> Standing:
    """Also of one who is unchecked: they have a position, and no more."""
    shown = polled(head, [WAITING if numbers[0] == CHECK else numbers[0], *numbers[1:]])[0]
    if not isinstance(shown, Standing):
        raise TypeError(shown)
    return shown


def picks(flat: Sequence[Any]) -> list[Pick]:
    return [Pick(pid.decode(), int(seq)) for pid, seq in zip(flat[::2], flat[1::2], strict=True)]


def swept(closed: Sequence[Any], expired: Sequence[Any], silenced: int, more: int) -> Swept:
    overdue = [Overdue(pid.decode(), offer) for pid, offer in zip(closed[::2], closed[1::2], strict=True)]
    return Swept(overdue, picks(expired), silenced, bool(more))


def counts(numbers: Sequence[int]) -> LineCounts:
    waiting, live, silent, passed, offered, entered, left, expired, logn, epoch, *flags = numbers
    paused, lottery, holding, returning = map(bool, flags)
    return LineCounts(
        waiting, live, silent, passed, offered, entered, left, expired, logn, epoch, paused, lottery, holding, returning
    )


def entries(found: Sequence[Any]) -> list[LogEntry]:
    return [LogEntry(int(id_.split(b"-")[0]), LogKind(kind.decode()), int(seq)) for id_, (kind, seq) in found]


def members(start: int, found: Sequence[Any], texts: Sequence[Any]) -> list[Member]:
    """What `page` found: members and their sequences, then the scores that each has as live, passed and so on."""
    rows = zip(picks(found[0]), *found[1:], texts, strict=True)
    return [_member(start + i, *row) for i, row in enumerate(rows, 1)]


def _member(
    position: int,
    pick: Pick,
    live: bytes | None,
    passed: bytes | None,
    offered: bytes | None,
    silent: bytes | None,
    beating: bytes | None,
    text: bytes | None,
) -> Member:
    states = (
        (offered, MemberState.OFFERED),
        (silent, MemberState.SILENT),
        (live, MemberState.LIVE),
        (passed, MemberState.PASSED),
    )
    state = next((state for score, state in states if score is not None), MemberState.UNCHECKED)
    stored = _waiting.decode(text) if text else None
    return Member(
        position,
        pick.pid,
        pick.seq,
        state,
        int(silent or beating or 0),
        stored.user_id if stored else None,
        stored.joined if stored else None,
    )
