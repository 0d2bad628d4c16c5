"""Offers: made, shown, and ended when they are not taken. The pump's steps that change places of people in line.

PostgreSQL decides, under the event's lock; then Redis hears of it, and that it has heard is noted. A crash between two
of these leaves a row that is not noted, or a mark that is closed: the next tick goes on from there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from codehub import metrics
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.events import outbox
from codehub.events.model import Event as News
from codehub.settings import LimitsConfig
from codehub.waiting_room import news, rules, store, tokens
from codehub.waiting_room.epochs import Epochs
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import LAB, Event, Loss, Overdue, Pick, Place, Why
from codehub.waiting_room.rules import Grant
from codehub.waiting_room.store import sql

T = TypeVar("T")
GRANTS = 100  # offers that one transaction makes
ROUNDS = 5  # of granting, of one event and tick: who is refused makes room for the next
PICK_SECONDS = 2.0  # how old a pick may be when it is granted, on the database's clock
AT_ONCE = 32  # questions to Redis under way


@dataclass
class _Granting:
    """What one transaction decides about those who were picked."""

    fresh: list[Place] = field(default_factory=list)
    unmarked: list[Place] = field(default_factory=list)  # had an offer already, of which Redis has not heard
    refused: list[Pick] = field(default_factory=list)  # to be dropped from the line

    @property
    def moves(self) -> bool:
        return bool(self.fresh or self.unmarked or self.refused)


class Offers:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        limits: LimitsConfig,
        line: Line,
        epochs: Epochs,
        offered: Callable[[str, Sequence[Place]], None],
    ) -> None:
        """`offered`: told of each event's new offers."""
        self._offered = offered
        self._database = database
        self._clock = clock
        self._limits = limits
        self._line = line
        self._epochs = epochs

    def capacity(self, event: Event) -> int | None:
        """None: no limit."""
        return (self._limits.max_running_global or None) if event.id == LAB else event.capacity

    async def grant(self, event: Event) -> int:
        """To the first in line, as many as there are free places, and the rate allows."""
        total = 0
        for _ in range(ROUNDS):
            async with self._database.connection() as c:
                picked_at: datetime = await c.fetchval(sql.clock)
                room = self._allowance(event, await store.used(c, event.id))
            if not room.count:
                break
            count = room.count
            picks = await self._epochs.guarded(event.id, lambda k=count: self._line.first(event.id, k))  # type: ignore[misc]
            decided = await self._decide(event, picks, picked_at)
            if not decided.moves:
                break
            total += len(decided.fresh)
            self._offered(event.id, decided.fresh)
            await self.tell(event, decided.fresh + decided.unmarked)
            await gather(self._line.drop(event.id, pid, seq, Why.STALE) for pid, seq in decided.refused)
        metrics.QUEUE_OFFERS.inc(total)
        return total

    def _allowance(self, event: Event, used: int) -> rules.Allowance:
        return rules.allowance(event, capacity=self.capacity(event), used=used, now=self._clock.now(), most=GRANTS)

    async def _decide(self, seen: Event, picks: Sequence[Pick], picked_at: datetime) -> _Granting:
        decided = _Granting()
        if not picks:
            return decided
        names = await self._line.names(seen.id, [pick.pid for pick in picks])
        now = self._clock.now()
        async with self._database.transaction() as c:
            event = await store.lock_event(c, seen.id)
            if event is None or event.epoch != seen.epoch or await c.fetchval(sql.age, picked_at) >= PICK_SECONDS:
                return decided
            room = self._allowance(event, await store.used(c, event.id))
            places = await store.find_places(c, event.id, [pick.pid for pick in picks])
            for pick in picks:
                place = places.get(pick.pid)
                match rules.grant(place, pick.seq):
                    case Grant.PLACED | Grant.GONE:
                        decided.refused.append(pick)
                    case Grant.OFFERED if place:
                        decided.unmarked.append(place)
                    case _ if len(decided.fresh) < room.count:
                        before = place or Place(event.id, pick.pid, now)
                        offer_id = await c.fetchval(sql.new_offer)
                        decided.fresh.append(await store.save(c, rules.granted(before, pick.seq, offer_id, now)))
            if decided.fresh and event.admission_rate is not None:
                following = rules.next_grant_at(event, room.base, len(decided.fresh))
                await c.execute(sql.set_next_grant, event.id, following)
            await outbox.write(c, now, await self._ready(c, event, decided.fresh, names))
        return decided

    @staticmethod
    async def _ready(c: Connection, event: Event, offered: Sequence[Place], names: Mapping[str, str]) -> list[News]:
        """For those who have an account: the line knows them by name, and their pid proves that the name is theirs."""
        accounts = await store.accounts(c, [names[place.pid] for place in offered if place.pid in names])
        people = {tokens.pid(event.secret, person): person for person in accounts.values()}
        return [news.ready(event.id, people[place.pid]) for place in offered if place.pid in people]

    # --- what Redis has not heard, and what was not taken

    async def tell(self, event: Event, places: Sequence[Place]) -> int:
        """Marks and drops that Redis lacks; what it has heard is noted, unless it changed since. How many lapsed."""
        if not places:
            return 0
        heard = await gather(self._say(event, place) for place in places)
        answers = list(zip(places, heard, strict=True))
        async with self._database.connection() as c:
            await store.note(c, event.id, event.epoch, [place for place, told in answers if told])
        return await self.lapse(
            event, [Overdue(p.pid, p.offer_id) for p, told in answers if told is None and p.offer_id]
        )

    async def _say(self, event: Event, place: Place) -> bool | None:
        """True: Redis has heard; False: not now; None: the offer has to lapse."""
        up_to = rules.drop_up_to(place)
        if up_to is not None:
            why = Why.ENTERED if place.state in rules.PLACED else Why.LEFT
            return not isinstance(await self._line.drop(event.id, place.pid, up_to, why, name=place.name), Loss)
        assert place.offer_id is not None  # noqa: S101 (a constraint of the table)
        marked = await self._line.mark(event.id, place.pid, place.seq, place.offer_id, event.epoch)
        return False if isinstance(marked, Loss) else rules.has_heard(marked)

    async def lapse(self, event: Event, overdue: Sequence[Overdue]) -> int:
        """PostgreSQL, then Redis, which shows these as not ready already. An enter that came before decides."""
        if not overdue:
            return 0
        now, lapsed = self._clock.now(), 0
        async with self._database.transaction() as c:
            await store.lock_event(c, event.id)
            places = await store.find_places(c, event.id, [one.pid for one in overdue])
            for pid, offer_id in overdue:
                place = places.get(pid)
                if place and rules.may_lapse(place, offer_id):
                    await store.save(c, rules.lapsed(place, now))
                    lapsed += 1
        entered = [places[pid] for pid, _ in overdue if pid in places and places[pid].state in rules.PLACED]
        await self.tell(event, entered)
        kept = {place.pid for place in entered}
        await gather(self._line.lapse(event.id, pid, offer_id) for pid, offer_id in overdue if pid not in kept)
        return lapsed


async def gather(work: Iterable[Awaitable[T]]) -> list[T]:
    """All of it, so many at a time."""
    bound = asyncio.Semaphore(AT_ONCE)

    async def one(awaited: Awaitable[T]) -> T:
        async with bound:
            return await awaited

    return await asyncio.gather(*(one(awaited) for awaited in work))
