"""Small charts as SVG: where lines, ticks and labels go. Pure; `templates/chart.html` writes it down.

No script and no style of its own: lines have classes, which `static/operator.css` gives colour and dashes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

WIDTH, HEIGHT = 360, 168
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 12, 26  # what is left free for labels
GAP = 1.6  # steps without a sample: the line is broken


@dataclass(frozen=True)
class Series:
    kind: str  # its class
    label: str
    points: Sequence[tuple[datetime, float | None]]  # in order of time

    @property
    def known(self) -> list[float]:
        return [value for _, value in self.points if value is not None]


@dataclass(frozen=True)
class Path:
    kind: str
    label: str
    latest: str
    d: str


@dataclass(frozen=True)
class Tick:
    at: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Chart:
    name: str
    title: str
    about: str  # how several samples became one
    alternative: str  # all of it in words
    paths: list[Path]
    rows: list[Tick]
    columns: list[Tick]


@dataclass(frozen=True)
class Axis:
    """Of time."""

    since: datetime
    until: datetime
    step: timedelta
    label: Callable[[datetime], str]

    def x(self, at: datetime) -> float:
        part = (at - self.since) / (self.until - self.since)
        return round(LEFT + part * (WIDTH - LEFT - RIGHT), 1)

    def ticks(self) -> list[Tick]:
        middle = self.since + (self.until - self.since) / 2
        places = ((self.since, "start"), (middle, "middle"), (self.until, "end"))
        return [Tick(self.x(at), self.label(at), anchor) for at, anchor in places]


def ceiling(highest: float, *, whole: bool) -> float:
    """A round number that is not below it: 1, 2 or 5 times a power of ten."""
    if highest <= 0:
        return 2.0 if whole else 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    found = next(step * power for step in (1, 2, 5, 10) if step * power >= highest * (1 - 1e-12))
    return max(2.0, found) if whole else found


def y(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM), 1)


def path(series: Series, axis: Axis, top: float) -> str:
    """Broken where samples are missing; a single one is a dot."""
    parts: list[str] = []
    before: datetime | None = None
    for at, value in series.points:
        if value is None or not axis.since <= at <= axis.until:
            continue
        joined = before is not None and at - before <= axis.step * GAP
        parts.append(f"{'L' if joined else 'M'}{axis.x(at)} {y(value, top)}" + ("" if joined else "h.01"))
        before = at
    return "".join(parts)


def draw(
    name: str,
    texts: tuple[str, str],
    series: Sequence[Series],
    axis: Axis,
    show: Callable[[float], str],
    *,
    whole: bool,
) -> Chart:
    """`texts`: its title, and how several samples become one; `show`: a value as people write it."""
    top = ceiling(max((max(s.known) for s in series if s.known), default=0.0), whole=whole)
    paths = [Path(s.kind, s.label, show(s.known[-1]) if s.known else "–", path(s, axis, top)) for s in series]
    rows = [Tick(y(value, top), show(value)) for value in (0.0, top / 2, top)]
    if whole and top / 2 != int(top / 2):
        del rows[1]
    words = [f"{s.label}: {show(min(s.known))}–{show(max(s.known))}, {show(s.known[-1])}" for s in series if s.known]
    return Chart(name, texts[0], texts[1], f"{texts[0]}. {'; '.join(words) or '–'}", paths, rows, axis.ticks())
