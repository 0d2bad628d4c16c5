"""`lab`, the event that guards the platform: no start overtakes live people who wait, and no limit is passed."""

import pytest
import redis.asyncio

from codehub.db import Database
from codehub.settings import LimitsConfig
from codehub.waiting_room import store
from codehub.waiting_room.errors import TokenExpiredError
from codehub.waiting_room.model import LAB, LineCounts, State
from codehub.workspaces.admission import NoPlace, OwnLimit, Refused, admitted
from codehub.workspaces.errors import ReservationExpiredError, RunningLimitError
from codehub.workspaces.model import Desired, Workspace
from codehub.workspaces.service import NewWorkspace
from tests.virtual_time import ManualClock
from tests.waiting_room.hall import EXAM, Hall


@pytest.fixture
def full(database: Database, redis_client: redis.asyncio.Redis, clock: ManualClock) -> Hall:
    """One place for all."""
    return Hall(database, redis_client, clock, limits=LimitsConfig(max_running_global=1, max_running_per_user=2))


async def start(hall: Hall, name: str, token: str | None = None) -> Workspace | Refused:
    return await hall.workspaces.create(await hall.person(name), NewWorkspace("w", "t", reservation_token=token))


async def started(hall: Hall, name: str, token: str | None = None) -> Workspace:
    return admitted(await start(hall, name, token))


async def sleeps(hall: Hall, name: str, id_: str) -> None:
    await hall.workspaces.request(await hall.person(name), id_, Desired.STANDBY)


async def test_13_a_place_that_is_offered_is_not_free_for_a_start(full: Hall) -> None:
    """Offers not counted: A was offered the place; B started; A entered, and was refused."""
    a = await full.join("a", LAB)
    await full.tick(2)
    assert await full.ready(a)
    assert not (await full.find(LAB)).has_live_waiters
    assert isinstance(await start(full, "b"), NoPlace)
    await full.room.enter(a)
    assert isinstance(await start(full, "b"), NoPlace)
    assert isinstance(await start(full, "a"), Workspace)
    assert await full.places(event=LAB) == []


async def test_14_a_pump_that_counted_before_a_join_does_not_say_that_nobody_waits(full: Hall) -> None:
    """A flag without version: the pump sees 0; A joins; the pump clears the flag; B starts."""
    mine = await started(full, "c")
    b = await full.join("b", LAB)
    await full.room.leave(b)
    before = await full.find(LAB)
    counts = await full.line.counts(LAB)
    assert isinstance(counts, LineCounts)
    await full.join("a", LAB)
    await full.pump._note_waiters(before, counts)  # comes late
    await sleeps(full, "c", mine.id)
    assert (await full.find(LAB)).has_live_waiters
    assert start_is_refused(await start(full, "b"))


async def test_an_idle_tab_that_did_not_take_its_turn_keeps_nobody_from_a_free_place(full: Hall) -> None:
    wide = full.another(limits=LimitsConfig(max_running_global=3, max_running_per_user=2))
    a = await wide.join("a", LAB)
    await wide.tick(2)
    assert await wide.ready(a)
    for _ in range(75):  # the page is open, and nobody is there: the turn is over, and comes again
        await wide.pass_time(1, a, step=1)
        assert not (await wide.find(LAB)).has_live_waiters
    assert isinstance(await start(wide, "b"), Workspace)


def start_is_refused(outcome: Workspace | Refused) -> bool:
    return isinstance(outcome, NoPlace) and outcome.waiting


async def test_while_a_live_person_waits_a_start_without_reservation_is_429_and_says_where_to_wait(
    full: Hall,
) -> None:
    running = await started(full, "c")
    a = await full.join("a", LAB)
    await full.tick()
    await sleeps(full, "c", running.id)
    with pytest.raises(RunningLimitError) as refused:
        await started(full, "b")
    assert (refused.value.status, refused.value.extra["join_url"]) == (429, "/wait/lab")
    assert isinstance(await full.workspaces.request(await full.person("c"), running.id, Desired.RUNNING), NoPlace)
    await full.tick()
    assert await full.ready(a)


async def test_once_nobody_waits_any_more_starting_is_free_again(full: Hall) -> None:
    a = await full.join("a", LAB)
    await full.room.leave(a)
    assert start_is_refused(await start(full, "b"))  # until the pump has looked
    await full.tick()
    assert isinstance(await start(full, "b"), Workspace)


async def test_who_is_silent_does_not_hold_up_those_who_start(full: Hall) -> None:
    running = await started(full, "c")
    await full.join("a", LAB)
    await full.pass_time(95)
    await sleeps(full, "c", running.id)
    assert isinstance(await start(full, "b"), Workspace)


