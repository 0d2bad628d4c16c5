"""The section of `/account` with the browsers that one is logged in with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub import user_agents
from codehub.auth.model import BrowserSession
from codehub.auth.service import FROM_THE_START
from codehub.errors import CodeHubError, NotFoundError
from codehub.i18n.locales import Locale
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web.account_sections import back_to
from codehub.web.forms import Posted
from codehub.web.page_access import may
from codehub.web.rendering import locale_for
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
MOST = 200  # that are shown


@dataclass(frozen=True)
class Device:
    id: str
    name: str
    is_current: bool
    seen: str
    since: str


def device_of(session: BrowserSession, caller: Principal, locale: Locale, now: datetime) -> Device:
    browser, system = user_agents.browser(session.user_agent), user_agents.system(session.user_agent)
    name = browser or locale.say("account_device_unknown")
    if system:
        name = locale.say("account_device_on", browser=name, system=system)
    times = locale.time(session.seen_at, now), locale.time(session.created_at, now)
    return Device(session.id, name, session.id == caller.session_id, *times)


async def section(request: Request, caller: Principal) -> Sequence[Device]:
    services, locale = services_of(request), locale_for(request)
    found = await services.people.page_sessions(caller, caller.name, after=FROM_THE_START, limit=MOST)
    newest_first = sorted(found, key=lambda s: s.seen_at, reverse=True)
    devices = [device_of(session, caller, locale, services.clock.now()) for session in newest_first]
    return sorted(devices, key=lambda device: not device.is_current)


@router.post("/do/account/end-device")
async def end(request: Request, caller: Annotated[Principal, may(Action.LOGIN_REVOKE)], form: Posted) -> Response:
    try:
        await services_of(request).people.revoke_session(caller, caller.name, form.get("id", ""))
    except NotFoundError:  # a double click, or it has ended by itself
        return back_to("devices", done="device")
    except CodeHubError as e:
        return back_to("devices", problem=e)
    return back_to("devices", done="device")


@router.post("/do/account/end-other-devices")
async def end_others(request: Request, caller: Annotated[Principal, may(Action.LOGIN_REVOKE)]) -> Response:
    try:
        await services_of(request).people.end_other_sessions(caller, caller.name)
    except CodeHubError as e:
        return back_to("devices", problem=e)
    return back_to("devices", done="devices")
