"""`/join`: following an invitation, in three steps that a telephone shows without scrolling: code, who one is, in.

From a QR code the first is done. Everything works without JavaScript, except for a passkey as the way in, which
`static/passkeys.js` offers where it can. What was refused is answered by the page itself and not by a redirect: what
was typed must not get into an address, which is logged.
"""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from codehub import ids, names
from codehub.auth import password_rules
from codehub.classes import codes, invitations_api, romanize
from codehub.classes.joining import NewLearner
from codehub.classes.model import SchoolClass
from codehub.errors import CodeHubError, InvalidRequestError, PasswordRefusedError, TooManyTriesError
from codehub.http.access import names as naming
from codehub.http.access import set_cookie
from codehub.passkeys import ceremony
from codehub.passkeys.errors import (
    PasskeyChallengeError,
    PasskeyExistsError,
    PasskeyOriginError,
    PasskeyRefusedError,
    PasskeysUnavailableError,
)
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import handover
from codehub.web.forms import Form, Posted
from codehub.web.login import Visitor, browser_of
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
LONGEST = 100  # characters that are taken of what was typed
FIELDS = {"name", "display_name", "password"}
SECRET_LENGTH = len(ids.new_secret())
REFUSALS: dict[type[CodeHubError], str] = {
    PasskeyChallengeError: "passkeys_again",
    PasskeyExistsError: "passkeys_exists",
    PasskeyRefusedError: "passkeys_failed",
    PasskeyOriginError: "passkeys_failed",
    PasskeysUnavailableError: "passkeys_failed",
}


@router.get("/join", dependencies=[naming(Action.PUBLIC_JOIN)])
async def ask_code(request: Request, caller: Visitor) -> Response:
    return _code_page(request, caller, 200)


@router.post("/join", dependencies=[naming(Action.PUBLIC_JOIN)])
async def take_code(request: Request, caller: Visitor, form: Posted) -> Response:
    typed = form.get("code", "")
    code = codes.read(typed)
    return RedirectResponse(f"/join/{code}", 303) if code else _code_page(request, caller, 404, typed, wrong=True)


@router.get("/join/{code}", dependencies=[naming(Action.PUBLIC_JOIN)])
async def ask_who(request: Request, caller: Visitor, code: str) -> Response:
    try:
        found = await services_of(request).joining.class_of(code, request.state.address, caller)
    except CodeHubError as e:
        return _code_page(request, caller, e.status, code, problem=_words(request, e))
    return await _who_page(request, caller, code, found)


@router.post("/join/{code}", dependencies=[naming(Action.PUBLIC_JOIN)])
async def join(request: Request, caller: Visitor, code: str, form: Posted) -> Response:
    services = services_of(request)
    try:
        if await _is_anothers(request, caller, form):
            found = await services.joining.class_of(code, request.state.address, caller)
            return await _who_page(request, caller, code, found, 409)
        if form.get("as") and caller:
            joined = await services.joining.join(caller, code)
        else:
            joined = await services.joining.join_new(
                code, await _read(request, code, form), browser_of(request, caller)
            )
    except CodeHubError as e:
        return await _refused(request, caller, code, form, e)
    if joined.cookie:
        set_cookie(request, joined.cookie)
    done = "came" if not joined.cookie else "joined-passkey" if _by_passkey(form) else "joined"
    response = RedirectResponse(f"/classes/{joined.school_class.id}?done={done}", 303)
    handover.forget_next(request, response)
    return response


@router.get("/join/{code}/login", dependencies=[naming(Action.PUBLIC_JOIN)])
async def log_in_first(request: Request, code: str) -> Response:
    """For one who has an account: back to the invitation after that."""
    return handover.to_page_after_login(request, f"/join/{codes.read(code) or ''}")


@router.post("/join/{code}/log-out", dependencies=[naming(Action.PUBLIC_JOIN)])
async def log_out(request: Request, caller: Visitor, code: str) -> Response:
    """Another person sits at this computer now, and follows the invitation."""
    if caller:
        await services_of(request).people.log_out(caller)
    set_cookie(request, "")
    return RedirectResponse(f"/join/{codes.read(code) or ''}", 303)


async def _read(request: Request, code: str, form: Form) -> NewLearner:
    new = _who(form)
    if not _by_passkey(form):
        return replace(new, password=form.get("password", ""))
    sent = invitations_api.sent_passkey(request, form.get("credential", ""))
    if not sent.credential:
        # The browser could not get a question. Asked once more, what is wrong shows, if it is of what was typed.
        await services_of(request).joining.ask_passkey(code, new, sent.asker, request.state.address)
        raise PasskeyRefusedError(ceremony.UNSIGNED)
    return replace(new, passkey=sent)


