"""The use cases of the waiting room: join, status, enter, leave, the place one has. Called by the API and by pages.

Each follows an order of steps over Redis and PostgreSQL in which a crash between any two leaves something harmless, and
which a retry, the pump or time repairs (docs/waiting-room.md has the table). PostgreSQL decides who has a place; Redis
knows the order and who is alive.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from codehub import logs, metrics
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import InvalidRequestError, UnavailableError
from codehub.events import outbox
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Kind, Principal
from codehub.settings import QueueConfig
from codehub.waiting_room import news, rules, store, tokens
from codehub.waiting_room.epochs import Epochs
from codehub.waiting_room.errors import (
    AlreadyAdmittedError,
    EventClosedError,
    EventNotFoundError,
    NotYourTurnError,
    PlaceNotFoundError,
    TokenExpiredError,
)
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import EPOCH, Check, Event, Joined, Loss, Place, Standing, State, Why
from codehub.waiting_room.rules import Arrival, Entry
from codehub.waiting_room.status import Status, status_of
from codehub.waiting_room.store import sql
from codehub.waiting_room.tokens import Tokens, Waiting

log = logs.get()
ATTEMPTS = 3
LONGEST_USER_ID = 200  # characters of a name that an admin joins for


@dataclass(frozen=True)
class Ticket:
    status: Status
    new: bool  # False: they were in line already

    @property
    def token(self) -> str:
        return self.status.token


@dataclass(frozen=True)
class Reservation:
    """A place that a person has: to be used before `expires_at`, or held by what was started with it."""

    event_id: str
    reservation_token: str
    state: State
    expires_at: datetime
    workspace_id: str | None = None
    run_id: str | None = None


class WaitingRoom:
    def __init__(
        self, database: Database, clock: Clock, config: QueueConfig, line: Line, tokens: Tokens, epochs: Epochs
    ) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._line = line
        self._tokens = tokens
        self._epochs = epochs

    # --- joining

    async def join(self, caller: Principal, event_id: str, user_id: str | None = None) -> Ticket:
        """Redis, then PostgreSQL: a second tab that joins while the first enters is seen by one of the two."""
        person, name = await self._person(caller, event_id, user_id)
        for _ in range(ATTEMPTS):
            event = await self._event(event_id)
            pid = tokens.pid(event.secret, person)
            draws = rules.draws_lots(event, self._clock.now())
            number = tokens.lottery_number(event.secret, person) if draws else None
            joined = await self._join_line(event, pid, name, number)
            seq = await self._check_join(event, pid, joined)
            if seq is None:
                continue
            token = Waiting(event.id, pid, seq, joined.joined_ms, person, joined.name)
            try:
                status = await self._status(token, event)
            except TokenExpiredError:
                continue  # lost, or left in another tab, before this one was told of it
            # Who has an offer from before a loss, or has come back to their place by another tab, stands there.
            return Ticket(status, joined.new and self._read(status.token).seq == joined.seq)
        raise UnavailableError("the line changes too quickly: try again in a moment", retry_after=1)

    async def waiting(self, event_id: str, people: Collection[str]) -> frozenset[str]:
        """Of these people, by id, those who wait in this line: for their teachers, and for themselves."""
        async with self._database.connection() as c:
            event = await store.find_event(c, event_id)
        if event is None or not people:
            return frozenset()
        by_pid = {tokens.pid(event.secret, person): person for person in people}
        found = await self._line.names(event_id, list(by_pid))
        return frozenset(by_pid[pid] for pid in found)

    async def _person(self, caller: Principal, event_id: str, user_id: str | None) -> tuple[str, str]:
        """Who is to wait, by opaque id (`=` and the name, where there is no account) and by name."""
        name = caller.name if user_id is None and caller.kind is Kind.PERSON else user_id
        if not name or not name.strip() or len(name) > LONGEST_USER_ID or not name.isprintable():
            raise InvalidRequestError(f"must be a name of 1 to {LONGEST_USER_ID} characters", field="user_id")
        if caller.kind is Kind.PERSON and policy.is_self(caller, name):
            policy.require(caller, Action.QUEUE_JOIN)
            return caller.id, name
        policy.require(caller, Action.QUEUE_JOIN_FOR)
        async with self._database.transaction() as c:
            account = await c.fetchval(sql.account, name)
            if await store.find_event(c, event_id):
                now = self._clock.now()
                await audit.record(c, now, caller.origin, Code.QUEUE_JOIN_FOR, event_id, waiting=name)
        return account or f"={name}", name

    async def _join_line(self, event: Event, pid: str, name: str, number: int | None) -> Joined:
        joined = await self._epochs.guarded(event.id, lambda: self._line.join(event.id, pid, name, number))
        if event.draining and joined.new:
            await self._line.drop(event.id, pid, joined.seq, Why.STALE)
            raise EventClosedError("this event takes no more people: ask the person who runs it")
        return joined

    async def _check_join(self, event: Event, pid: str, joined: Joined) -> int | None:
        """The sequence that this person waits with; None: it was over, and they are to join again."""
        now, seq = self._clock.now(), joined.seq
        async with self._database.transaction() as c:
            await store.watch(c, event.id, now)
            place = await store.find_place(c, event.id, pid)
            arrival = rules.arrival(place, seq)
            if arrival is Arrival.STALE and seq < 2 * EPOCH and rules.draws_lots(event, now):
                await self._forgive(c, event.id, pid, seq, now)
                return seq
        match arrival:
            case Arrival.WAITS:
                return seq
            case Arrival.OFFERED if place:
                offered = min(place.seq, seq)
                waited = joined.joined_ms
                await self._line.confirm(
                    event.id, pid, offered, expected=seq, name=joined.name, joined_ms=waited, offered=True
                )
                return offered
            case Arrival.ADMITTED:
                if await self._end_join(event, pid, joined):
                    raise AlreadyAdmittedError("you have a place at this event already: use it, or give it back first")
                return None  # it was given back this moment
        await self._line.drop(event.id, pid, seq, Why.STALE)
        return None

    async def _end_join(self, event: Event, pid: str, joined: Joined) -> bool:
        """Of a person who has a place: False, if not any more.

        Written down before Redis drops the sequence: another join of theirs that finds it there, when the place was
        given back meanwhile, sees that it is over and takes the next one.
        """
        async with self._database.transaction() as c:
            await store.lock_event(c, event.id)
            place = await store.find_place(c, event.id, pid)
            if place is None or rules.arrival(place, joined.seq) is not Arrival.ADMITTED:
                return False
            place = await store.save(c, rules.left(place, joined.seq, self._clock.now()))
        await self._tell(event, place, Why.STALE, joined.name)
        return True

    @staticmethod
    async def _forgive(c: Connection, event_id: str, pid: str, seq: int, now: datetime) -> None:
        """As the row is under the lock: another join of this person may have been first, and led to an offer."""
        await store.lock_event(c, event_id)
        place = await store.find_place(c, event_id, pid)
        if place and rules.arrival(place, seq) is Arrival.STALE:
            await store.save(c, rules.forgiven(place, now))

    # --- waiting

    async def status(self, token: str) -> Status:
        """Where they stand; and a heartbeat."""
        return await self._status(self._read(token))

    async def _status(self, token: Waiting, event: Event | None = None) -> Status:
        """With the event, of a line that the pump may not have told yet when it opens."""
        standing = await self._standing(token)
        if event and event.opens_at:
            standing = standing._replace(opens_ms=int(event.opens_at.timestamp() * 1000))
        if standing.stands is not None:
            token = Waiting(
                *(token.event, token.pid, standing.stands.seq, standing.stands.joined_ms),
                *(token.person, standing.stands.name),
            )
        text, now = self._tokens.waiting(token), self._clock.timestamp()
        return status_of(text, token, standing, now, self._config.silent_seconds)

    async def _standing(self, token: Waiting) -> Standing:
        for _ in range(ATTEMPTS):
            answer = await self._epochs.guarded(
                token.event, lambda: self._line.status(token.event, token.pid, token.seq)
            )
            match answer:
                case Standing():
                    return answer
                case Check():
                    await self._put_back(token, answer.expected)
                case _:
                    raise TokenExpiredError
        raise UnavailableError("the line changes too quickly: try again in a moment", retry_after=1)

    async def _put_back(self, token: Waiting, expected: int) -> None:
        """A token from before a loss: they wait at their old place, unless PostgreSQL knows better."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            place = await store.find_place(c, token.event, token.pid)
            arrival = rules.arrival(place, token.seq)
            waits = arrival in {Arrival.WAITS, Arrival.OFFERED}
            if waits:
                await store.watch(c, token.event, now)
        if waits:
            seq = min(place.seq, token.seq) if place and arrival is Arrival.OFFERED else token.seq
            await self._line.confirm(
                *(token.event, token.pid, seq),
                expected=expected,
                name=token.name,
                joined_ms=token.joined_ms,
                offered=arrival is Arrival.OFFERED,
            )
        else:
            await self._line.drop(token.event, token.pid, token.seq, Why.STALE)
            raise TokenExpiredError

    # --- entering and leaving

    async def enter(self, token: str) -> Reservation:
        """PostgreSQL, then Redis: a person with a place who still stands in line is refused there, and dropped."""
        waiting = self._read(token)
        for _ in range(ATTEMPTS):
            now = self._clock.now()
            async with self._database.transaction() as c:
                event = await store.lock_event(c, waiting.event)
                if event is None:
                    raise TokenExpiredError
                place = await store.find_place(c, event.id, waiting.pid)
                entry = rules.entry(place, waiting.seq, now)
                if entry is Entry.RESERVE and place and not event.paused and rules.is_open(event, now):
                    place = await self._reserve(c, place, waiting, now)
                    entry = Entry.SAME
            if entry is Entry.OVER:
                raise TokenExpiredError
            if entry is Entry.SAME and place:
                await self._tell(event, place, Why.ENTERED, waiting.name)
                return self._reservation(place)
            standing = await self._standing(waiting)
            if not standing.ready:
                break  # else it has become their turn this moment
        await self._line.peek(waiting.event, waiting.pid, waiting.seq, act=True)
        hint = "the event is paused" if standing.paused else "wait until `ready_for_entry` is true"
        raise NotYourTurnError(f"it is not your turn yet: {hint}", position=standing.position)

    async def _reserve(self, c: Connection, place: Place, waiting: Waiting, now: datetime) -> Place:
        seconds = self._config.reservation_seconds
        entered = await store.save(c, rules.entered(place, waiting.person, waiting.name, now, seconds))
        await outbox.write(c, now, news.entered(entered))
        metrics.QUEUE_ADMITTED.inc()
        return entered

    async def leave(self, token: str) -> None:
        """At once, also when they are gone already. Written down first: no loss of Redis brings them back."""
        waiting = self._read(token)
        now = self._clock.now()
        async with self._database.transaction() as c:
            event = await store.lock_event(c, waiting.event)
            if event is None:
                return
            before = await store.find_place(c, event.id, waiting.pid) or Place(event.id, waiting.pid, now)
            if before.gone_seq >= waiting.seq and before.noted:
                return
            place = await store.save(c, rules.left(before, waiting.seq, now))
            await c.execute(sql.watch, event.id)
            if before.state is not place.state:
                await c.execute(sql.nudge)
        await self._tell(event, place, Why.LEFT, waiting.name)

    async def was_left(self, token: str) -> bool:
        """Of a token that is over: by its person's own act, in whichever tab, and not because they were silent?"""
        try:
            waiting = self._read(token)
        except TokenExpiredError:
            return False
        async with self._database.connection() as c:
            place = await store.find_place(c, waiting.event, waiting.pid)
        return place is not None and place.gone_seq >= waiting.seq

    async def _tell(self, event: Event, place: Place, why: Why, name: str) -> None:
        """Redis hears what PostgreSQL has decided. Where it cannot, the pump says it again."""
        up_to = rules.drop_up_to(place)
        if place.noted or up_to is None:
            return
        try:
            if isinstance(await self._line.drop(event.id, place.pid, up_to, why, name=name), Loss):
                return
        except UnavailableError as e:
            log.warning("Redis could not be told, the pump will", event_id=event.id, why=why, error=e.detail)
            return
        async with self._database.connection() as c:
            await store.note(c, event.id, event.epoch, [place])

    # --- places

    async def place(self, caller: Principal, event_id: str) -> Reservation:
        """The place that the caller has, should the tab that got it be lost."""
        policy.require(caller, Action.QUEUE_PLACE)
        await self._event(event_id)
        async with self._database.connection() as c:
            found = await store.place_of_person(c, event_id, caller.id) if caller.id else None
        if found is None or rules.keep(found, alive=None, now=self._clock.now(), lease_seconds=0) is rules.Keep.RELEASE:
            raise PlaceNotFoundError("you have no place at this event")
        return self._reservation(found)

    async def give_back(self, caller: Principal, event_id: str) -> None:
        """The next in line gets it. What was started with it goes on."""
        policy.require(caller, Action.QUEUE_GIVE_BACK)
        await self._event(event_id)
        now = self._clock.now()
        async with self._database.transaction() as c:
            await store.lock_event(c, event_id)
            found = await store.place_of_person(c, event_id, caller.id) if caller.id else None
            if found is None:
                raise PlaceNotFoundError("you have no place at this event")
            await store.save(c, rules.released(found, now))
            await audit.record(c, now, caller.origin, Code.QUEUE_GIVE_BACK, event_id)
            await c.execute(sql.nudge)

    # --- helpers

    def _read(self, token: str) -> Waiting:
        found = self._tokens.read_waiting(token)
        if found is None:
            raise TokenExpiredError
        return found

    async def _event(self, id_: str) -> Event:
        async with self._database.connection() as c:
            found = await store.find_event(c, id_) if store.is_event_id(id_) else None
        if found is None:
            raise EventNotFoundError(f"there is no event {id_[:64]}")
        return found

    def _reservation(self, place: Place) -> Reservation:
        assert place.person  # noqa: S101 (a constraint of the table)
        assert place.expires_at  # noqa: S101
        entered_until = int(place.expires_at.timestamp() * 1000)
        signed = self._tokens.reservation(tokens.Reservation(place.event_id, place.person, place.seq, entered_until))
        return Reservation(place.event_id, signed, place.state, place.expires_at, place.workspace_id, place.run_id)
