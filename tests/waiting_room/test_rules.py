"""The rules about events and places, as tables: what each decision is for each row it can meet. Pure."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.waiting_room import rules
from codehub.waiting_room.model import Activity, Event, Marked, Order, Place, State
from codehub.waiting_room.rules import Arrival, Entry, Grant, Keep

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER, EARLIER = NOW + timedelta(hours=1), NOW - timedelta(hours=1)
EVENT = Event(
    id="exam",
    owner="kim",
    capacity=10,
    admission_rate=None,
    next_grant_at=None,
    opens_at=None,
    order=Order.FIFO,
    drawn=False,
    place_lease_seconds=3600,
    paused=False,
    draining=False,
    secret=b"s" * 32,
    epoch=1,
    opened_at=EARLIER,
    lost_line=False,
    activity=Activity.BUSY,
    has_live_waiters=False,
    waiters_version=0,
    waiters_seen_at=None,
    created_at=EARLIER,
    updated_at=EARLIER,
)


def place(state: State, seq: int = 5, gone: int = 0, **more: object) -> Place:
    fields = {"offer_id": 7, "offered_at": EARLIER, "person": "u1", "name": "mina", "expires_at": LATER, **more}
    return Place("exam", "pid", EARLIER, state=state, seq=seq, gone_seq=gone, **fields)  # type: ignore[arg-type]


NONE, OFFERED, RESERVED, HELD = (place(state) for state in State)


@pytest.mark.parametrize(
    ("row", "seq", "decision"),
    [
        (None, 5, Grant.GRANT),
        (NONE, 5, Grant.GRANT),
        (place(State.NONE, gone=4), 5, Grant.GRANT),
        (place(State.NONE, gone=5), 5, Grant.GONE),
        (place(State.NONE, gone=6), 5, Grant.GONE),
        (OFFERED, 5, Grant.OFFERED),
        (OFFERED, 9, Grant.OFFERED),
        (RESERVED, 5, Grant.PLACED),
        (HELD, 9, Grant.PLACED),
    ],
)
def test_who_is_picked_is_granted_an_offer_unless_they_have_one_or_are_gone(
    row: Place | None, seq: int, decision: Grant
) -> None:
    assert rules.grant(row, seq) is decision


@pytest.mark.parametrize(
    ("row", "seq", "decision"),
    [
        (None, 5, Entry.NOT_YET),
        (NONE, 5, Entry.NOT_YET),
        (place(State.NONE, gone=5), 5, Entry.OVER),
        (OFFERED, 5, Entry.RESERVE),
        (OFFERED, 9, Entry.NOT_YET),
        (place(State.OFFERED, seq=9, gone=5), 5, Entry.OVER),
        (RESERVED, 5, Entry.SAME),
        (RESERVED, 4, Entry.OVER),
        (place(State.RESERVED, expires_at=NOW), 5, Entry.OVER),
        (HELD, 5, Entry.SAME),
        (place(State.HELD, expires_at=EARLIER), 5, Entry.SAME),
        (HELD, 9, Entry.OVER),
    ],
)
def test_entering_needs_the_offer_of_this_very_token(row: Place | None, seq: int, decision: Entry) -> None:
    assert rules.entry(row, seq, NOW) is decision


@pytest.mark.parametrize(
    ("row", "seq", "decision"),
    [
        (None, 5, Arrival.WAITS),
        (NONE, 5, Arrival.WAITS),
        (place(State.NONE, gone=5), 5, Arrival.STALE),
        (OFFERED, 5, Arrival.WAITS),
        (OFFERED, 9, Arrival.OFFERED),
        (OFFERED, 3, Arrival.OFFERED),
        (RESERVED, 5, Arrival.ADMITTED),
        (HELD, 9, Arrival.ADMITTED),
    ],
)
def test_who_joins_or_comes_back_waits_unless_postgresql_knows_better(
    row: Place | None, seq: int, decision: Arrival
) -> None:
    assert rules.arrival(row, seq) is decision


def test_leaving_gives_an_offer_back_and_no_place_and_its_sequence_is_over() -> None:
    assert rules.left(OFFERED, 5, NOW) == replace(OFFERED, state=State.NONE, gone_seq=5, noted=False, changed_at=NOW)
    assert rules.left(OFFERED, 4, NOW).state is State.OFFERED  # an older token of the same person
    assert rules.left(RESERVED, 5, NOW).state is State.RESERVED
    assert rules.left(place(State.NONE, gone=9), 5, NOW).gone_seq == 9


def test_only_the_offer_that_is_meant_lapses() -> None:
    assert rules.may_lapse(OFFERED, 7)
    assert not rules.may_lapse(OFFERED, 6)
    assert not any(rules.may_lapse(row, 7) for row in (None, NONE, RESERVED, HELD))
    assert rules.lapsed(OFFERED, NOW).gone_seq == 0  # they stay in line


def test_the_end_of_a_place_is_the_end_of_its_sequence() -> None:
    ended = rules.released(place(State.HELD, workspace_id="w", noted=True), NOW)
    assert (ended.state, ended.gone_seq, ended.workspace_id, ended.noted) == (State.NONE, 5, None, True)


def test_what_redis_has_to_drop_is_what_is_over() -> None:
    assert rules.drop_up_to(OFFERED) is None
    assert rules.drop_up_to(RESERVED) == 5
    assert rules.drop_up_to(place(State.HELD, gone=9)) == 9
    assert rules.drop_up_to(place(State.NONE, seq=9, gone=4)) == 4  # lapsed: they are in line with 9


@pytest.mark.parametrize(
    ("row", "alive", "decision"),
    [
        (NONE, None, Keep.KEEP),
        (OFFERED, None, Keep.KEEP),
        (RESERVED, None, Keep.KEEP),
        (place(State.RESERVED, expires_at=NOW), None, Keep.RELEASE),
        (HELD, None, Keep.KEEP),
        (place(State.HELD, expires_at=EARLIER), None, Keep.RELEASE),
        (HELD, True, Keep.KEEP),
        (place(State.HELD, expires_at=NOW + timedelta(minutes=29)), True, Keep.RENEW),
        (place(State.HELD, expires_at=EARLIER), True, Keep.RENEW),
        (HELD, False, Keep.RELEASE),
    ],
)
def test_a_place_lasts_as_long_as_what_holds_it_or_its_time(row: Place, alive: bool | None, decision: Keep) -> None:
    assert rules.keep(row, alive=alive, now=NOW, lease_seconds=3600) is decision


@pytest.mark.parametrize(
    ("marked", "heard"),
    [
        (Marked.OK, True),
        (Marked.ABSENT, None),
        (Marked.CLOSED, None),
        (Marked.RETURNING, False),
        (Marked.OTHER_EPOCH, False),
    ],
)
def test_an_offer_that_cannot_be_marked_lapses_unless_its_person_may_come_back(
    marked: Marked, heard: bool | None
) -> None:
    assert rules.has_heard(marked) is heard


def allowed(event: Event, used: int = 0, capacity: int | None = 10, now: datetime = NOW) -> int:
    return rules.allowance(event, capacity=capacity, used=used, now=now, most=100).count


def test_as_many_offers_as_there_are_free_places() -> None:
    assert [allowed(EVENT, used) for used in (0, 9, 10, 15)] == [10, 1, 0, 0]  # 15: the capacity was lowered
    assert allowed(EVENT, 5000, capacity=None) == 100
    assert allowed(replace(EVENT, paused=True)) == 0
    assert allowed(replace(EVENT, opens_at=LATER)) == 0
    assert allowed(replace(EVENT, opens_at=NOW)) == 10


@given(
    rate=st.floats(min_value=0.5, max_value=6000),
    steps=st.lists(st.floats(min_value=0.05, max_value=20), min_size=1, max_size=200),
)
def test_over_any_time_no_more_are_admitted_than_the_rate_says(rate: float, steps: list[float]) -> None:
    event, now, granted = replace(EVENT, admission_rate=rate, capacity=100_000), NOW, 0
    for seconds in steps:
        room = rules.allowance(event, capacity=100_000, used=0, now=now, most=1_000)
        granted += room.count
        event = replace(event, next_grant_at=rules.next_grant_at(event, room.base, room.count))
        most = ((now - NOW).total_seconds() + 1) * rate / 60 + 1
        assert granted <= most + 1e-3
        now += timedelta(seconds=seconds)
    # And none is lost, as long as the pump comes every second.
    if all(seconds <= 1 for seconds in steps):
        assert granted >= ((now - NOW).total_seconds() - steps[-1]) * rate / 60 - 1e-3


def test_a_lottery_is_drawn_until_it_opens_and_never_again_while_people_wait() -> None:
    lottery = replace(EVENT, order=Order.LOTTERY, opens_at=LATER)
    assert rules.draws_lots(lottery, NOW)
    assert not rules.draws_lots(lottery, LATER)
    assert not rules.draws_lots(replace(EVENT, opens_at=LATER), NOW)
    drawn = replace(lottery, drawn=True, opens_at=NOW)
    put_off = rules.changed(drawn, replace(drawn, opens_at=LATER), NOW)
    assert put_off.drawn
    assert not rules.draws_lots(put_off, NOW)
    idle = replace(drawn, activity=Activity.IDLE)
    assert not rules.changed(idle, replace(idle, opens_at=LATER), NOW).drawn
    assert rules.would_reorder(EVENT, Order.LOTTERY)
    assert not rules.would_reorder(idle, Order.FIFO)


def test_after_a_loss_people_are_waited_for_and_nobody_where_none_can_have_been_in_line() -> None:
    def opening(event: Event) -> rules.Opening:
        return rules.opening(event, silent_seconds=90, heartbeat_seconds=300)

    assert opening(EVENT) == rules.Opening(90, 300)
    assert opening(replace(EVENT, activity=Activity.IDLE)) == rules.Opening(0, 0)
    assert rules.reopened(EVENT, NOW) == replace(EVENT, epoch=2, opened_at=NOW, lost_line=True)
    assert not rules.reopened(replace(EVENT, activity=Activity.IDLE), NOW).lost_line


def test_an_event_rests_in_two_steps_when_nobody_is_there_or_can_come_back() -> None:
    def may_rest(event: Event, waiting: int = 0, offered: int = 0) -> bool:
        return rules.may_rest(event, waiting=waiting, offered=offered, now=NOW, heartbeat_seconds=300)

    assert may_rest(EVENT)
    assert not may_rest(EVENT, waiting=1)
    assert not may_rest(EVENT, offered=1)
    lost = replace(EVENT, lost_line=True, opened_at=NOW - timedelta(seconds=299))
    assert not may_rest(lost)
    assert may_rest(replace(lost, opened_at=NOW - timedelta(seconds=300)))
    assert rules.rested(EVENT) is Activity.CLOSING
    assert rules.rested(replace(EVENT, activity=Activity.CLOSING)) is Activity.IDLE


def test_that_people_wait_in_lab_is_believed_for_ten_seconds() -> None:
    seen = NOW - timedelta(seconds=10)
    assert rules.waiters(True, seen, NOW)
    assert not rules.waiters(True, seen, NOW + timedelta(seconds=1))
    assert not rules.waiters(False, seen, NOW)
    assert not rules.waiters(True, None, NOW)


def test_a_clock_that_was_set_back_does_not_hold_the_rate_up() -> None:
    event = replace(EVENT, admission_rate=6, next_grant_at=NOW + timedelta(seconds=10))
    assert allowed(event) == 0
    assert allowed(replace(event, next_grant_at=NOW + timedelta(days=1))) == 1
