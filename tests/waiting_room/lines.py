"""A line with people in it: real Redis, virtual time. And `check_line`, for every test that changes lines."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from codehub.db.redis import Client
from codehub.settings import QueueConfig
from codehub.waiting_room import keys
from codehub.waiting_room.line import Line, Polled
from codehub.waiting_room.model import LOSS, Check, Joined, LineCounts, Marked, Standing, Swept
from tests.virtual_time import ManualClock

SECOND_MS = 1000
EPOCH = 2**32


@dataclass(frozen=True)
class Waiter:
    """A person with a token."""

    name: str
    pid: str
    seq: int
    joined_ms: int


def pid_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]


class Room:
    """One event's line, driven as `service` and `pump` would."""

    def __init__(
        self, client: Client, clock: ManualClock, event: str = "exam", config: QueueConfig | None = None
    ) -> None:
        self.client: Any = client
        self.clock = clock
        self.event = event
        self.config = config or QueueConfig()
        self.line = Line(client, clock, self.config)

    @property
    def now_ms(self) -> int:
        return int(self.clock.timestamp() * 1000)

    async def open(self, epoch: int = 1, *, hold: float = 0, window: float = 0, lottery: bool = False) -> bool:
        return await self.line.open(self.event, epoch, hold, window, lottery=lottery)

    async def join(self, name: str, number: int | None = None) -> Waiter:
        joined = await self.line.join(self.event, pid_of(name), name, number)
        assert isinstance(joined, Joined)
        return Waiter(name, pid_of(name), joined.seq, joined.joined_ms)

    async def join_all(self, *names: str) -> list[Waiter]:
        return [await self.join(name) for name in names]

    async def poll(self, who: Waiter) -> Polled:
        return await self.line.status(self.event, who.pid, who.seq)

    async def standing(self, who: Waiter) -> Standing:
        polled = await self.poll(who)
        assert isinstance(polled, Standing), polled
        return polled

    async def positions(self, people: Iterable[Waiter]) -> list[int | None]:
        return [(await self.standing(who)).position for who in people]

    async def put_back(self, who: Waiter) -> bool:
        """A poll that is answered CHECK, and PostgreSQL has nothing against it."""
        check = await self.poll(who)
        assert isinstance(check, Check), check
        return await self.confirm(who, check.expected)

    async def confirm(self, who: Waiter, expected: int) -> bool:
        confirmed = await self.line.confirm(
            self.event, who.pid, who.seq, expected=expected, name=who.name, joined_ms=who.joined_ms
        )
        assert confirmed is not LOSS
        return bool(confirmed)

    async def mark(self, who: Waiter, offer_id: int, epoch: int = 1) -> Marked:
        marked = await self.line.mark(self.event, who.pid, who.seq, offer_id, epoch)
        assert isinstance(marked, Marked)
        return marked

    async def sweep(self, limit: int = 100) -> Swept:
        swept = await self.line.sweep(self.event, limit)
        assert isinstance(swept, Swept)
        return swept

    async def first(self, k: int = 10) -> list[str]:
        """Whose turn it is, by pid."""
        picks = await self.line.first(self.event, k)
        assert picks is not LOSS
        return [pick.pid for pick in picks]

    async def configure(self, *, paused: bool = False, lottery: bool = False, eta: str = "") -> None:
        await self.line.configure(self.event, paused=paused, lottery=lottery, eta=eta)

    async def counts(self) -> LineCounts:
        counts = await self.line.counts(self.event)
        assert isinstance(counts, LineCounts)
        return counts

    async def kinds(self, after: int = 0) -> list[str]:
        """What the log says since the line was opened."""
        entries = await self.line.log_since(self.event, after or (await self.counts()).epoch * EPOCH)
        assert isinstance(entries, list)
        return [entry.kind.value for entry in entries]

    async def pass_time(self, seconds: float, *polling: Waiter, step: float = 5) -> list[Swept]:
        """The pump sweeps, and these people ask, every few seconds. What the sweeps found."""
        found = []
        while seconds > 0:
            await self.clock.advance(min(step, seconds))
            seconds -= step
            for who in polling:
                await self.poll(who)
            found.append(await self.sweep())
        return found

    async def other_redis(self) -> None:
        """As after a failover that has kept the line: the run id is another one than the stored."""
        await self.client.hset(keys.meta(self.event), "run", "another")

    async def emptied(self) -> None:
        for key in await self.everything():
            await self.client.delete(key)

    async def everything(self) -> list[str]:
        found = [key.decode() async for key in self.client.scan_iter(match=f"*{{{self.event}}}*")]
        return sorted(found)


def as_seen_before(who: Waiter, epoch: int, number: int) -> Waiter:
    return replace(who, seq=epoch * EPOCH + number)


async def check_line(client: Any, event: str, *, drawn: bool = False) -> None:
    """What holds of a line after every step, whatever the steps were. In a lottery two may have drawn the same."""
    names = keys.of_event(event)
    async with client.pipeline(transaction=False) as pipe:
        for key in names[:6]:
            pipe.zrange(key, 0, -1, withscores=True)
        pipe.hgetall(names[6])
        *found, texts = await pipe.execute()
    members, live, passed, beat, silent, offers = [{pid.decode(): score for pid, score in some} for some in found]
    marks = {pid.decode(): text.decode().split() for pid, text in texts.items()}
    assert beat.keys() | silent.keys() == members.keys(), "everybody is heard of or silent"
    assert not beat.keys() & silent.keys()
    assert live.keys() | passed.keys() <= beat.keys(), "who is silent is offered nothing"
    assert not live.keys() & passed.keys()
    assert not (live.keys() | passed.keys()) & offers.keys(), "one offer at a time"
    for some in (live, passed):
        assert all(members[pid] == seq for pid, seq in some.items()), "one order in all sets"
    assert offers.keys() == {pid for pid, (offer, *_) in marks.items() if offer != "0"}
    assert all(int(marks[pid][1]) == members[pid] for pid in offers.keys() & members.keys())
    assert drawn or len(set(members.values())) == len(members), "no two have one sequence"
