"""Whatever steps come together, late, twice or not at all: the sets of a line agree, and nobody moves back.

Hypothesis makes up the steps. What PostgreSQL would say is a small table here, so that what may come late (a mark, a
lapse, a drop, a confirmation) comes as late as Hypothesis likes, in any order, or is lost with the process that had it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codehub.db.redis import open_redis
from codehub.waiting_room import keys
from codehub.waiting_room.model import LOSS, Check, Joined, Marked, Standing, Swept, Why
from tests.virtual_time import ManualClock
from tests.waiting_room.lines import Room, Waiter, check_line, pid_of

NAMES = ("a", "b", "c")
Late = Callable[[], Coroutine[Any, Any, None]]


@dataclass
class Row:
    """What PostgreSQL knows of a person."""

    state: str = "none"
    seq: int = 0
    offer_id: int = 0
    gone_seq: int = 0


@dataclass
class World:
    room: Room
    epoch: int = 0
    offers: int = 0
    paused: bool = False
    rows: dict[str, Row] = field(default_factory=lambda: {name: Row() for name in NAMES})
    tokens: dict[str, list[Waiter]] = field(default_factory=lambda: {name: [] for name in NAMES})
    late: list[Late] = field(default_factory=list)
    positions: dict[tuple[str, int], int] = field(default_factory=dict)

    async def open(self, hold: float = 90, window: float = 300) -> None:
        self.epoch += 1
        await self.room.open(self.epoch, hold=hold, window=window)
        await self.room.configure(paused=self.paused)
        for name, row in self.rows.items():
            if row.state == "offered":
                self.late.append(self._mark_later(name))

    async def join(self, name: str) -> None:
        joined = await self.room.line.join(self.room.event, pid_of(name), name, None)
        if not isinstance(joined, Joined):
            return await self.open()
        waiter = Waiter(name, pid_of(name), joined.seq, joined.joined_ms)
        if waiter not in self.tokens[name]:
            self.tokens[name].append(waiter)
        row = self.rows[name]
        if row.state == "held" or row.gone_seq >= waiter.seq:
            self.late.append(lambda: self.drop(waiter, Why.STALE))
        return None

    async def poll(self, name: str, which: int) -> None:
        if not self.tokens[name]:
            return None
        waiter = self.tokens[name][-1 - which % len(self.tokens[name])]
        answer = await self.room.poll(waiter)
        row = self.rows[name]
        if answer is LOSS:
            return await self.open()
        if isinstance(answer, Check):
            refused = row.state == "held" or row.gone_seq >= waiter.seq
            other = row.state == "offered" and row.seq != waiter.seq
            if refused:
                self.late.append(lambda: self.drop(waiter, Why.STALE))
            elif not other:
                self.late.append(lambda: self.confirm(waiter, answer.expected))
        elif isinstance(answer, Standing) and answer.ready:
            over = row.gone_seq >= waiter.seq  # they have left, or had the place and gave it back
            assert row.state in ("offered", "held") or over, "told ready, and can enter"
        return None

    async def confirm(self, waiter: Waiter, expected: int) -> None:
        await self.room.line.confirm(
            self.room.event, waiter.pid, waiter.seq, expected=expected, name=waiter.name, joined_ms=waiter.joined_ms
        )

    async def drop(self, waiter: Waiter, why: Why) -> None:
        await self.room.line.drop(self.room.event, waiter.pid, waiter.seq, why, name=waiter.name)

    async def grant(self) -> None:
        picks = await self.room.line.first(self.room.event, 1)
        if picks is LOSS:
            return await self.open()
        for pid, seq in picks:
            name = next(name for name in NAMES if pid_of(name) == pid)
            row = self.rows[name]
            if row.state == "none" and row.gone_seq < seq:
                self.offers += 1
                self.rows[name] = Row("offered", seq, self.offers, row.gone_seq)
                self.late.append(self._mark_later(name))
            elif row.state == "held" or row.gone_seq >= seq:
                await self.drop(Waiter(name, pid, seq, 0), Why.STALE)
        return None

    def _mark_later(self, name: str) -> Late:
        seq, offer, epoch = self.rows[name].seq, self.rows[name].offer_id, self.epoch

        async def mark() -> None:
            marked = await self.room.line.mark(self.room.event, pid_of(name), seq, offer, epoch)
            if marked in (Marked.ABSENT, Marked.CLOSED):
                self.lapse_row(name, offer)

        return mark

    def lapse_row(self, name: str, offer: int) -> None:
        if self.rows[name].state == "offered" and self.rows[name].offer_id == offer:
            self.rows[name] = Row(gone_seq=self.rows[name].gone_seq)

    async def sweep(self) -> None:
        swept = await self.room.line.sweep(self.room.event, 2)
        if not isinstance(swept, Swept):
            return await self.open()
        for pid, offer in swept.overdue:
            self.lapse_row(next(name for name in NAMES if pid_of(name) == pid), offer)
            self.late.append(lambda pid=pid, offer=offer: self.lapse(pid, offer))  # type: ignore[misc]
        return None

    async def lapse(self, pid: str, offer: int) -> None:
        await self.room.line.lapse(self.room.event, pid, offer)

    async def enter(self, name: str) -> None:
        row = self.rows[name]
        if row.state == "offered":
            self.rows[name] = Row("held", row.seq, row.offer_id, row.gone_seq)
            waiter = Waiter(name, pid_of(name), row.seq, 0)
            self.late.append(lambda: self.drop(waiter, Why.ENTERED))

    async def release(self, name: str) -> None:
        row = self.rows[name]
        if row.state == "held":
            self.rows[name] = Row(gone_seq=max(row.gone_seq, row.seq))

    async def leave(self, name: str, which: int) -> None:
        if self.tokens[name]:
            waiter = self.tokens[name][-1 - which % len(self.tokens[name])]
            row = self.rows[name]
            if row.state != "held":
                self.rows[name] = Row(gone_seq=max(row.gone_seq, waiter.seq))
            self.late.append(lambda: self.drop(waiter, Why.LEFT))

    async def pause(self) -> None:
        self.paused = True
        await self.room.configure(paused=True)

    async def resume(self) -> None:
        self.paused = False
        await self.room.configure(paused=False)

    async def arrive(self, which: int) -> None:
        """Something late arrives; it may arrive again."""
        if self.late:
            await self.late[-1 - which % len(self.late)]()

    async def crash(self, which: int) -> None:
        """What a process had still to do is never done; the pump repeats it after the next epoch, or not at all."""
        if self.late:
            self.late.pop(-1 - which % len(self.late))

    async def check(self) -> None:
        await check_line(self.room.client, self.room.event)
        counts = await self.room.line.counts(self.room.event)
        if counts is LOSS or counts.returning:
            self.positions = {}
            return
        members = await self.room.client.zrange(keys.event(self.room.event), 0, -1, withscores=True)
        now = {(pid.decode(), int(seq)): position for position, (pid, seq) in enumerate(members)}
        for who, position in now.items():
            assert position <= self.positions.get(who, position), "outside a window nobody moves back"
        self.positions = now


names = st.sampled_from(NAMES)
which = st.sampled_from([0, 0, 0, 1, 2, 5])  # mostly the newest
# How often, against each other: a line in which offers are made, told, taken and missed, and sometimes a loss.
OFTEN = {
    "poll": (12, (names, which)),
    "grant": (10, ()),
    "arrive": (14, (which,)),
    "sweep": (6, ()),
    "advance": (6, (st.sampled_from([1, 9, 9, 20, 61, 95, 310]),)),
    "join": (4, (names,)),
    "enter": (2, (names,)),
    "leave": (2, (names, which)),
    "release": (2, (names,)),
    "crash": (1, (which,)),
    "pause": (1, ()),
    "resume": (2, ()),
    "emptied": (1, ()),
    "other_redis": (1, ()),
}
STEPS = st.sampled_from([name for name, (often, _) in OFTEN.items() for _ in range(often)]).flatmap(
    lambda name: st.tuples(st.just(name), *OFTEN[name][1])
)


async def play(url: str, steps: list[tuple[Any, ...]]) -> None:
    async with open_redis(url) as client:
        await client.flushdb()
        world = World(Room(client, ManualClock()))
        await world.open(0, 0)
        for name in NAMES:
            await world.join(name)
        for what, *arguments in steps:
            if what == "advance":
                await world.room.clock.advance(*arguments)
            elif what in ("emptied", "other_redis"):
                await getattr(world.room, what)()
            else:
                await getattr(world, what)(*arguments)
            await world.check()
        await world.room.line.aclose()


@pytest.mark.parametrize("examples", [30, pytest.param(1000, marks=pytest.mark.soak)])
def test_sets_agree_nobody_moves_back_and_nobody_is_told_ready_in_vain(redis_url: str, examples: int) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(STEPS, min_size=30, max_size=90))
        def run(steps: list[tuple[Any, ...]]) -> None:
            runner.run(play(redis_url, steps))

        run()
