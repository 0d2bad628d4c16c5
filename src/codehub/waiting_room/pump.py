"""What makes the line move: a loop of the coordinator, every second and when it is nudged (`codehub_waiting`).

For each event that is not idle: silence and expiry, offers that were not taken, what Redis has not heard yet, new
offers, the forecast, and whether people wait in `lab`. Every step is safe beside another pump and after a crash between
any two: PostgreSQL decides under the event's lock. What a tick costs does not depend on how many wait.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from codehub import logs, metrics
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.db import Database
from codehub.errors import UnavailableError
from codehub.settings import LimitsConfig, QueueConfig
from codehub.waiting_room import rules, store
from codehub.waiting_room.ending import Endings
from codehub.waiting_room.epochs import Epochs
from codehub.waiting_room.eta_check import EtaCheck
from codehub.waiting_room.granting import Offers
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import LAB, Event, LineCounts, Order
from codehub.waiting_room.pace import Pace
from codehub.waiting_room.store import Watched, sql

log = logs.get()
NAME = "waiting-room"
PERIOD_SECONDS = 1.0
EVENTS = 100  # that one query reads
SWEPT = 500  # people that one sweep moves
SWEEPS = 20  # of one event and tick
TOLD = 500  # rows of which Redis is told in one tick, beside new offers
SEEN_AGAIN = timedelta(seconds=2)  # after so long it is said again that people wait in `lab`


@dataclass
class Done:
    """What a tick did."""

    events: list[str] = field(default_factory=list)
    waiting: int = 0
    granted: int = 0
    lapsed: int = 0
    expired: int = 0
    ended: int = 0
    failed: int = 0


class Pump:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: QueueConfig,
        limits: LimitsConfig,
        line: Line,
        endings: Endings,
    ) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._line = line
        self._epochs = Epochs(database, line, clock, config)
        self._eta_check = EtaCheck(clock, line)
        self._offers = Offers(database, clock, limits, line, self._epochs, self._eta_check.offered)
        self._endings = endings
        self._pace = Pace(clock, config.silent_seconds, line)
        self._told: dict[str, tuple[int, bool, bool, str, int | None]] = {}  # what Redis was told last, by event

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, timeout=60.0, longest_pause=5.0)

    async def tick(self) -> Tick:
        done = Done(ended=await self._endings.end())
        after = ""
        while True:
            async with self._database.connection() as c:
                found = await store.watched(c, after, EVENTS)
            for watched in found:
                await self._pump_safely(watched, done)
            if len(found) < EVENTS:
                break
            after = found[-1].event.id
        self._pace.keep_only(done.events)
        self._eta_check.keep_only(done.events)
        self._told = {id_: self._told[id_] for id_ in done.events if id_ in self._told}
        metrics.QUEUE_WAITING.set(done.waiting)
        return Tick({**vars(done), "events": len(done.events)})

    async def _pump_safely(self, watched: Watched, done: Done) -> None:
        """One event's trouble is not another's."""
        done.events.append(watched.event.id)
        try:
            await self._pump(watched, done)
        except UnavailableError as e:
            done.failed += 1
            log.warning("A line could not be looked at", event_id=watched.event.id, error=e.detail)
        except Exception:
            done.failed += 1
            log.exception("A line could not be looked at", event_id=watched.event.id)

    async def _pump(self, watched: Watched, done: Done) -> None:
        event = await self._draw(watched.event)
        await self._sweep(event, done)
        async with self._database.connection() as c:
            unheard = await store.query_places(c, sql.unnoted, event.id, TOLD)
        done.lapsed += await self._offers.tell(event, unheard)
        counts = await self._counts(event)
        if counts is None:
            return  # in a new epoch the next tick goes on
        done.waiting += counts.waiting
        await self._note_waiters(event, counts)
        await self._configure(event, counts, granted=0)
        if counts.live or counts.passed:
            granted = await self._offers.grant(event)
            done.granted += granted
            if granted:
                await self._configure(event, counts, granted=granted)
        await self._rest(event, watched.offered, counts)

    async def _draw(self, event: Event) -> Event:
        """A lottery that opens: in PostgreSQL, then in Redis, the line is in order of arrival from here on."""
        if event.order is not Order.LOTTERY or event.drawn or not rules.is_open(event, self._clock.now()):
            return event
        async with self._database.transaction() as c:
            await c.execute(sql.draw, event.id)
            return await store.find_event(c, event.id) or event

    async def _sweep(self, event: Event, done: Done) -> None:
        for _ in range(SWEEPS):
            swept = await self._epochs.guarded(event.id, lambda: self._line.sweep(event.id, SWEPT))
            done.expired += len(swept.expired)
            done.lapsed += await self._offers.lapse(event, swept.overdue)
            if not swept.more:
                break

    async def _counts(self, event: Event) -> LineCounts | None:
        counts = await self._epochs.guarded(event.id, lambda: self._line.counts(event.id))
        if counts.epoch == event.epoch:
            return counts
        await self._epochs.catch_up(event.id)
        return None

    async def _configure(self, event: Event, counts: LineCounts, *, granted: int) -> None:
        """Redis is told what has changed about the event; the forecast, when there is a new one."""
        async with self._database.connection() as c:
            text = await self._pace.text(c, event, counts, capacity=self._offers.capacity(event), granted=granted)
        await self._eta_check.ask(event, counts, text)
        lottery = rules.draws_lots(event, self._clock.now())
        opens_ms = int(event.opens_at.timestamp() * 1000) if event.opens_at else None
        told = (event.epoch, event.paused, lottery, text, opens_ms)
        if told != self._told.get(event.id) or (counts.paused, counts.lottery) != (event.paused, lottery):
            await self._line.configure(event.id, paused=event.paused, lottery=lottery, eta=text, opens_ms=opens_ms)
            self._told[event.id] = told

    async def _note_waiters(self, event: Event, counts: LineCounts) -> None:
        """Admission reads from the row whether people wait. Cleared only at the version from before the counting."""
        if event.id != LAB:
            return
        now = self._clock.now()
        fresh = event.waiters_seen_at is not None and now - event.waiters_seen_at < SEEN_AGAIN
        async with self._database.connection() as c:
            # Who did not take a turn gets the next free place, and keeps nobody from starting where places are free.
            if counts.live or (counts.holding and event.has_live_waiters):
                if not (fresh and event.has_live_waiters):
                    await c.execute(sql.saw_waiters, event.id, now)
            elif event.has_live_waiters and not counts.holding:
                await c.execute(sql.saw_no_waiters, event.id, now, event.waiters_version)

    async def _rest(self, event: Event, offered: int, counts: LineCounts) -> None:
        """An event that nobody waits for is not looked at any more, from the second tick on that finds it so."""
        now, heartbeat = self._clock.now(), self._config.heartbeat_seconds
        if rules.may_rest(event, waiting=counts.waiting, offered=offered, now=now, heartbeat_seconds=heartbeat):
            async with self._database.connection() as c:
                await c.execute(sql.rest, event.id, event.activity, rules.rested(event), event.epoch)
