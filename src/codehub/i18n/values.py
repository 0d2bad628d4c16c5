"""The data of a line as the words of a sentence: a span, a size, a moment, or the text of a code. Pure.

Called by `history` and `audit`; what a field is, its name says.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from codehub.i18n.locales import Locale

MOMENTS = frozenset(
    {"created_at", "asked_at", "active_at", "idle_since", "asleep_since", "orphan_since", "until", "at", "since"}
)
CODED = {
    "operation": "operation",
    "plan": "plan",
    "work": "work",
    "rule": "rule",
    "reason": "trouble",
    "why": "why",
    "cold": "cold",
}
LONGEST = 200  # characters of what is not understood
NAMED = {
    **CODED,
    "role": "role",
    "active": "active",
    "verb": "verb",
    "weekday": "weekday",
    "outcome": "left_out",
    "cause": "fetch",
}


def shown(locale: Locale, data: Mapping[str, Any], now: datetime | None) -> dict[str, str]:
    """`now`: for a page, on which a moment is said as people say it; else it is said exactly."""
    return {name: _shown(locale, name, value, now) for name, value in data.items()}


def _shown(locale: Locale, name: str, value: Any, now: datetime | None) -> str:
    """What was kept may be another version's: it is shown as it is, and breaks no page."""
    try:
        return _known(locale, name, value, now)
    except (TypeError, ValueError, KeyError, OverflowError):
        return str(value)[:LONGEST]


def _known(locale: Locale, name: str, value: Any, now: datetime | None) -> str:
    plain: Mapping[str, Callable[[Any], str]] = {
        "seconds": locale.span,
        "bytes": locale.size,
        "scopes": ", ".join,
        "after": locale.length,
        "weekdays": lambda days: ", ".join(locale.say(f"weekday_{day}") for day in days),
    }
    if value is None:
        return "?"
    if name in plain:
        return plain[name](value)
    if name in MOMENTS:
        at = datetime.fromisoformat(value)
        return locale.time(at, now) if now else locale.exact(at)
    key = f"{NAMED.get(name)}_{str(value).lower()}"
    return locale.say(key) if name in NAMED and locale.knows(key) else str(value)
