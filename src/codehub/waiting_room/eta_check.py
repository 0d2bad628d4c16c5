"""Is what people are told true? The pump remembers what a few of them were told, and compares when their turn comes.

`codehub_queue_eta_error` and `codehub_queue_eta_total` say it to the operator. One person in half a minute and event is
looked at, so that it costs the same whatever waits.
"""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from codehub import metrics
from codehub.clock import Clock
from codehub.waiting_room import eta
from codehub.waiting_room.eta import Eta
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import Event, LineCounts, MemberState, Place, Standing

EVERY = 30.0  # seconds
REMEMBERED = 64  # people of one event: whose turn never comes are forgotten, the oldest first
SHORTEST = 10.0  # seconds: an error of one in a wait of two is no error of half of it


@dataclass(frozen=True)
class Told:
    """What one person was told of their wait, and when."""

    at: float
    eta: Eta


@dataclass(frozen=True)
class Outcome:
    error: float  # part of the wait
    inside: bool  # of the bounds


def outcome(told: Told, now: float) -> Outcome | None:
    """Of a person whose turn it is now; None: they were told that there is no end to it. Pure."""
    if told.eta.eta_sec is None or told.eta.high_sec is None:
        return None
    wait = max(0.0, now - told.at)
    # A turn is offered within a second of the pump, and told in whole seconds.
    inside = told.eta.low_sec - 1 <= wait <= told.eta.high_sec + 1
    return Outcome(abs(wait - told.eta.eta_sec) / max(wait, SHORTEST), inside)


@dataclass
class _Asked:
    at: float
    told: dict[tuple[str, int], Told] = field(default_factory=dict)  # by pid and sequence


class EtaCheck:
    def __init__(self, clock: Clock, line: Line) -> None:
        self._clock = clock
        self._line = line
        self._asked: dict[str, _Asked] = {}

    async def ask(self, event: Event, counts: LineCounts, text: str) -> None:
        """Now and then, what one of those in line is told; `text`: the forecast that polls are answered from."""
        now = self._clock.timestamp()
        asked = self._asked.setdefault(event.id, _Asked(now))
        if 0 <= now - asked.at < EVERY:
            return
        asked.at = now
        if not counts.live or counts.lottery or counts.holding or event.paused:
            return
        found = await self._line.page(event.id, secrets.randbelow(max(1, counts.waiting)), 1)
        if not isinstance(found, list) or not found or found[0].state is not MemberState.LIVE:
            return
        standing = await self._line.peek(event.id, found[0].pid, found[0].seq)
        if isinstance(standing, Standing) and not standing.ready and standing.live_ahead is not None:
            told = Told(now, eta.predict(eta.read(text), standing.live_ahead, now))
            asked.told[found[0].pid, found[0].seq] = told
            while len(asked.told) > REMEMBERED:
                asked.told.pop(next(iter(asked.told)))

    def offered(self, event_id: str, places: Sequence[Place]) -> None:
        """It is these people's turn."""
        asked, now = self._asked.get(event_id), self._clock.timestamp()
        if asked is None:
            return
        for place in places:
            told = asked.told.pop((place.pid, place.seq), None)
            if told and (found := outcome(told, now)):
                metrics.QUEUE_ETA_ERROR.observe(found.error)
                metrics.QUEUE_ETA.labels("inside" if found.inside else "outside").inc()

    def keep_only(self, events: Collection[str]) -> None:
        for id_ in self._asked.keys() - set(events):
            del self._asked[id_]
