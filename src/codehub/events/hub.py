"""Who listens to what, in one process: events of the outbox go to the open streams of their audience.

An API process has one hub. A batch is read once for all (`follower`), an event is rendered once, and only those who
listen to its audience are touched: what a change costs depends on who is interested, not on who is connected.

What an event says is in its row, unless its capability registered a renderer for the kind (`Kind.render`). Workspaces
do: what is said of one depends on settings, would be large, and is of use only as it is now. Several such events of one
subject in a batch are then rendered as one.

No stream has a silent gap. One that reads too slowly, that resumes from before what is kept or from too far back, or
whose event cannot be rendered, gets `reset`: it reads the state anew and goes on from there.
"""

import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from codehub import logs
from codehub.clock import Clock
from codehub.db import Connection, Database, is_away
from codehub.events import outbox
from codehub.events.follower import Follower
from codehub.events.model import Stored, every
from codehub.events.subscription import RESET, Subscription, frame

log = logs.get()
Renderer = Callable[[Connection, Collection[str]], Awaitable[Mapping[str, tuple[str, str]]]]
Memberships = Callable[[Connection], Awaitable[Iterable[str]]]


@dataclass(frozen=True)
class Kind:
    """What a capability says of its events of one kind; a kind that is not registered goes out as its row says."""

    # Subjects → (kind to send, JSON on one line). A subject that is not returned is not sent.
    render: Renderer | None = None
    # The class of audience that those who hear the event join, or leave, for the event's subject.
    joins: str | None = None
    leaves: str | None = None


PLAIN = Kind()


