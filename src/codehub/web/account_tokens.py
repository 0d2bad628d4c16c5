"""The section of `/account` with one's access tokens: what programs of one's own come with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from codehub.auth.model import AccessToken
from codehub.auth.service import FROM_THE_START
from codehub.db.redis import FAILURES, require_writes
from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError, UnavailableError
from codehub.http.access import spend_creation
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Scope
from codehub.web import once
from codehub.web.account_sections import back_to
from codehub.web.forms import Form, Posted
from codehub.web.page_access import may
from codehub.web.rendering import locale_for
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
MOST = 200  # that are shown
LONGEST_LABEL = 100
DAYS = (7, 30, 90, 365)
SCOPES: Mapping[str, frozenset[Scope]] = {
    "read": frozenset({Scope.READ}),
    "write": frozenset({Scope.READ, Scope.WRITE}),
    "admin": frozenset(Scope),
}


@dataclass(frozen=True)
class Token:
    id: str
    label: str
    scope: str  # the widest
    expires: str
    is_over: bool
    used: str | None


@dataclass(frozen=True)
class TokenSection:
    tokens: Sequence[Token]
    made: str | None  # the new one, this once
    missed: bool  # it was shown before
    scopes: Sequence[str]
    days: Sequence[int]
    once: str


async def section(request: Request, caller: Principal) -> TokenSection:
    services, locale = services_of(request), locale_for(request)
    now = services.clock.now()
    found = await services.people.page_tokens(caller, caller.name, after=FROM_THE_START, limit=MOST)

    def shown(token: AccessToken) -> Token:
        used = locale.time(token.last_used_at, now) if token.last_used_at else None
        scope = next(name for name in ("admin", "write", "read") if name in {*token.scopes, "read"})
        return Token(token.id, token.label, scope, locale.time(token.expires_at, now), token.expires_at <= now, used)

    made = await once.take(request, caller)
    grantable = policy.grantable(caller.role) & caller.scopes
    scopes = [name for name, wanted in SCOPES.items() if wanted <= grantable]
    missed = "show" in request.query_params and made is None
    return TokenSection([shown(token) for token in reversed(found)], made, missed, scopes, DAYS, once.number())


@router.post("/do/account/make-token")
async def make(request: Request, caller: Annotated[Principal, may(Action.TOKEN_CREATE)], form: Posted) -> Response:
    services = services_of(request)
    sent = once.Once(services, caller, form)
    if before := await sent.led_to("/account?at=tokens"):
        return RedirectResponse(before, 303)
    try:
        await spend_creation(request, caller, "token")
        await require_writes(services.redis)  # else it would be made, and could not be shown
        label, days = " ".join(form.get("label", "").split()), _days(form)
        if len(label) > LONGEST_LABEL:
            raise InvalidRequestError(f"at most {LONGEST_LABEL} characters", field="label")
        scopes = SCOPES.get(form.get("scope", ""), SCOPES["read"])
        made = await services.people.create_token(caller, caller.name, label=label, scopes=scopes, days=days)
        path = f"/account?at=tokens&show={await once.keep(request, caller, made.secret)}#tokens"
    except (CodeHubError, *FAILURES) as e:
        await sent.failed()
        return back_to("tokens", problem=e if isinstance(e, CodeHubError) else UnavailableError.code)
    await sent.leads_to(path)
    return RedirectResponse(path, 303)


def _days(form: Form) -> int:
    wanted = form.get("days", "")
    if wanted not in {str(days) for days in DAYS}:
        raise InvalidRequestError("choose one of the spans", field="days")
    return int(wanted)


@router.post("/do/account/revoke-token")
async def revoke(request: Request, caller: Annotated[Principal, may(Action.TOKEN_REVOKE)], form: Posted) -> Response:
    try:
        await services_of(request).people.revoke_token(caller, caller.name, form.get("id", ""))
    except NotFoundError:  # a double click
        return back_to("tokens", done="token")
    except CodeHubError as e:
        return back_to("tokens", problem=e)
    return back_to("tokens", done="token")
