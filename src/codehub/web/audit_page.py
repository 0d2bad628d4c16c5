"""`/audit`: who did what, when, from where; for admins. Found by person, by what was done, and by day."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.audit.codes import Code
from codehub.audit.model import AuditEntry
from codehub.audit.service import AuditSearch
from codehub.i18n import audit
from codehub.i18n.locales import Locale
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import Services, services_of

router = APIRouter(include_in_schema=False)
PAGE = 50
FIELDS = {"person": 63, "code": 40, "since": 10, "until": 10}
LONGEST_NUMBER = 18
WHOM = ("user", "owner")  # fields of a line's data that are people's names
# What a line is about, by how its code begins: its subject is an id, and people know it by name.
OF_A_CLASS = ("class", "invitation", "assignment")
OF_A_WORKSPACE = ("workspace",)


@dataclass(frozen=True)
class Line:
    at: str
    exactly: str
    text: str
    code: str
    address: str | None


@router.get("/audit")
async def show(request: Request, caller: Annotated[Principal, may(Action.AUDIT_READ)]) -> Response:
    services, locale, query = services_of(request), locale_for(request), request.query_params
    asked = {name: " ".join(query.get(name, "")[:most].replace("\0", "").split()) for name, most in FIELDS.items()}
    search, wrong = wanted(asked, locale)
    before = query.get("cursor", "")
    place = int(before) if before.isascii() and before.isdecimal() and len(before) < LONGEST_NUMBER else None
    found = await services.audit.page(caller, before=place, actor=None, subject=None, limit=PAGE + 1, search=search)
    called = await _called(services, caller, found[:PAGE])
    now, kept = services.clock.now(), {name: value for name, value in asked.items() if value}
    more = {**kept, "cursor": str(found[PAGE - 1].id)} if len(found) > PAGE else None
    return render(
        request,
        "audit.html",
        caller=caller,
        asked=asked,
        wrong=wrong,
        narrowed=bool(kept) or place is not None,
        codes=sorted(((code.value, what(code, locale)) for code in Code), key=lambda option: option[1]),
        lines=[line_of(entry, called, locale, now) for entry in found[:PAGE]],
        more=f"/audit?{urlencode(more)}" if more else None,
    )


def wanted(asked: Mapping[str, str], locale: Locale) -> tuple[AuditSearch, list[str]]:
    """What is searched for, and the names of the fields that say nothing that can be. Days are the reader's."""
    days = {name: _day(asked[name]) for name in ("since", "until")}
    wrong = [name for name, day in days.items() if asked[name] and day is None]
    code = asked["code"] if asked["code"] in set(Code) else None
    since, until = _midnight(days["since"], locale), _midnight(days["until"], locale)
    end = until + timedelta(days=1) if until else None
    return AuditSearch(asked["person"] or None, code, since, end), wrong


def _day(text: str) -> date | None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if 1970 <= found.year < 9999 else None  # beyond, time zones leave the calendar


def _midnight(day: date | None, locale: Locale) -> datetime | None:
    if day is None:
        return None
    moment = datetime.combine(day, time())
    local = moment.replace(tzinfo=locale.zone) if locale.zone else moment.astimezone()
    return local.astimezone(UTC)


def what(code: Code, locale: Locale) -> str:
    """For the filter, in a few words."""
    return locale.say(f"audit_did_{code.replace('.', '_')}")


@dataclass(frozen=True)
class Called:
    """What the lines of a page speak of, by name: people, classes, workspaces."""

    people: Mapping[str, str]
    things: Mapping[str, str]


async def _called(services: Services, caller: Principal, found: Sequence[AuditEntry]) -> Called:
    def about(kinds: Collection[str]) -> set[str]:
        return {entry.subject for entry in found if entry.code.partition(".")[0] in kinds}

    people = await services.people.called({name for entry in found for name in named(entry)})
    classes = await services.classes.titles(caller, about(OF_A_CLASS))
    names = await services.all_workspaces.names(caller, about(OF_A_WORKSPACE))
    return Called(people, {**classes, **{id_: f"{name} ({id_})" for id_, name in names.items()}})


def named(entry: AuditEntry) -> list[str]:
    """Who is in it, as far as these are names of people."""
    said = (entry.actor, entry.subject, *(entry.data.get(field) for field in WHOM))
    return [name for name in said if isinstance(name, str) and name]


def line_of(entry: AuditEntry, called: Called, locale: Locale, now: datetime) -> Line:
    known = {field: entry.data[field] for field in WHOM if isinstance(entry.data.get(field), str)}
    people = {field: called.people.get(name, name) for field, name in known.items()}
    actor = called.people.get(entry.actor, entry.actor)
    subject = called.things.get(entry.subject) or called.people.get(entry.subject, entry.subject)
    text = audit.sentence(locale, entry.code, {**entry.data, **people}, actor=actor, subject=subject)
    return Line(locale.time(entry.at, now), entry.at.isoformat(), text, entry.code, entry.address)
