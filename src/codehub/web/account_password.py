"""The section of `/account` about one's password, its forms, and the page that asks for a way in after the first link.

A link is good once: who logs out without another way in needs a new one from another person. So admins are asked when
they have used one, and everybody is reminded on the dashboard until there is one.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from codehub.auth import password_rules
from codehub.auth.model import WaysIn
from codehub.errors import CodeHubError, PasswordRefusedError
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import account_passkeys
from codehub.web.account_sections import CHOOSE, CHOOSING, back_to, said_of
from codehub.web.forms import Posted, back, code_of
from codehub.web.page_access import may
from codehub.web.rendering import render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class PasswordSection:
    name: str
    ways: WaysIn
    shortest: int = password_rules.SHORTEST
    longest: int = password_rules.LONGEST


async def section(request: Request, caller: Principal) -> PasswordSection:
    return PasswordSection(caller.name, await services_of(request).people.ways_in(caller, caller.name))


@router.get(CHOOSE)
async def choose(request: Request, caller: Annotated[Principal, may(Action.USER_SEE)]) -> Response:
    """For those who have no way in yet; others find theirs in their account."""
    s = await section(request, caller)
    if s.ways.count:
        return RedirectResponse("/account", 303)
    passkeys = await account_passkeys.section(request, caller)
    return render(request, "way_in.html", caller=caller, s=s, adding=passkeys, said=said_of(request))


@router.post("/do/account/password")
async def change(request: Request, caller: Annotated[Principal, may(Action.PASSWORD_CHANGE)], form: Posted) -> Response:
    choosing = CHOOSING.get(form.get("then", ""))
    try:
        current = form.get("current_password") or None
        await services_of(request).passwords.change(caller, caller.name, form.get("password", ""), current)
    except CodeHubError as e:
        return back(choosing[0], problem=_code(e)) if choosing else back_to("password", problem=_code(e))
    return RedirectResponse(choosing[1], 303) if choosing else back_to("password", done="password")


@router.post("/do/account/remove-password")
async def remove(request: Request, caller: Annotated[Principal, may(Action.PASSWORD_CHANGE)], form: Posted) -> Response:
    try:
        await services_of(request).passwords.remove(caller, caller.name, form.get("current_password") or None)
    except CodeHubError as e:
        return back_to("password", problem=_code(e))
    return back_to("password", done="password_removed")


def _code(error: CodeHubError) -> str:
    if isinstance(error, PasswordRefusedError):
        return error.reason
    return "CURRENT_PASSWORD" if "errors" in error.extra else code_of(error)
