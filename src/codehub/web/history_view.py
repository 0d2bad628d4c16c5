"""A workspace's history as the page shows it, newest first. Pure; the sentences are those of `i18n.history`."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from codehub.i18n import history
from codehub.i18n.locales import Locale
from codehub.workspaces.history import OperationBegun
from codehub.workspaces.model import HistoryEntry


@dataclass(frozen=True)
class Line:
    at: str
    exactly: str  # for machines, and for readers who want the second
    text: str
    took: str | None
    detail: str | None


def lines(entries: Iterable[HistoryEntry], locale: Locale, now: datetime) -> list[Line]:
    """What began is left out: what came of it follows."""
    return [_line(entry, locale, now) for entry in entries if entry.code != OperationBegun.code]


def _line(entry: HistoryEntry, locale: Locale, now: datetime) -> Line:
    text = history.sentence(locale, entry.code, entry.data, actor=entry.actor, to_state=entry.to_state, now=now)
    took = locale.say("history_took", span=locale.span(entry.took_seconds)) if entry.took_seconds else None
    return Line(locale.time(entry.at, now), entry.at.isoformat(), text, took, history.remark(entry.code, entry.data))
