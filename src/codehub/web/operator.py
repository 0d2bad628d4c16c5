"""`/operator`: how the platform is doing, over time, for admins; and what other times to sleep would have done.

Both are questions: the forms are GETs, and an address can be kept. `static/codehub.js` keeps the figures fresh.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.activity import hold
from codehub.activity.what_if_service import MOST_DAYS, MOST_SECONDS
from codehub.errors import InvalidRequestError
from codehub.i18n.locales import Locale
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import operator_view
from codehub.web.operator_view import RANGES, Supposed
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import Services, services_of

router = APIRouter(include_in_schema=False)
FIRST_RANGE = "day"
LONGEST_TYPED = 20
FIELDS = ("standby", "archive", "days")


@router.get("/operator")
async def show(request: Request, caller: Annotated[Principal, may(Action.MONITORING_READ)]) -> Response:
    services, locale, query = services_of(request), locale_for(request), request.query_params
    now = services.clock.now()
    chosen = RANGES.get(query.get("range", ""), RANGES[FIRST_RANGE])
    read = services.monitoring.between(caller, chosen.resolution, now - chosen.length, now, operator_view.most(chosen))
    samples = operator_view.prepared(await read, chosen, locale)
    asked = {name: query.get(name, "").strip()[:LONGEST_TYPED] for name in FIELDS}
    answer, wrong = await _answer(services, caller, asked, locale)
    ttl = services.settings.ttl
    return render(
        request,
        "operator.html",
        caller=caller,
        ranges=list(RANGES),
        chosen=chosen.name,
        charts=operator_view.drawn(samples, chosen, locale, now) if samples else [],
        columns=operator_view.COLUMNS,
        rows=operator_view.table(samples, chosen, locale, now),
        typed={"standby": "", "archive": "", **asked, "days": asked["days"] or "7"},
        most_days=MOST_DAYS,
        wrong=wrong,
        answer=answer,
        times=tuple(
            locale.length(seconds) if seconds else locale.say("operator_never")
            for seconds in (ttl.standby_seconds, ttl.archive_seconds)
        ),
    )


@dataclass(frozen=True)
class _Question:
    standby: int
    archive: int | None
    days: int


async def _answer(
    services: Services, caller: Principal, asked: Mapping[str, str], locale: Locale
) -> tuple[Supposed | None, Mapping[str, str]]:
    """And what is wrong with what was typed, by field."""
    if not any(asked.values()):
        return None, {}
    found, wrong = read_question(asked)
    if found is None:
        return None, {name: locale.say(f"operator_wrong_{code}", n=MOST_DAYS) for name, code in wrong.items()}
    answer = await services.what_if.ask(caller, found.standby, found.archive, found.days)
    return operator_view.supposed(answer, locale, services.clock.now()), {}


def read_question(asked: Mapping[str, str]) -> tuple[_Question | None, Mapping[str, str]]:
    """What was typed, or what is wrong with it: a code for each field."""
    wrong: dict[str, str] = {}
    standby, archive = _seconds(asked["standby"]), _seconds(asked["archive"])
    if standby is None:
        wrong["standby"] = "time"
    if archive is None and asked["archive"]:
        wrong["archive"] = "time"
    days = asked["days"] or "7"
    if not (days.isascii() and days.isdigit() and 1 <= int(days) <= MOST_DAYS):
        wrong["days"] = "days"
    if wrong or standby is None:
        return None, wrong
    return _Question(standby, archive, int(days)), wrong


def _seconds(text: str) -> int | None:
    if text == "0":
        return 0
    try:
        seconds = int(hold.seconds_of(text.replace(" ", "").lower()))
    except (InvalidRequestError, ValueError, OverflowError):
        return None
    return seconds if 0 < seconds <= MOST_SECONDS else None
