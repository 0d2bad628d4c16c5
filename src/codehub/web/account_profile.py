"""The section of `/account` that says who one is to others, in which language one reads, and in which time zone."""

import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from codehub.auth.model import Person
from codehub.auth.profiles import Profile
from codehub.errors import CodeHubError
from codehub.i18n.texts import LANGUAGES
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import handover
from codehub.web.account_sections import back_to
from codehub.web.forms import Posted
from codehub.web.page_access import may
from codehub.web.rendering import LANGUAGE_COOKIE
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class ProfileSection:
    person: Person
    zones: Sequence[str]


@cache
def zones() -> Sequence[str]:
    """Those that are named after places, and UTC; what else there is are older names for the same."""
    areas = ("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
    return ["UTC", *sorted(name for name in zoneinfo.available_timezones() if name.startswith(areas))]


async def section(request: Request, caller: Principal) -> ProfileSection:
    person = await services_of(request).people.get_user(caller, caller.name)
    own = person.time_zone
    return ProfileSection(person, [*zones(), own] if own and own not in zones() else zones())


@router.post("/do/account/profile")
async def change(request: Request, caller: Annotated[Principal, may(Action.USER_PROFILE)], form: Posted) -> Response:
    profile = Profile(form.get("display_name", ""), form.get("language") or None, form.get("time_zone") or None)
    try:
        await services_of(request).profiles.change(caller, caller.name, profile)
    except CodeHubError as e:
        return back_to("profile", problem=e)
    return back_to("profile", done="profile")


@router.post("/do/account/language")
async def speak(request: Request, caller: Annotated[Principal, may(Action.USER_PROFILE)], form: Posted) -> Response:
    """The choice below every page, by a person who has a language of their own: it is theirs from then on."""
    language = form.get("language", "")
    if language in LANGUAGES:
        await services_of(request).profiles.change(caller, caller.name, Profile(language=language))
    then = form.get("then", "")
    response = RedirectResponse(then if handover.PAGES.fullmatch(then) else "/", 303)
    response.delete_cookie(LANGUAGE_COOKIE, path="/")
    return response
