"""Everybody's workspaces in words: what was searched for, rows, counts, and what became of each of many. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from codehub.i18n.locales import Locale
from codehub.web import presentation
from codehub.web.dashboard_view import Card
from codehub.workspaces.bulk import BulkAction, Item
from codehub.workspaces.bulk_rules import Outcome, Verb
from codehub.workspaces.finding import Search, Shown, Sort, Totals

LONGEST = {"q": 100, "owner": 63, "template": 63, "class": 63}
FIELDS = (*LONGEST, "phase", "asleep", "sort")
SPANS = {"1h": 3600, "1d": 86400, "7d": 7 * 86400, "30d": 30 * 86400, "90d": 90 * 86400}
BADGES = {
    Shown.RUNNING: "running",
    Shown.STANDBY: "asleep",
    Shown.ARCHIVED: "stored",
    Shown.PENDING: "new",
    Shown.ERROR: "wrong",
    Shown.TRASH: "trash",
}
ALIVE = (Verb.SLEEP, Verb.START, Verb.ARCHIVE, Verb.RECOVER, Verb.DELETE)
VERBS = {
    Shown.RUNNING: (Verb.SLEEP, Verb.ARCHIVE, Verb.DELETE),
    Shown.STANDBY: (Verb.START, Verb.ARCHIVE, Verb.DELETE),
    Shown.ARCHIVED: (Verb.START, Verb.DELETE),
    Shown.PENDING: (Verb.START, Verb.DELETE),
    Shown.ERROR: (Verb.RECOVER, Verb.DELETE),
    Shown.TRASH: (Verb.UNDELETE,),
}
SIGNS = {
    None: ("moving-still", "◐"),
    Outcome.DONE: ("running", "✓"),
    Outcome.SAME: ("stored", "="),
    Outcome.REFUSED: ("wrong", "▲"),
}
ORDER = (Outcome.REFUSED, None, Outcome.DONE, Outcome.SAME)  # what needs a person first


def asked(query: Mapping[str, str]) -> dict[str, str]:
    """What an address or a form asks for; what nobody can have chosen is left out."""
    typed = {name: " ".join(query.get(name, "")[:most].replace("\0", "").split()) for name, most in LONGEST.items()}
    chosen = {
        "phase": query.get("phase", "") if query.get("phase") in set(Shown) else "",
        "asleep": query.get("asleep", "") if query.get("asleep") in SPANS else "",
        "sort": query.get("sort", "") if query.get("sort") in set(Sort) else "",
    }
    return {name: value for name, value in {**typed, **chosen}.items() if value}


def search(asked: Mapping[str, str], now: datetime) -> Search:
    span = SPANS.get(asked.get("asleep", ""))
    return Search(
        text=asked.get("q", ""),
        shown=Shown(asked["phase"]) if "phase" in asked else None,
        owner=asked.get("owner", ""),
        template=asked.get("template", ""),
        class_id=asked.get("class", ""),
        asleep_since=now - timedelta(seconds=span) if span else None,
    )


def sort(asked: Mapping[str, str]) -> Sort:
    return Sort(asked.get("sort", Sort.NEW))


def verbs(shown: Shown | None) -> Sequence[Verb]:
    return VERBS[shown] if shown else ALIVE


def spans(locale: Locale) -> dict[str, str]:
    return {name: locale.length(seconds) for name, seconds in SPANS.items()}


@dataclass(frozen=True)
class Row:
    card: Card
    owner: str
    size: str | None
    since: str  # how long it is as it is


def row(card: Card, owner: str, locale: Locale, now: datetime) -> Row:
    w = card.w
    passed = max(0.0, (now - w.phase_changed_at).total_seconds())
    size = None if w.disk_bytes is None else locale.size(w.disk_bytes)
    return Row(card, owner, size, locale.say("all_since", span=locale.span(passed)))


@dataclass(frozen=True)
class Chip:
    """A number that is a filter, too."""

    href: str
    text: str
    n: int
    badge: str
    sign: str
    current: bool


def chips(asked: Mapping[str, str], totals: Totals, locale: Locale) -> list[Chip]:
    rest = {name: value for name, value in asked.items() if name != "phase"}
    now = asked.get("phase")
    found = [Chip(f"/workspaces?{urlencode(rest)}", locale.say("all_phase_all"), totals.all, "", "", now is None)]
    for shown, badge in BADGES.items():
        href = f"/workspaces?{urlencode({**rest, 'phase': shown})}"
        text = locale.say(f"all_phase_{shown.lower()}")
        sign = presentation.SIGNS[badge]
        found.append(Chip(href, text, totals.of[shown], badge, sign, now == shown))
    return found


# --- many at once ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Past:
    id: str
    text: str
    at: str


def past(action: BulkAction, locale: Locale, now: datetime) -> Past:
    state = "" if action.finished_at else f" · {locale.say('bulk_under_way')}"
    text = locale.say(f"bulk_title_{action.verb}", n=action.matched)
    return Past(action.id, text, f"{locale.time(action.created_at, now)}{state}")


@dataclass(frozen=True)
class Became:
    """What became of one workspace."""

    id: str
    name: str
    owner: str
    badge: str
    sign: str
    text: str
    why: str | None


@dataclass(frozen=True)
class Bulk:
    id: str
    title: str
    asked: str  # by whom, when
    counts: Sequence[tuple[str, int]]
    finished: bool
    rest: str | None  # more matched than may be asked at once
    undo: bool
    items: Sequence[Became]


def bulk(action: BulkAction, items: Sequence[Item], called: Mapping[str, str], locale: Locale, now: datetime) -> Bulk:
    by = {outcome: [item for item in items if item.outcome is outcome] for outcome in ORDER}
    counts = [(locale.say(f"bulk_{_word(outcome)}"), len(found)) for outcome, found in by.items() if found]
    more = action.matched > len(items)
    return Bulk(
        id=action.id,
        title=locale.say(f"bulk_title_{action.verb}", n=len(items)),
        asked=locale.say("bulk_asked", who=called[action.actor], time=locale.time(action.created_at, now)),
        counts=counts,
        finished=action.finished_at is not None,
        rest=locale.say("bulk_rest", n=len(items), all=action.matched) if more else None,
        undo=action.verb is Verb.DELETE and any(item.in_trash for item in by[Outcome.DONE]),
        items=[_became(item, called, locale) for outcome in ORDER for item in by[outcome]],
    )


def _word(outcome: Outcome | None) -> str:
    return outcome.value if outcome else "waits"


def _became(item: Item, called: Mapping[str, str], locale: Locale) -> Became:
    badge, sign = SIGNS[item.outcome]
    text = locale.say(f"bulk_{_word(item.outcome)}")
    owner = called[item.owner]
    return Became(item.workspace_id, item.name, owner, badge, sign, text, _why(item, locale))


def _why(item: Item, locale: Locale) -> str | None:
    if item.outcome is None:
        return locale.say("bulk_waits_why")
    if item.code is None:
        return None
    keys = (f"bulk_why_{item.code.lower()}", f"refused_{item.code.lower()}", "refused_other")
    return next(locale.say(key) for key in keys if locale.knows(key))
