"""Silence in a line: one who is not heard of keeps the place for a while, is offered none, and then loses it."""

import json
import logging
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from codehub.settings import QueueConfig
from codehub.waiting_room import keys
from codehub.waiting_room.model import EXPIRED
from tests.virtual_time import ManualClock
from tests.waiting_room.lines import Room, check_line


@pytest.fixture
def everything_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run at the level `warning`."""
    debugging = structlog.make_filtering_bound_logger(logging.DEBUG)
    monkeypatch.setattr("codehub.waiting_room.line.log", structlog.wrap_logger(None, wrapper_class=debugging))


async def test_a_silent_person_keeps_the_place_but_is_passed_over_and_is_next_on_return(room: Room) -> None:
    away, here = await room.join_all("away", "here")
    await room.pass_time(95, here)
    assert (await room.standing(here)).position == 2, "the silent one still counts"
    assert (await room.standing(here)).live_ahead == 0
    assert await room.first() == [here.pid]
    assert (await room.standing(away)).position == 1
    assert await room.first() == [away.pid, here.pid]


async def test_one_who_polls_more_often_than_the_limit_is_never_silent(room: Room) -> None:
    hidden = await room.join("hidden")
    for _ in range(10):
        await room.pass_time(85)
        assert not (await room.standing(hidden)).passed
    assert (await room.counts()).silent == 0


@pytest.mark.usefixtures("everything_logged")
async def test_after_five_minutes_of_silence_the_others_move_up(room: Room) -> None:
    ghost, here = await room.join_all("ghost", "here")
    with capture_logs() as logged:
        await room.pass_time(299, here)
        assert (await room.standing(here)).position == 2
        await room.pass_time(2, here)
    assert (await room.standing(here)).position == 1
    assert await room.poll(ghost) is EXPIRED
    assert [key for key in await room.everything() if ghost.pid in key] == []
    told = await room.client.xrange("stream:event:{exam}:user:ghost")
    assert [fields for _, fields in told] == [{b"expired": str(ghost.seq).encode()}]
    assert await room.kinds() == ["reset", "expired"]
    assert (await room.counts()).expired == 1
    said = [line for line in logged if line["event"] == "Heartbeat expired - cleaning up abandoned user"]
    assert said == [
        {
            "event": "Heartbeat expired - cleaning up abandoned user",
            "log_level": "info",
            "waiting_token": f"exam.{ghost.pid}",
            "event_id": "exam",
            "user_id": "ghost",
        }
    ]


@pytest.mark.usefixtures("everything_logged")
async def test_a_renewed_heartbeat_is_logged_for_those_who_debug(room: Room) -> None:
    mina = await room.join("mina")
    with capture_logs() as logged:
        await room.poll(mina)
    assert logged == [
        {
            "event": "Heartbeat renewed",
            "log_level": "debug",
            "waiting_token": f"exam.{mina.pid}",
            "ttl_remaining": "300s",
        }
    ]


async def test_an_outage_expires_nobody(room: Room) -> None:
    people = await room.join_all("mina", "jun")
    await room.clock.advance(4000)  # no sweep, and no poll came through
    await room.sweep()
    assert (await room.counts()).silent == 0, "silence counts from now on"
    await room.pass_time(85)
    assert (await room.counts()).silent == 0
    await room.pass_time(10)
    assert (await room.counts()).silent == 2
    await room.pass_time(200)
    assert await room.positions(people) == [1, 2]


async def test_an_outage_in_the_middle_of_a_silence_gives_its_time_back(room: Room) -> None:
    away = await room.join("away")
    await room.pass_time(200)
    assert (await room.counts()).silent == 1
    await room.clock.advance(200)
    await room.pass_time(295)
    assert (await room.standing(away)).position == 1


async def test_a_poll_takes_a_few_ghosts_out_while_the_pump_is_awake(room: Room) -> None:
    for n in range(40):
        await room.join(f"ghost{n}")
    here = await room.join("here")
    await room.pass_time(299, here)
    await room.clock.advance(2)
    assert (await room.standing(here)).position == 41
    assert (await room.standing(here)).position == 33, "eight at a time"
    await room.line.peek(room.event, here.pid, here.seq)
    await room.join("other")
    assert (await room.counts()).waiting == 10
    await room.line.aclose()


async def test_no_poll_takes_ghosts_out_while_the_pump_is_away(room: Room) -> None:
    await room.join("ghost")
    here = await room.join("here")
    await room.pass_time(299, here)
    await room.clock.advance(11)
    for _ in range(3):
        assert (await room.standing(here)).position == 2


async def test_a_sweep_is_bounded_and_says_that_there_is_more(room: Room) -> None:
    for n in range(25):
        await room.join(f"ghost{n}")
    await room.pass_time(80)
    await room.clock.advance(9)
    await room.sweep()
    await room.clock.advance(2)
    first, second, third = await room.sweep(10), await room.sweep(10), await room.sweep(10)
    assert [swept.silenced for swept in (first, second, third)] == [10, 10, 5]
    assert [swept.more for swept in (first, second, third)] == [True, True, False]


async def test_one_who_joins_again_while_their_ghost_is_buried_keeps_their_keys(room: Room) -> None:
    ghost = await room.join("ghost")
    await room.pass_time(305)
    again = await room.join("ghost")
    swept = await room.line._scripts.run(
        room.client,
        "bury",
        [keys.event(room.event), keys.heartbeat(room.event, ghost.pid), keys.waiting(room.event, ghost.pid)],
        [ghost.pid],
    )
    assert swept == [b""]
    assert json.loads(await room.client.get(keys.waiting(room.event, ghost.pid)))["seq"] == again.seq


async def test_an_act_brings_a_silent_person_back(room: Room) -> None:
    away = await room.join("away")
    await room.pass_time(100)
    assert await room.first() == []
    assert await room.join("away") == away
    assert await room.first() == [away.pid]


async def test_shorter_times_are_those_of_the_settings(line_client: Any, clock: ManualClock) -> None:
    config = QueueConfig(heartbeat_seconds=10, silent_seconds=3, waiting_seconds=20, event_seconds=30)
    room = Room(line_client, clock, config=config)
    await room.open()
    mina = await room.join("mina")
    assert await line_client.ttl(keys.heartbeat("exam", mina.pid)) == 10
    assert await line_client.ttl(keys.waiting("exam", mina.pid)) == 20
    assert await line_client.ttl("queue:event:{exam}") == 30
    await room.pass_time(4, step=1)
    assert (await room.counts()).silent == 1
    await room.pass_time(7, step=1)
    assert (await room.counts()).waiting == 0
    await check_line(line_client, "exam")
