"""A workspace's history as the page shows it, newest first. Pure; the sentences are those of `i18n.history`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from codehub.i18n import history
from codehub.i18n.locales import Locale
from codehub.workspaces.history import OperationBegun
from codehub.workspaces.model import HistoryEntry

WHOM = "user"  # the field of a line's data that is a person's name


@dataclass(frozen=True)
class Line:
    at: str
    exactly: str  # for machines, and for readers who want the second
    text: str
    took: str | None
    detail: str | None


def named(entries: Iterable[HistoryEntry]) -> set[str]:
    """Who is in them, by name: who did it, and to whom."""
    return {name for entry in entries for name in (entry.actor, entry.data.get(WHOM)) if name}


def lines(
    entries: Iterable[HistoryEntry], locale: Locale, now: datetime, called: Mapping[str, str] | None = None
) -> list[Line]:
    """What began is left out: what came of it follows. `called`: what pages show for a name."""
    return [_line(entry, locale, now, called or {}) for entry in entries if entry.code != OperationBegun.code]


def _line(entry: HistoryEntry, locale: Locale, now: datetime, called: Mapping[str, str]) -> Line:
    actor, whom = called.get(entry.actor, entry.actor), entry.data.get(WHOM)
    data = {**entry.data, WHOM: called.get(whom, whom)} if whom else entry.data
    text = history.sentence(locale, entry.code, data, actor=actor, to_state=entry.to_state, now=now)
    took = locale.say("history_took", span=locale.span(entry.took_seconds)) if entry.took_seconds else None
    return Line(locale.time(entry.at, now), entry.at.isoformat(), text, took, history.remark(entry.code, entry.data))
