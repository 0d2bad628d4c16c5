"""What the operator's page shows: charts and a table of samples, and the answer to "what if". Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.activity.what_if import Between
from codehub.activity.what_if_service import Answer
from codehub.i18n import what_if
from codehub.i18n.locales import Locale
from codehub.monitoring import rules
from codehub.monitoring.model import Resolution, Sample
from codehub.web import charts
from codehub.web.charts import Axis, Chart, Series


@dataclass(frozen=True)
class Range:
    """One of the page's choices."""

    name: str
    length: timedelta
    resolution: Resolution
    by_day: bool = False  # of the reader's own calendar

    @property
    def step(self) -> timedelta:
        return timedelta(days=1) if self.by_day else timedelta(seconds=self.resolution)


RANGES = {
    found.name: found
    for found in (
        Range("hour", timedelta(hours=1), Resolution.MINUTE),
        Range("day", timedelta(days=1), Resolution.QUARTER_HOUR),
        Range("week", timedelta(days=7), Resolution.HOUR),
        Range("quarter", timedelta(days=91), Resolution.HOUR, by_day=True),
    )
}
PHASES = ("running", "asleep", "stored", "pending", "broken")
CHARTS = ("phases", "activity", "wakes", "line", "archives", "disk", "lag")
SIGNS = {"running": "●", "asleep": "☾", "stored": "▣", "pending": "○", "broken": "▲"}


def most(chosen: Range) -> int:
    """Samples that it has."""
    return int(chosen.length / timedelta(seconds=chosen.resolution)) + 1


def prepared(samples: Sequence[Sample], chosen: Range, locale: Locale) -> list[Sample]:
    """In order of time, one for each step. A day begins at the reader's midnight."""
    if not chosen.by_day:
        return sorted(samples, key=lambda s: s.at)

    def midnight(sample: Sample) -> datetime:
        return sample.at.astimezone(locale.zone).replace(hour=0, minute=0, second=0, microsecond=0)

    return rules.grouped(samples, midnight)


# --- charts ---------------------------------------------------------------------------------------------------------


def drawn(samples: Sequence[Sample], chosen: Range, locale: Locale, now: datetime) -> list[Chart]:
    axis = Axis(now - chosen.length, now, chosen.step, lambda at: _moment(at, chosen, locale))
    number, size = _number, lambda value: locale.size(int(value)).replace(".0", "")
    seconds = _seconds(locale)

    def chart(name: str, show: Callable[[float], str], *lines: tuple[str, Callable[[Sample], float | None]]) -> Chart:
        series = [
            Series(kind, _sign(kind) + locale.say(f"operator_{kind}"), [(s.at, of(s)) for s in samples])
            for kind, of in lines
        ]
        texts = locale.say(f"operator_{name}_title"), locale.say(f"operator_{name}_about")
        return charts.draw(name, texts, series, axis, show, whole=show is number)

    return [
        chart("phases", number, *((phase, _of(phase)) for phase in PHASES)),
        chart("activity", number, ("active_workspaces", _of("active_workspaces")), ("people", _of("active_people"))),
        chart("wakes", seconds, ("p50", _wake(0.5)), ("p99", _wake(0.99))),
        chart("line", number, ("waiting", _of("waiting"))),
        chart("archives", size, ("archive", _of("archive_bytes"))),
        chart("disk", size, ("free", _of("disk_free_bytes"))),
        chart("lag", seconds, ("lag", _of("loop_lag_seconds"))),
    ]


def _of(name: str) -> Callable[[Sample], float | None]:
    def read(sample: Sample) -> float | None:
        found: float | None = getattr(sample, name)
        return found

    return read


def _wake(part: float) -> Callable[[Sample], float | None]:
    return lambda sample: rules.quantile(sample.wakes, part)


def _sign(kind: str) -> str:
    return f"{SIGNS[kind]} " if kind in SIGNS else ""


def _number(value: float) -> str:
    shown = round(value, 1)
    return f"{int(shown)}" if shown == int(shown) else f"{shown}"


def _seconds(locale: Locale) -> Callable[[float], str]:
    """Short waits to a tenth."""
    return lambda value: locale.span(value) if value >= 100 else locale.say("span_seconds", n=_number(value))


def _moment(at: datetime, chosen: Range, locale: Locale) -> str:
    local = at.astimezone(locale.zone)
    if chosen.length <= timedelta(days=1):
        return f"{local:%H:%M}"
    month = locale.say("months").split(" ")[local.month - 1]
    return locale.say("operator_date", day=local.day, month=month)


# --- the same as a table --------------------------------------------------------------------------------------------


COLUMNS = (
    *PHASES,
    *("active_workspaces", "people", "waiting", "woken", "p50", "p99", "archive", "free", "lag"),
)


@dataclass(frozen=True)
class Row:
    key: str
    at: str
    cells: list[str]


def table(samples: Sequence[Sample], chosen: Range, locale: Locale, now: datetime) -> list[Row]:
    """The newest first."""
    seconds = _seconds(locale)

    def cells(s: Sample) -> list[str]:
        wakes = [rules.quantile(s.wakes, part) for part in (0.5, 0.99)]
        return [
            *(_number(getattr(s, phase)) for phase in PHASES),
            str(s.active_workspaces),
            str(s.active_people),
            _known(s.waiting, str),
            str(sum(s.wakes)),
            *(_known(value, seconds) for value in wakes),
            locale.size(s.archive_bytes),
            _known(s.disk_free_bytes, lambda value: locale.size(int(value))),
            _known(s.loop_lag_seconds, seconds) + (f" · {s.slowest_loop}" if s.loop_lag_seconds else ""),
        ]

    def said(at: datetime) -> str:
        return _moment(at, chosen, locale) if chosen.by_day else locale.time(at, now)

    return [Row(f"{s.at.timestamp():.0f}", said(s.at), cells(s)) for s in reversed(samples)]


def _known(value: float | None, show: Callable[[float], str]) -> str:
    return "–" if value is None else show(value)


# --- what if --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    name: str
    did: str
    would: str
    apart: str


@dataclass(frozen=True)
class Supposed:
    """An answer in words."""

    title: str
    since: str
    changes: list[Change]
    notes: list[str]


def supposed(answer: Answer, locale: Locale, now: datetime) -> Supposed:
    def length(seconds: int) -> str:
        return locale.length(seconds) if seconds else locale.say("operator_never")

    did: Mapping[str, Between] = vars(answer.did)
    would: Mapping[str, Between] = vars(answer.would)
    changes = [
        Change(
            locale.say(f"operator_what_if_{name}"),
            _number(did[name].low),
            _between(locale, would[name].low, would[name].high),
            _between(locale, would[name].low - did[name].low, would[name].high - did[name].low, sign=True),
        )
        for name in did
    ]
    title = locale.say(
        "operator_what_if_answer", standby=length(answer.standby_seconds), archive=length(answer.archive_seconds)
    )
    since = locale.say("operator_what_if_since", time=locale.time(answer.since, now), n=answer.workspaces)
    return Supposed(title, since, changes, what_if.notes(locale, answer))


def _between(locale: Locale, low: float, high: float, *, sign: bool = False) -> str:
    first, last = (("+" if sign and round(value, 1) > 0 else "") + _number(value) for value in (low, high))
    first, last = first.replace("-", "−"), last.replace("-", "−")
    return first if first == last else locale.say("operator_between", low=first, high=last)
