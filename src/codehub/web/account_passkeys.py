"""The section of `/account` about one's passkeys."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from codehub.auth.service import FROM_THE_START
from codehub.errors import CodeHubError, NotFoundError
from codehub.i18n.locales import Locale
from codehub.passkeys import rules
from codehub.passkeys.model import Obstacle, Passkey, Place
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web.account_sections import ACCOUNT, CHOOSING, back_to
from codehub.web.forms import Posted
from codehub.web.handover import host_of
from codehub.web.page_access import may
from codehub.web.rendering import locale_for
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
HERE = "passkeys"
MOST = 200  # that are shown


@dataclass(frozen=True)
class Shown:
    id: str
    label: str
    added: str
    used: str | None
    blocked: str | None
    elsewhere: str | None  # the name that it belongs to, where that is not ours any more


@dataclass(frozen=True)
class Section:
    name: str
    passkeys: Sequence[Shown]
    more: bool  # may be added
    place: Place | Obstacle
    suggested: str  # what one that is added is called, if nothing else is said


def _shown(found: Passkey, ours: str | None, locale: Locale, now: datetime) -> Shown:
    used = locale.time(found.last_used_at, now) if found.last_used_at else None
    blocked = locale.time(found.blocked_at, now) if found.blocked_at else None
    elsewhere = found.belongs_to if found.belongs_to != ours else None
    return Shown(found.id, found.label, locale.time(found.created_at, now), used, blocked, elsewhere)


async def section(request: Request, caller: Principal) -> Section:
    services, locale = services_of(request), locale_for(request)
    found = await services.passkeys.page(caller, caller.name, after=FROM_THE_START, limit=MOST)
    most = services.settings.limits.max_passkeys_per_user
    return Section(
        caller.name,
        [_shown(passkey, services.logins.working.passkey_name, locale, services.clock.now()) for passkey in found],
        not most or len(found) < most,
        services.passkeys.place(host_of(request)),
        rules.default_label(request.headers.get("user-agent", ""), [passkey.label for passkey in found]),
    )


@router.post("/do/account/add-passkey")
async def add(request: Request, caller: Annotated[Principal, may(Action.PASSKEY_ADD)], form: Posted) -> Response:
    """`static/passkeys.js` sends it, with what the browser has made."""
    label, agent = form.get("label", "").strip() or None, request.headers.get("user-agent", "")
    sent, choosing = form.get("credential", ""), CHOOSING.get(form.get("then", ""))
    try:
        await services_of(request).passkeys.register(
            caller, caller.name, host_of(request), sent, label=label, agent=agent
        )
    except CodeHubError as e:
        return back_to(HERE, problem=_problem(e), page=choosing[0] if choosing else ACCOUNT)
    return RedirectResponse(choosing[1], 303) if choosing else back_to(HERE, done="passkey_add")


@router.post("/do/account/rename-passkey")
async def rename(request: Request, caller: Annotated[Principal, may(Action.PASSKEY_RENAME)], form: Posted) -> Response:
    passkeys = services_of(request).passkeys
    try:
        await passkeys.rename(caller, caller.name, form.get("id", ""), form.get("label", ""))
    except CodeHubError as e:
        return back_to(HERE, problem=_problem(e))
    return back_to(HERE, done="passkey_rename")


@router.post("/do/account/remove-passkey")
async def remove(request: Request, caller: Annotated[Principal, may(Action.PASSKEY_REMOVE)], form: Posted) -> Response:
    try:
        await services_of(request).passkeys.remove(caller, caller.name, form.get("id", ""))
    except NotFoundError:  # a double click
        return back_to(HERE, done="passkey_remove")
    except CodeHubError as e:
        return back_to(HERE, problem=_problem(e))
    return back_to(HERE, done="passkey_remove")


def _problem(error: CodeHubError) -> CodeHubError | str:
    """What is wrong with a passkey's name is not said as of a token's."""
    fields = [wrong["field"] for wrong in error.extra.get("errors", ())]
    return "PASSKEY_LABEL" if "label" in fields else error
