"""How long a person will wait, from what the pump has found out about their event. Pure.

Asked by every `status`, in the API and in the proxy's workers: `read` takes the string that the pump wrote beside the
line (`eta_rate.Estimate.text`), `predict` turns it into three numbers. The string begins with a table: for so many live
people ahead, so many seconds. All the thinking is in `eta_rate` and `eta_forecast`, once in a few seconds per event.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import NamedTuple

PLACE_SECONDS = 2.0  # what a place ahead costs while nothing has been measured
NEAR_POLL, PAUSED_POLL = 2.0, 10.0
LONGEST = 30 * 86400.0  # seconds: whatever lies beyond, as where no place is ever given back, is told as this
FORMAT = "1"


class Eta(NamedTuple):
    """Seconds from now until the offer. None: paused or closed for good, so that there is no end to be told.

    A tuple, as is a knot: both are made for every poll, and a frozen dataclass takes four times as long to make.
    """

    eta_sec: int | None
    low_sec: int
    high_sec: int | None


NOW = Eta(0, 0, 0)  # for a person who has an offer


class Knot(NamedTuple):
    """For a person with so many live people ahead of them: seconds until their offer."""

    ahead: int
    low: float
    eta: float
    high: float


@dataclass(frozen=True, slots=True)
class Table:
    at: float  # seconds since 1970, when it was made
    not_before: (
        float  # no offer before this: the opening, or a hold after a loss; what is in the knots counts from here
    )
    endless: bool  # paused, or without any place: only the lower bound says anything
    live: int  # how many were in line and live
    knots: Sequence[Knot]
    aheads: Sequence[int] = field(init=False, compare=False)  # of the knots, to be searched

    def __post_init__(self) -> None:
        object.__setattr__(self, "aheads", [knot.ahead for knot in self.knots])


NOTHING_KNOWN = Table(0.0, 0.0, False, 0, (Knot(0, 0, PLACE_SECONDS, 60), Knot(1, 0, 2 * PLACE_SECONDS, 120)))


@lru_cache(maxsize=256)
def read(text: str) -> Table:
    """The table at the beginning of what the pump wrote; of another version or damaged, what holds without any."""
    try:
        form, at, not_before, endless, live, knots = text.split("|", 6)[:6]
        if form != FORMAT:
            return NOTHING_KNOWN
        rows = [knot.split(",") for knot in knots.split(";")]
        table = [Knot(int(ahead), *(min(float(value), LONGEST) for value in values)) for ahead, *values in rows]
        return Table(float(at), float(not_before), endless == "1", int(live), table)
    except ValueError:
        return NOTHING_KNOWN


def written(table: Table) -> str:
    knots = ";".join(f"{k.ahead},{_short(k.low)},{_short(k.eta)},{_short(k.high)}" for k in table.knots)
    return f"{FORMAT}|{table.at:.1f}|{table.not_before:.1f}|{int(table.endless)}|{table.live}|{knots}"


def _short(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 60 else f"{seconds:.0f}"


def predict(table: Table, ahead: int | None, now: float) -> Eta:
    """`ahead`: live people before this person. None while a lottery keeps the order to itself: anywhere in the line."""
    if ahead is None:
        first, middle, last = (between(table, n) for n in (0, table.live // 2, table.live))
        low, eta, high = first.low, middle.eta, last.high
    else:
        knot = between(table, ahead)
        low, eta, high = knot.low, knot.eta, knot.high
    opening = table.not_before - now
    if opening > 0:
        low, eta, high = low + opening, eta + opening, high + opening
    else:
        low -= now - max(table.at, table.not_before)  # the table may be some seconds old
    low_sec = max(0, int(low))
    if table.endless:
        return Eta(None, low_sec, None)
    eta_sec = max(low_sec, round(eta))
    return Eta(eta_sec, low_sec, max(eta_sec, ceil(high)))


def poll_after_ms(eta: Eta, silent_seconds: float) -> int:
    """Every two seconds when the turn may be near, less often the further it is; always thrice before one is silent."""
    most = silent_seconds / 3
    if eta.eta_sec is None:
        return int(1000 * min(most, max(PAUSED_POLL, eta.low_sec / 10)))
    return int(1000 * min(most, max(NEAR_POLL, eta.low_sec / 10, eta.eta_sec / 40)))


def between(table: Table, ahead: int) -> Knot:
    """Straight lines between the knots, and beyond the last one on as from the first to the last."""
    knots = table.knots
    n = bisect_left(table.aheads, ahead)
    if n < len(knots) and knots[n].ahead == ahead:
        return knots[n]
    left, right = (knots[n - 1], knots[n]) if n < len(knots) else (knots[0], knots[-1])
    begin, low, eta, high = left
    end, low_there, eta_there, high_there = right
    part = (ahead - begin) / (end - begin) if end > begin else 1.0
    return Knot(
        ahead, low + (low_there - low) * part, eta + (eta_there - eta) * part, high + (high_there - high) * part
    )
