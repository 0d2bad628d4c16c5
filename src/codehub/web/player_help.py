"""Asking for help on a session's page: what was asked and answered, and the forms. Part of `player`'s page."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.assignments.model import Hand
from codehub.assignments.progress_api import MESSAGE
from codehub.errors import CodeHubError
from codehub.http.access import spend_creation
from codehub.i18n.locales import Locale
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions.model import Run, RunStatus
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.services import Services, services_of

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class HelpView:
    run: Run
    hand: Hand | None  # the last of this run; one that was taken back is not shown
    by: str  # who answered it, as they are called
    since: str
    longest: int

    @property
    def may_ask(self) -> bool:
        return self.run.status is RunStatus.RUNNING


async def of(services: Services, caller: Principal, run: Run, locale: Locale, now: datetime) -> HelpView | None:
    """None: no teacher would see it, or the run is over and nothing was asked."""
    hand = await services.hands.last(caller, run.id)
    if hand is not None and not hand.is_open and hand.answered_by is None:
        hand = None
    if hand is None and (run.status is not RunStatus.RUNNING or not await services.hands.could_ask(caller)):
        return None
    moment, name = hand and (hand.ended_at or hand.raised_at), (hand and hand.answered_by) or ""
    by = (await services.people.called([name]))[name] if name else ""
    return HelpView(run, hand, by, locale.time(moment, now) if moment else "", MESSAGE)


@router.post("/do/sessions/{id}/help")
async def ask(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_HELP)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """A second click changes nothing."""
    message = " ".join(form.get("message", "").split())[:MESSAGE]
    try:
        await spend_creation(request, caller, "hand")
        await services_of(request).hands.raise_hand(caller, form.get("run", ""), message)
    except CodeHubError as e:
        return back(_page(id, form), problem=e.code, at="help")
    return back(_page(id, form))


@router.post("/do/sessions/{id}/help/lower")
async def lower(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_HELP)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    try:
        await services_of(request).hands.lower(caller, form.get("run", ""))
    except CodeHubError as e:
        return back(_page(id, form), problem=e.code, at="help")
    return back(_page(id, form))


def _page(id_: str, form: Form) -> str:
    """The page with the run that it has."""
    run, fence = form.get("run", ""), form.get("fence", "")
    return f"/sessions/{id_}?run={run}&fence={fence}" if run.isalnum() and fence.isdecimal() else f"/sessions/{id_}"
