"""What the pump measures for the forecast, per event: `eta_rate` makes the table of waits of it.

A pump that takes over goes on from what the last one wrote beside the line.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from codehub.clock import Clock
from codehub.db import Connection
from codehub.waiting_room import eta_rate, store
from codehub.waiting_room.eta_rate import Estimate, Seen
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import Event, LineCounts


@dataclass
class _Measured:
    estimate: Estimate
    granted: int = 0  # since it was last measured
    at: float = 0.0
    changed_at: datetime | None = None  # of the event's settings

    def is_due(self, event: Event, now: float, *, granted: int) -> bool:
        """What is measured costs as much as there are places: not more often than a table is made of it.

        Except while free places are taken: who is told that they wait for nothing must not be told so for long.
        """
        filling = bool(granted) and self.estimate.seen is not None and self.estimate.seen.free > 0
        return filling or self.changed_at != event.updated_at or not 0 <= now - self.at < eta_rate.PERIOD


class Pace:
    def __init__(self, clock: Clock, silent_seconds: float, line: Line) -> None:
        self._clock = clock
        self._line = line
        self._silent_seconds = silent_seconds
        self._measured: dict[str, _Measured] = {}

    async def text(self, c: Connection, event: Event, counts: LineCounts, *, capacity: int | None, granted: int) -> str:
        """What `configure` is told. `granted`: since `counts`."""
        now = self._clock.timestamp()
        measured = self._measured.get(event.id)
        if measured is None:
            measured = _Measured(eta_rate.resumed(await self._line.forecast(event.id)))
            self._measured[event.id] = measured
        measured.granted += granted
        if measured.is_due(event, now, granted=granted):
            taken = [at.timestamp() for at in await store.taken(c, event.id)]
            seen = Seen(
                at=now,
                live=max(0, counts.live - granted),
                joined=counts.waiting + counts.entered + counts.left + counts.expired,
                granted=measured.granted,
                capacity=capacity,
                taken=taken,
                per_minute=event.admission_rate,
                next_grant_at=event.next_grant_at.timestamp() if event.next_grant_at else 0.0,
                not_before=self._not_before(event, counts),
                paused=event.paused,
            )
            measured.estimate = eta_rate.observe(measured.estimate, seen)
            measured.granted, measured.at, measured.changed_at = 0, now, event.updated_at
        return measured.estimate.text

    def _not_before(self, event: Event, counts: LineCounts) -> float:
        held_until = event.opened_at.timestamp() + self._silent_seconds if counts.holding and event.opened_at else 0.0
        return max(held_until, event.opens_at.timestamp() if event.opens_at else 0.0)

    def keep_only(self, events: Collection[str]) -> None:
        for id_ in self._measured.keys() - set(events):
            del self._measured[id_]
