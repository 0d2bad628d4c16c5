"""What may be done with an event and a place: pure. `service`, `pump` and `lab` act on it; the model check runs it too.

A function named after an act (`granted`, `left`) returns the row as it is afterwards; one that asks (`grant`, `entry`)
returns the decision. Capacity counts every place that is not `NONE`.
"""

import enum
import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from codehub.waiting_room.model import Activity, Event, Marked, Order, Place, State

SECOND = timedelta(seconds=1)
RATE_SLACK = SECOND  # what the rate allows and was not used is kept for one period of the pump, not for longer
WAITERS_SEEN = timedelta(seconds=10)  # an older word that people wait in `lab` counts no more: Redis may be away
PLACED = frozenset({State.RESERVED, State.HELD})


# --- the event ------------------------------------------------------------------------------------------------------


def is_open(event: Event, now: datetime) -> bool:
    return event.opens_at is None or event.opens_at <= now


def draws_lots(event: Event, now: datetime) -> bool:
    """Is the order of who joins now still to be drawn?"""
    return event.order is Order.LOTTERY and not event.drawn and not is_open(event, now)


def would_reorder(event: Event, order: Order) -> bool:
    """Of people who are in line already."""
    return order is not event.order and event.activity is not Activity.IDLE


def changed(before: Event, wanted: Event, now: datetime) -> Event:
    """A lottery that was drawn stays so while people are in line; another rate counts from now on."""
    drawn = before.drawn and (before.activity is not Activity.IDLE or is_open(wanted, now))
    same_rate = before.admission_rate == wanted.admission_rate
    return replace(wanted, drawn=drawn, next_grant_at=before.next_grant_at if same_rate else now)


@dataclass(frozen=True)
class Opening:
    """Of a new epoch: seconds without offers (fewer where Redis kept the line), and in which older tokens return."""

    hold: float
    window: float


def opening(event: Event, *, silent_seconds: float, heartbeat_seconds: float) -> Opening:
    """Where no person can have been in line, none is waited for."""
    if event.activity is Activity.IDLE:
        return Opening(0.0, 0.0)
    return Opening(silent_seconds, heartbeat_seconds)


def reopened(event: Event, now: datetime) -> Event:
    """The epoch after a loss, or the first one."""
    return replace(event, epoch=event.epoch + 1, opened_at=now, lost_line=event.activity is not Activity.IDLE)


def may_rest(event: Event, *, waiting: int, offered: int, now: datetime, heartbeat_seconds: float) -> bool:
    """Nobody is in line, and after a loss nobody can come back any more."""
    back_until = event.opened_at + timedelta(seconds=heartbeat_seconds) if event.lost_line and event.opened_at else now
    return waiting == 0 and offered == 0 and back_until <= now


def rested(event: Event) -> Activity:
    """Two steps, so that a join between them is seen: it makes the event busy again."""
    return Activity.CLOSING if event.activity is Activity.BUSY else Activity.IDLE


@dataclass(frozen=True)
class Allowance:
    """How many offers can be made now, and from where on the rate counts."""

    count: int
    base: datetime | None


NOTHING = Allowance(0, None)


def allowance(event: Event, *, capacity: int | None, used: int, now: datetime, most: int) -> Allowance:
    """`capacity` None: no limit. Lowered below what is used: nothing new, and what was offered stays."""
    if event.paused or not is_open(event, now):
        return NOTHING
    free = most if capacity is None else min(most, max(0, capacity - used))
    if event.admission_rate is None:
        return Allowance(free, None)
    next_at, each = event.next_grant_at or now, _each(event.admission_rate)
    if next_at > now + each + RATE_SLACK:
        next_at = now  # never so late after a grant: it was written by a clock that has been set back since
    base = max(next_at, now - RATE_SLACK)
    due = math.floor((now - base) / each) + 1
    return Allowance(max(0, min(free, due)), base)


def next_grant_at(event: Event, base: datetime | None, granted: int) -> datetime | None:
    """From when on the rate allows one more."""
    if event.admission_rate is None or base is None:
        return None
    return base + granted * _each(event.admission_rate)


def _each(rate: float) -> timedelta:
    return timedelta(seconds=60.0 / rate)


def waiters(has: bool, seen_at: datetime | None, now: datetime) -> bool:
    """Of `lab`: do live people wait, as far as is known? What was not confirmed for a while counts as no."""
    return has and seen_at is not None and now - seen_at <= WAITERS_SEEN


# --- a place: granting ----------------------------------------------------------------------------------------------


class Grant(enum.Enum):
    GRANT = "grant"
    OFFERED = "offered"  # has an offer already: Redis has not heard of it
    PLACED = "placed"  # has a place: to be dropped from the line
    GONE = "gone"  # this sequence is over: to be dropped, too


def grant(place: Place | None, seq: int) -> Grant:
    if place is None:
        return Grant.GRANT
    if place.state in PLACED:
        return Grant.PLACED
    if place.gone_seq >= seq:
        return Grant.GONE
    return Grant.OFFERED if place.state is State.OFFERED else Grant.GRANT


def granted(before: Place, seq: int, offer_id: int, now: datetime) -> Place:
    """Not noted: Redis has to mark it."""
    return replace(
        before,
        state=State.OFFERED,
        seq=seq,
        offer_id=offer_id,
        offered_at=now,
        expires_at=None,
        workspace_id=None,
        run_id=None,
        noted=False,
        changed_at=now,
    )