def _by_passkey(form: Form) -> bool:
    return form.get("way") == "passkey"


def _who(form: Form) -> NewLearner:
    name = form.get("name", "")[:LONGEST].strip().casefold()
    display_name = names.composed(" ".join(form.get("display_name", "")[: LONGEST + 1].split()))
    if not ids.is_label(name):
        raise InvalidRequestError("1 to 63 of a–z, 0–9 and -", field="name")
    if names.complaint(display_name) or len(display_name) > LONGEST:
        raise InvalidRequestError("has a character that cannot be seen", field="display_name")
    once = form.get("once", "")
    return NewLearner(name, display_name, once=once if len(once) == SECRET_LENGTH else None)


async def _is_anothers(request: Request, caller: Principal | None, form: Form) -> bool:
    """Did another person log in with this browser since the page was shown? They neither join nor lose their session
    unasked. The form of a new person may be sent again by a browser that it has logged in as that person already.
    """
    session, once = _session(caller), form.get("once", "")
    if not session or form.get("as") == session:
        return False
    again = len(once) == SECRET_LENGTH and await services_of(request).joining.made_by(once) == session
    return bool(form.get("as")) or not again


def _session(caller: Principal | None) -> str:
    return caller.name if caller and caller.session_id else ""


async def _refused(request: Request, caller: Principal | None, code: str, form: Form, error: CodeHubError) -> Response:
    """The same page with what was typed, and what to do; a code that is over leads back to the first step."""
    name, field = form.get("name", "")[:LONGEST], _field(error)
    suggestion = error.extra.get("suggestion") or (romanize.user_name(name) if field == "name" else None)
    words = _words(request, error, name, suggestion)
    try:
        if error.status == HTTPStatus.NOT_FOUND:
            raise error
        found = await services_of(request).joining.class_of(code, request.state.address, caller)
    except CodeHubError:
        return _code_page(request, caller, error.status, code, problem=words)
    typed = {
        "name": suggestion or name,
        "display_name": form.get("display_name", "")[:LONGEST],
        "way": "passkey" if _by_passkey(form) else "",
    }
    return await _who_page(request, caller, code, found, error.status, wrong={field: words}, typed=typed)


def _field(error: CodeHubError) -> str:
    if error.code == "USER_EXISTS":
        return "name"
    field = str((error.extra.get("errors") or [{"field": "form"}])[0]["field"])
    return field if field in FIELDS else "form"


def _words(request: Request, error: CodeHubError, name: str = "", suggestion: str | None = None) -> str:
    locale = locale_for(request)
    match error:
        case TooManyTriesError():
            return locale.say("join_slow", wait=locale.span(error.retry_after or 1))
        case PasswordRefusedError():
            return locale.say(f"join_{error.reason.lower()}", n=password_rules.SHORTEST)
    if said := REFUSALS.get(type(error)):
        return locale.say(said)
    key = f"join_{_field(error)}_{error.code}".lower()
    if suggestion and locale.knows(f"{key}_like"):
        key = f"{key}_like"
    return locale.say(key if locale.knows(key) else "refused_other", name=name, suggestion=suggestion or "")


def _code_page(
    request: Request,
    caller: Principal | None,
    status: int,
    typed: str = "",
    *,
    wrong: bool = False,
    problem: str | None = None,
) -> Response:
    problem = locale_for(request).say("join_form_invitation_not_found") if wrong else problem
    return render(request, "join_code.html", status, caller=caller, typed=typed[:LONGEST], problem=problem)


async def _is_in(request: Request, caller: Principal | None, found: SchoolClass) -> bool:
    """Who looks at the wall once more has nothing to join."""
    if caller is None or not policy.may_attend(caller.role):
        return False
    try:
        await services_of(request).classes.get(caller, found.id)
    except CodeHubError:
        return False
    return True


async def _who_page(
    request: Request,
    caller: Principal | None,
    code: str,
    found: SchoolClass,
    status: int = 200,
    **said: Any,
) -> Response:
    shown = {"wrong": {}, "typed": {"name": "", "display_name": "", "way": ""}, **said}
    return render(
        request,
        "join.html",
        status,
        caller=caller,
        before=_session(caller),
        attends=caller is not None and policy.may_attend(caller.role),
        is_in=await _is_in(request, caller, found),
        code=codes.read(code) or "",
        k=found,
        teachers=await services_of(request).classes.shown_teachers(found),
        once=ids.new_secret(),
        shortest=password_rules.SHORTEST,
        passkey_place=services_of(request).passkeys.place(handover.host_of(request)),
        **shown,
    )
