"""The page to log in on: `/login`, and `/` for those who are not logged in. By a password here; each other way in has a
part of the page of its own (`sign_in_passkey.html`, `sign_in_providers.html`).

What was refused is answered by the page itself and not by a redirect: a name that was typed must not get into an
address, which is logged, because people type their password into the wrong field.
"""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub import ids
from codehub.auth import password_rules
from codehub.errors import BusyError, CodeHubError, TooManyTriesError, WrongCredentialsError
from codehub.http.access import names, set_cookie
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import handover
from codehub.web.forms import Posted
from codehub.web.login import Visitor, browser_of, session_of
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
REFUSALS = (WrongCredentialsError, TooManyTriesError, BusyError)


def page(request: Request, caller: Principal | None, status: int = 200, **said: Any) -> Response:
    """`said`: what is wrong with which field, and the name that was typed."""
    shown = {"typed": "", "wrong_name": "", "wrong_password": "", "wrong_passkey": "", **said}
    shown |= {"providers": services_of(request).openid.providers, "away": request.query_params.get("away", "")}
    shown["passkey_place"] = services_of(request).passkeys.place(handover.host_of(request))
    returns = handover.NEXT_COOKIE in request.cookies
    return render(request, "sign_in.html", status, before=session_of(caller), returns=returns, **shown)


@router.get("/login", dependencies=[names(Action.PUBLIC_LOGIN)])
async def show(request: Request, caller: Visitor) -> Response:
    return page(request, caller)


@router.post("/login", dependencies=[names(Action.PUBLIC_LOGIN)])
async def log_in(request: Request, caller: Visitor, form: Posted) -> Response:
    name, password = form.get("name", "")[: password_rules.LONGEST], form.get("password", "")
    t = locale_for(request).texts
    if not name.strip():
        return page(request, caller, 400, wrong_name=t["sign_in_missing_name"])
    if not password:
        return page(request, caller, 400, typed=name, wrong_password=t["sign_in_missing_password"])
    before = session_of(caller)
    # The page named the session that ends. One that began since then is not ended unasked.
    if before != form.get("instead_of", ""):
        return page(request, caller, 409, typed=name)
    browser = browser_of(request, caller if before else None)
    try:
        done = await services_of(request).passwords.log_in(name, password, browser, before)
    except REFUSALS as e:
        response = page(request, caller, e.status, typed=name, **_wrong(request, name, e))
        if e.retry_after is not None:
            response.headers["retry-after"] = str(e.retry_after)
        return response
    set_cookie(request, done.cookie)
    return handover.after_login(request)


def _wrong(request: Request, name: str, refusal: CodeHubError) -> dict[str, str]:
    """What nobody's name can be is said, and tells a stranger nothing: learners type what they are called."""
    if isinstance(refusal, WrongCredentialsError) and not ids.is_label(password_rules.login_name(name)):
        return {"wrong_name": locale_for(request).say("sign_in_no_name")}
    return {"wrong_password": _words(request, refusal)}


def _words(request: Request, refusal: CodeHubError) -> str:
    locale = locale_for(request)
    match refusal:
        case TooManyTriesError():
            return locale.say("sign_in_slow", wait=locale.span(refusal.retry_after or 0))
        case BusyError():
            return locale.say("sign_in_busy")
    return locale.say("sign_in_wrong")
