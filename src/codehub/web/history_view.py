"""A workspace's history as the page shows it, newest first: what happened, who did it and why, and how long it was how.

Pure; the sentences are those of `i18n.history`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from codehub.i18n import history
from codehub.i18n.locales import Locale
from codehub.web.presentation import BADGES, SIGNS
from codehub.workspaces.history import CODES, OperationBegun
from codehub.workspaces.model import HistoryEntry, Phase

WHOM = "user"  # the field of a line's data that is a person's name
STRIP = 1000  # how wide the drawing is, in its own units
NARROWEST = 3  # of a stretch in it, so that a short one is seen


class Kind(StrEnum):
    """What a reader may want to see alone."""

    ASKED = "asked"  # by people
    ALONE = "alone"  # by timers
    STATES = "states"  # what it became
    TROUBLE = "trouble"
    PEOPLE = "people"  # who else came, and with whom it is shared


KINDS: Mapping[Kind, frozenset[str]] = {
    Kind.ALONE: frozenset(
        {"idle_sleep", "idle_archive", "work_resumed", "kept_awake", "held", "trash_expired", "purged"}
        | {"archive_collected", "volume_collected", "owner_deactivated", "started_for_lesson", "left_out_of_lesson"}
    ),
    Kind.STATES: frozenset({"provisioned", "restored", "started", "stopped", "archived", "deleted", "observed"}),
    Kind.TROUBLE: frozenset(
        {"operation_retried", "operation_given_up", "ide_ended", "ide_gone", "problem_found", "readable_again"}
        | {"swap_expired", "recover_requested", "fetch_failed"}
    ),
    Kind.PEOPLE: frozenset({"shared", "unshared", "guest_deactivated", "entered", "downloaded"}),
}
NAMED_KINDS = frozenset().union(*KINDS.values())
ASKED = frozenset(CODES) - NAMED_KINDS - {OperationBegun.code}
# Lines whose `to_state` is a phase that was seen; of a request it is what was asked for.
SEEN = KINDS[Kind.STATES] | (KINDS[Kind.TROUBLE] - {"operation_retried", "swap_expired", "fetch_failed"}) | {"created"}
STEPS = {"created", "provisioned", "restored"}  # on the way to a state: nobody asks how long it was so


def codes_of(kind: Kind | None) -> frozenset[str] | None:
    """Of the lines that are shown; None: all."""
    return None if kind is None else KINDS.get(kind, ASKED)


def kind_of(code: str) -> Kind:
    return next((kind for kind, codes in KINDS.items() if code in codes), Kind.ASKED)


@dataclass(frozen=True)
class Line:
    at: str
    exactly: str  # for machines, and for readers who want the second
    text: str
    took: str | None
    detail: str | None
    badge: str = ""  # of the phase that it became
    sign: str = "·"
    lasted: str | None = None  # how long it was so, unless this was a step


@dataclass(frozen=True)
class Stretch:
    """How long it was in one phase, and where that is drawn."""

    entry_id: int
    badge: str
    text: str
    lasted: str
    x: int
    width: int


@dataclass(frozen=True)
class Strip:
    stretches: Sequence[Stretch]  # the oldest first
    since: str


def named(entries: Iterable[HistoryEntry]) -> set[str]:
    """Who is in them, by name: who did it, and to whom."""
    return {name for entry in entries for name in (entry.actor, entry.data.get(WHOM)) if name}


def lines(
    entries: Iterable[HistoryEntry],
    locale: Locale,
    now: datetime,
    called: Mapping[str, str] | None = None,
    strip: Strip | None = None,
) -> list[Line]:
    """What began is left out: what came of it follows. `called`: what pages show for a name."""
    lasted = {stretch.entry_id: stretch.lasted for stretch in strip.stretches} if strip else {}
    shown = [entry for entry in entries if entry.code != OperationBegun.code]
    return [_line(entry, locale, now, called or {}, lasted.get(entry.id)) for entry in shown]


def _line(entry: HistoryEntry, locale: Locale, now: datetime, called: Mapping[str, str], lasted: str | None) -> Line:
    actor, whom = called.get(entry.actor, entry.actor), entry.data.get(WHOM)
    data = {**entry.data, WHOM: called.get(whom, whom)} if whom else entry.data
    text = history.sentence(locale, entry.code, data, actor=actor, to_state=entry.to_state, now=now)
    took = locale.say("history_took", span=locale.span(entry.took_seconds)) if entry.took_seconds else None
    badge = _badge(entry)
    sign = SIGNS[badge] if badge else ("!" if kind_of(entry.code) is Kind.TROUBLE else "·")
    at, detail = locale.time(entry.at, now), history.remark(entry.code, entry.data)
    return Line(at, entry.at.isoformat(), text, took, detail, badge, sign, None if entry.code in STEPS else lasted)


def _badge(entry: HistoryEntry) -> str:
    seen = entry.code in SEEN and entry.to_state in set(Phase)
    return BADGES[Phase(entry.to_state or "")].value if seen else ""


def strip(entries: Iterable[HistoryEntry], locale: Locale, now: datetime) -> Strip | None:
    """`entries`: those of `SEEN`, newest first. None: too little is known to draw anything."""
    changes = [entry for entry in reversed(list(entries)) if _badge(entry)]
    merged = [
        e for before, e in zip([None, *changes], changes, strict=False) if not before or _badge(before) != _badge(e)
    ]
    if len(merged) < 2:
        return None
    begin = merged[0].at
    whole = max((now - begin).total_seconds(), 1.0)
    ends = [*(entry.at for entry in merged[1:]), now]
    stretches = []
    for entry, end in zip(merged, ends, strict=True):
        seconds = max(0.0, (end - entry.at).total_seconds())
        x = round(STRIP * (entry.at - begin).total_seconds() / whole)
        width = max(NARROWEST, round(STRIP * seconds / whole))
        lasted = locale.say("history_lasting" if end is now else "history_lasted", span=locale.span(seconds))
        text = locale.say(history.STATES[entry.to_state or ""])
        stretches.append(Stretch(entry.id, _badge(entry), text, lasted, min(x, STRIP - width), width))
    return Strip(stretches, locale.time(begin, now))