class Hub:
    def __init__(self, database: Database, clock: Clock, kinds: Mapping[str, Kind]) -> None:
        self._database = database
        self._kinds = kinds
        self._by_audience: defaultdict[str, set[Subscription]] = defaultdict(set)
        self._open: set[Subscription] = set()
        self._stopping = False
        self._follower = Follower("events", database, clock, self._take, self._lost)
        self.wake = self._follower.wake
        self.start = self._follower.start
        self.read_all = self._follower.read_all

    @property
    def position(self) -> int:
        return self._follower.position or 0

    async def stop(self) -> None:
        """Ends every open stream, too: clients come back to the process that serves next."""
        self._stopping = True
        for subscription in list(self._open):
            subscription.end()
        await self._follower.stop()

    # --- opening a stream

    async def now(self) -> int:
        """A cursor for a stream that begins: nothing after this is missed, however long the opening takes."""
        return await self._follower.begin()

    @contextlib.asynccontextmanager
    async def subscribed(
        self, audiences: Collection[str], memberships: Memberships, cursor: int | None
    ) -> AsyncIterator[Subscription]:
        """A stream of these audiences, and of those that `memberships` reads, after a cursor.

        None is a cursor that cannot be understood.
        """
        subscription = Subscription(lambda: self.position)
        self._open.add(subscription)
        try:
            await self._begin(subscription, audiences, memberships, cursor)
            if self._stopping:
                subscription.end()
            yield subscription
        finally:
            self._open.discard(subscription)
            self._leave(subscription, list(subscription.audiences))

    async def _begin(
        self, subscription: Subscription, audiences: Collection[str], memberships: Memberships, cursor: int | None
    ) -> None:
        """It listens before the memberships are read, and keeps those that change meanwhile: none slips through."""
        await self.now()
        self._join(subscription, audiences)
        async with self._database.connection() as c:
            self._join(subscription, await memberships(c))
            for audience, joins in subscription.begin():
                self._move(subscription, audience, joins=joins)
            # What is delivered from here on is buffered; what came before is read from the table.
            begun_at = self.position
            if cursor != begun_at:
                await self._resume(c, subscription, cursor, begun_at)

    async def _resume(self, c: Connection, subscription: Subscription, cursor: int | None, to: int) -> None:
        if cursor is None or cursor > max(to, await outbox.newest(c)):
            subscription.reset("unknown_cursor")
            return
        missed = await outbox.missed(c, subscription.audiences, cursor, to)
        if missed is None:
            subscription.reset("missed_too_much")
            return
        frames = await self._rendered(c, missed)
        subscription.resume(cursor, [frames[event.position] for event in missed if event.position in frames])

    def _join(self, subscription: Subscription, audiences: Iterable[str]) -> None:
        for audience in audiences:
            if audience == every(audience) or every(audience) not in subscription.audiences:
                subscription.audiences.add(audience)
                self._by_audience[audience].add(subscription)

    def _leave(self, subscription: Subscription, audiences: Iterable[str]) -> None:
        for audience in audiences:
            subscription.audiences.discard(audience)
            if audience in self._by_audience:
                self._by_audience[audience].discard(subscription)
                if not self._by_audience[audience]:
                    del self._by_audience[audience]

    def _move(self, subscription: Subscription, audience: str, *, joins: bool) -> None:
        (self._join if joins else self._leave)(subscription, [audience])

    # --- delivering

    async def _take(self, c: Connection, batch: Sequence[Stored]) -> None:
        """Renders what is wanted, also by those who come meanwhile; then delivers all of it without a pause."""
        frames: dict[int, bytes] = {}
        done: set[int] = set()
        joined = {f"{joins}:{event.subject}" for event in batch if (joins := self._kind(event).joins)}
        while wanted := [e for e in batch if e.position not in done and self._is_wanted(e.audience, joined)]:
            frames |= await self._rendered(c, wanted)
            done |= {event.position for event in wanted}
        for event in batch:
            self._deliver(event, frames.get(event.position))

    async def _lost(self, _c: Connection) -> None:
        for subscription in self._open:
            subscription.reset("removed_unread")

    def _kind(self, event: Stored) -> Kind:
        return self._kinds.get(event.kind, PLAIN)

    def _is_wanted(self, audience: str, joined: Collection[str]) -> bool:
        return audience in self._by_audience or every(audience) in self._by_audience or audience in joined

    def _listening(self, audience: str) -> set[Subscription]:
        none: set[Subscription] = set()
        return self._by_audience.get(audience, none) | self._by_audience.get(every(audience), none)

    def _deliver(self, event: Stored, piece: bytes | None) -> None:
        kind = self._kind(event)
        for subscription in self._listening(event.audience):
            if piece is not None:
                subscription.put(event.position, piece)
            for class_, joins in ((kind.leaves, False), (kind.joins, True)):
                if class_:
                    audience = f"{class_}:{event.subject}"
                    self._move(subscription, audience, joins=joins)
                    subscription.note_move(audience, joins=joins)

    # --- rendering

    async def _rendered(self, c: Connection, events: Sequence[Stored]) -> dict[int, bytes]:
        """Frames by position; `RESET` for what cannot be rendered, nothing for what a later one of these says too."""
        frames = {e.position: frame(e.position, e.kind, e.data) for e in events if not self._kind(e).render}
        last: defaultdict[str, dict[tuple[str, str], int]] = defaultdict(dict)  # kind → (audience, subject) → position
        for event in events:
            if self._kind(event).render:
                last[event.kind][event.audience, event.subject] = event.position
        for kind, positions in last.items():
            said = await self._said(c, kind, list({subject for _, subject in positions}))
            for (_, subject), position in positions.items():
                if subject in said:
                    words = said[subject]
                    frames[position] = RESET if words is None else frame(position, *words)
        return frames

    async def _said(self, c: Connection, kind: str, subjects: Sequence[str]) -> Mapping[str, tuple[str, str] | None]:
        """None for a subject that cannot be rendered: it is that one's failure, and no other's."""
        render = self._kinds[kind].render
        assert render  # noqa: S101 (only asked for kinds that have one)
        try:
            return await render(c, subjects)
        except Exception as e:
            if is_away(e):
                raise
            if len(subjects) > 1:
                return {s: words for subject in subjects for s, words in (await self._said(c, kind, [subject])).items()}
            log.exception("An event cannot be rendered; its listeners are reset", kind=kind, subject=subjects[0])
            return {subjects[0]: None}