async def test_redis_that_is_away_for_more_than_ten_seconds_counts_as_nobody_waiting(full: Hall) -> None:
    await full.join("a", LAB)
    await full.clock.advance(10)
    assert start_is_refused(await start(full, "b"))
    await full.clock.advance(1)
    assert isinstance(await start(full, "b"), Workspace)


async def test_after_a_loss_the_line_is_guarded_through_the_hold(full: Hall) -> None:
    running = await started(full, "c")
    a = await full.join("a", LAB)
    await full.tick()
    await full.lose_line()
    await full.tick(2)
    await sleeps(full, "c", running.id)
    for _ in range(16):
        await full.clock.advance(5)
        await full.tick()
        assert start_is_refused(await start(full, "b"))
    assert (await full.status(a)).position == 1
    await full.pass_time(15, a)
    assert await full.ready(a)
    assert isinstance(await start(full, "b"), NoPlace)


async def test_a_reservation_is_used_by_any_start_of_its_person_once(full: Hall) -> None:
    person = await full.person("a")
    asleep = admitted(await full.workspaces.create(person, NewWorkspace("old", "t", Desired.STANDBY)))
    token = await full.join("a", LAB)
    await full.join("next", LAB)
    reservation = await full.enter_when_ready(token)
    woken = await full.workspaces.request(person, asleep.id, Desired.RUNNING)
    assert not isinstance(woken, Refused)
    assert await full.places(event=LAB) == []
    assert isinstance(await start(full, "a"), NoPlace)
    with pytest.raises(ReservationExpiredError):
        await started(full, "a", reservation.reservation_token)
    with pytest.raises(TokenExpiredError):
        await full.room.enter(token)


async def test_a_reservation_token_is_good_for_its_own_person_in_its_time(full: Hall) -> None:
    token = (await full.enter_when_ready(await full.join("a", LAB))).reservation_token
    for wrong in ("", "x", token[:-1], token + "x"):
        with pytest.raises(ReservationExpiredError):
            await started(full, "a", wrong)
    with pytest.raises(ReservationExpiredError):
        await started(full, "b", token)
    await full.clock.advance(301)
    with pytest.raises(ReservationExpiredError):
        await started(full, "a", token)
    assert isinstance(await start(full, "a"), NoPlace)  # the pump has not looked yet
    await full.tick()
    assert isinstance(await start(full, "a"), Workspace)


async def test_no_reservation_lifts_ones_own_limit_and_it_is_kept_then(full: Hall) -> None:
    roomy = full.another(limits=LimitsConfig(max_running_global=9, max_running_per_user=1))
    await started(roomy, "a")
    token = (await roomy.enter_when_ready(await roomy.join("a", LAB))).reservation_token
    assert isinstance(await start(roomy, "a", token), OwnLimit)
    assert [place.state for place in await roomy.places(event=LAB)] == [State.RESERVED]


async def test_a_place_at_another_event_is_held_by_the_workspace_and_ends_when_it_sleeps(hall: Hall) -> None:
    await hall.event(capacity=1)
    a, b = await hall.join_all("a", "b")
    token = (await hall.enter_when_ready(a)).reservation_token
    w = await started(hall, "a", token)
    (place,) = await hall.places()
    assert (place.state, place.workspace_id) == (State.HELD, w.id)
    await hall.pass_time(2 * 3600, b, step=60)  # the lease is renewed while it runs
    assert [place.state for place in await hall.places()] == [State.HELD]
    await sleeps(hall, "a", w.id)
    await hall.tick()
    assert await hall.ready(b)


async def test_a_workspace_that_runs_already_takes_a_place_too_and_the_lab_reservation_stays(hall: Hall) -> None:
    await hall.event(capacity=1)
    w = await started(hall, "a")
    lab = await hall.enter_when_ready(await hall.join("a", LAB))
    token = (await hall.enter_when_ready(await hall.join("a"))).reservation_token
    person = await hall.person("a")
    for given, held in ((lab.reservation_token, None), (token, w.id)):
        assert not isinstance(await hall.workspaces.request(person, w.id, Desired.RUNNING, given), Refused)
        assert [place.workspace_id for place in await hall.places()] == [held]
    assert [place.state for place in await hall.places(event=LAB)] == [State.RESERVED]


async def test_lab_has_no_line_without_a_limit_and_everybody_enters_at_once(hall: Hall) -> None:
    unlimited = hall.another(limits=LimitsConfig(max_running_global=0))
    people = [await unlimited.join(f"p{n}", LAB) for n in range(3)]
    await unlimited.tick()
    assert [await unlimited.ready(token) for token in people] == [True] * 3
    async with hall.database.connection() as c:
        assert await store.used(c, EXAM) == 0
