"""Logging in with a passkey: the form of the page to log in on, which `static/passkeys.js` sends with the answer.

What was refused is said by the page itself, as of a password (`sign_in`).
"""

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.errors import CodeHubError, InvalidRequestError
from codehub.http.access import names
from codehub.passkeys import api as passkeys_api
from codehub.passkeys.errors import (
    PasskeyBlockedError,
    PasskeyChallengeError,
    PasskeyOriginError,
    PasskeyRefusedError,
    PasskeysUnavailableError,
)
from codehub.policy.actions import Action
from codehub.web import handover, sign_in
from codehub.web.forms import Posted
from codehub.web.login import Visitor, session_of
from codehub.web.rendering import locale_for

router = APIRouter(include_in_schema=False)
REFUSALS: dict[type[CodeHubError], str] = {
    PasskeyRefusedError: "passkeys_refused",
    PasskeyBlockedError: "passkeys_blocked",
    PasskeyChallengeError: "passkeys_again",
    PasskeyOriginError: "passkeys_failed",
    PasskeysUnavailableError: "passkeys_failed",
    InvalidRequestError: "passkeys_failed",
}


@router.post("/do/passkey-login", dependencies=[names(Action.PUBLIC_LOGIN)])
async def log_in(request: Request, caller: Visitor, form: Posted) -> Response:
    before = session_of(caller)
    # The page named the session that ends. One that began since then is not ended unasked.
    if before != form.get("instead_of", ""):
        return sign_in.page(request, caller, 409)
    try:
        await passkeys_api.log_in(request, form.get("credential", ""), before)
    except tuple(REFUSALS) as e:
        return sign_in.page(request, caller, e.status, wrong_passkey=locale_for(request).say(REFUSALS[type(e)]))
    return handover.after_login(request)
