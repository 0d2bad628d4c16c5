"""A workspace's history as sentences, newest first. Pure; the API has the same with every detail."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from codehub.web.i18n import Words
from codehub.web.presentation import LOOKS
from codehub.workspaces.leaving import OWNER_DEACTIVATED
from codehub.workspaces.model import DesiredBy, Entry, Operation, Phase, Reason

# Events of `workspaces.service` whose sentence only needs to know who.
BY_SOMEBODY = {"created", "delete", "purge", "undelete", "recover", "restore", "shared", "unshared"}
OTHERS = {
    "IDE ended": "event_ide_ended",
    "observed": "event_observed",
    "kept awake": "event_kept_awake",
    "emptied": "event_emptied",
}
REASONS = {reason.value for reason in Reason}
TIMER = "ttl"  # who puts to sleep and stores away when nobody comes
DETAILED = ("event_ide_ended", "event_retry", "event_gave_up", "event_restore")


@dataclass(frozen=True)
class Line:
    at: str
    exactly: str  # for machines, and for whoever wants the second
    text: str
    took: str | None
    detail: str | None


def lines(entries: Iterable[Entry], words: Words, now: datetime) -> list[Line]:
    """What began is left out: what came of it follows."""
    return [_line(entry, words, now) for entry in entries if not entry.event.endswith(" begins")]


def _line(entry: Entry, words: Words, now: datetime) -> Line:
    key = _key(entry)
    known = key is not None and words.knows(key)
    text = words.say(key, **_gaps(entry, words)) if key and known else entry.event
    took = words.say("event_took", span=words.span(entry.took_seconds)) if entry.took_seconds else None
    detail = entry.reason if not known or key in DETAILED else ""
    return Line(words.time(entry.at, now), entry.at.isoformat(), text, took, detail or None)


def _gaps(entry: Entry, words: Words) -> dict[str, str]:
    state = entry.to_state if entry.to_state in Phase.__members__ else None
    return {
        "actor": entry.actor,
        "state": words.say(f"state_{LOOKS[Phase(state)]}") if state else "",
        "guest": entry.reason.rpartition(" ")[2],  # `with jun`, `from jun`
        "span": words.span(entry.detail.get("seconds") or 0),
    }


def _key(entry: Entry) -> str | None:
    """The text that says it; None for what has no sentence (the reason stands for itself)."""
    event = entry.event
    if event in BY_SOMEBODY:
        return f"event_{event}"
    if event == "wish":
        return _wish(entry)
    if event in Operation.__members__:
        return f"event_{event.lower()}"
    if event in REASONS:
        return f"trouble_{event.lower()}"
    if event.endswith(" will be tried again"):
        return "event_retry"
    if event.endswith(" given up"):
        return "event_gave_up"
    return OTHERS.get(event)


def _wish(entry: Entry) -> str:
    wanted = (entry.to_state or "").lower()
    if entry.actor == TIMER:
        return f"event_wish_by_ttl_{wanted}"
    if entry.reason == OWNER_DEACTIVATED:
        return "event_wish_deactivated"
    return "event_wish_by_wake" if entry.reason == f"asked by {DesiredBy.WAKE}" else f"event_wish_{wanted}"