def may_lapse(place: Place | None, offer_id: int) -> bool:
    """Only this offer: a later one of the same person is not ended by it."""
    return place is not None and place.state is State.OFFERED and place.offer_id == offer_id


def lapsed(place: Place, now: datetime) -> Place:
    """The person stays in line. Redis closed the offer before: there is nothing to note."""
    return replace(place, state=State.NONE, noted=True, changed_at=now)


# --- a place: entering, leaving, its end ----------------------------------------------------------------------------


class Entry(enum.Enum):
    RESERVE = "reserve"
    SAME = "same"  # entered before: the same reservation
    NOT_YET = "not yet"
    OVER = "over"


def entry(place: Place | None, seq: int, now: datetime) -> Entry:
    if place is None:
        return Entry.NOT_YET
    if place.state in PLACED and place.seq == seq:
        expired = place.state is State.RESERVED and place.expires_at is not None and place.expires_at <= now
        return Entry.OVER if expired else Entry.SAME
    if place.state in PLACED or place.gone_seq >= seq:
        return Entry.OVER
    return Entry.RESERVE if place.state is State.OFFERED and place.seq == seq else Entry.NOT_YET


def entered(place: Place, person: str, name: str, now: datetime, seconds: float) -> Place:
    """Not noted: Redis has to drop the person from the line."""
    until = now + timedelta(seconds=seconds)
    return replace(place, state=State.RESERVED, person=person, name=name, expires_at=until, noted=False, changed_at=now)


def left(before: Place, seq: int, now: datetime) -> Place:
    """An offer is given back. A place is not: that is another act."""
    gives_back = before.state is State.OFFERED and before.seq <= seq
    return replace(
        before,
        state=State.NONE if gives_back else before.state,
        gone_seq=max(before.gone_seq, seq),
        noted=False,
        changed_at=now,
    )


def is_redeemable(place: Place | None, seq: int, now: datetime) -> bool:
    return (
        place is not None
        and place.state is State.RESERVED
        and place.seq == seq
        and place.expires_at is not None
        and place.expires_at > now
    )


def redeemed(place: Place, now: datetime, lease_seconds: int, workspace_id: str | None, run_id: str | None) -> Place:
    until = now + timedelta(seconds=lease_seconds)
    held = replace(place, state=State.HELD, expires_at=until, changed_at=now)
    return replace(held, workspace_id=workspace_id, run_id=run_id)


def released(place: Place, now: datetime) -> Place:
    """Its sequence is over. What Redis has heard of entering holds for this, too."""
    return replace(
        place,
        state=State.NONE,
        gone_seq=max(place.gone_seq, place.seq),
        workspace_id=None,
        run_id=None,
        expires_at=None,
        changed_at=now,
    )


# Above every sequence that there can be: they are below 2^53, which a number of Redis and of JavaScript holds exactly.
ALL_OVER = 2**53 - 1


def barred(place: Place, now: datetime) -> Place:
    """Of a person who may not wait, nor have a place: whatever they had is over."""
    return replace(released(place, now), gone_seq=ALL_OVER, noted=False)


class Keep(enum.Enum):
    KEEP = "keep"
    RENEW = "renew"
    RELEASE = "release"


def keep(place: Place, *, alive: bool | None, now: datetime, lease_seconds: int) -> Keep:
    """`alive`: does what holds it run? None: nothing is bound to it. A lease is renewed once half of it is over."""
    if place.expires_at is None or place.state not in PLACED:
        return Keep.KEEP
    if place.state is State.RESERVED or alive is None:
        return Keep.RELEASE if place.expires_at <= now else Keep.KEEP
    if not alive:
        return Keep.RELEASE
    return Keep.RENEW if place.expires_at - now < timedelta(seconds=lease_seconds) / 2 else Keep.KEEP


# --- the line and the place -----------------------------------------------------------------------------------------


class Arrival(enum.Enum):
    """Of a person who is in line with a sequence: may they be?"""

    WAITS = "waits"
    OFFERED = "offered"  # with another sequence, which stays
    ADMITTED = "admitted"  # has a place: to be dropped
    STALE = "stale"  # this sequence is over: to be dropped


def arrival(place: Place | None, seq: int) -> Arrival:
    if place is None:
        return Arrival.WAITS
    if place.state in PLACED:
        return Arrival.ADMITTED
    if place.state is State.OFFERED and place.seq != seq:
        return Arrival.OFFERED
    return Arrival.STALE if place.gone_seq >= seq else Arrival.WAITS


def forgiven(place: Place, now: datetime) -> Place:
    """Who leaves before a lottery opens and joins again gets the number they had: it is theirs, and no other's."""
    return replace(place, gone_seq=0, noted=True, changed_at=now)


def drop_up_to(place: Place) -> int | None:
    """What Redis has to drop of this person, where it has not heard yet; None: it has to mark an offer."""
    if place.state is State.OFFERED:
        return None
    return max(place.gone_seq, place.seq) if place.state in PLACED else place.gone_seq


def has_heard(marked: Marked) -> bool | None:
    """Of an offer that Redis was to mark. None: it has to lapse; after a loss, its person has time to come back."""
    if marked in {Marked.ABSENT, Marked.CLOSED}:
        return None
    return marked is Marked.OK
