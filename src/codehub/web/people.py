"""`/people`: who has an account here. For admins: finding people, adding them, and what becomes of their accounts.

Forms are ordinary POSTs below `/do/people/`, answered by 303. A login link is shown one time, to be copied (`once`).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from codehub.auth.model import Person
from codehub.auth.profiles import Profile
from codehub.auth.service import FIRST_ADMIN
from codehub.db.redis import FAILURES, require_writes
from codehub.errors import CodeHubError, InvalidRequestError, UnavailableError
from codehub.http.access import base_url
from codehub.i18n.locales import Locale
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Role
from codehub.web import once
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import Services, services_of

router = APIRouter(include_in_schema=False)
PAGE = 50
LONGEST_SEARCH = 100
STATES: Mapping[str, bool | None] = {"": None, "active": True, "inactive": False}
FIELDS = {"name": "PERSON_NAME", "display_name": "DISPLAY_NAME", "role": "PERSON_ROLE", "sure": "PERSON_SURE"}


@dataclass(frozen=True)
class Row:
    person: Person
    seen: str | None
    may_go: bool  # can be removed, as far as that is known before it is tried
    at: bool  # what was just done, or refused, is about them


@router.get("/people")
async def show(request: Request, caller: Annotated[Principal, may(Action.USER_LIST)]) -> Response:
    services, locale, query = services_of(request), locale_for(request), request.query_params
    after = query.get("cursor", "")[:63].replace("\0", "")
    found = await services.people.page_users(caller, after=after, limit=PAGE + 1, **_wanted(query))
    at = query.get("at", "")[:63]
    now = services.clock.now()
    rows = [
        Row(
            person,
            locale.time(person.last_login_at, now) if person.last_login_at else None,
            person.name != FIRST_ADMIN,
            person.name == at,
        )
        for person in found[:PAGE]
    ]
    kept = {name: value for name in ("q", "role", "state") if (value := query.get(name))}
    link = await once.take(request, caller)
    return render(
        request,
        "people.html",
        caller=caller,
        rows=rows,
        kept=kept,
        chosen={name: query.get(name, "")[:LONGEST_SEARCH] for name in ("q", "role", "state")},
        states=list(STATES),
        roles=list(Role),
        more=f"/people?{urlencode({**kept, 'cursor': found[PAGE - 1].name})}" if len(found) > PAGE else None,
        is_first="cursor" not in query,
        at=at,
        link=link,
        missed="show" in query and link is None,
        hours=services.settings.auth.login_link_seconds // 3600,
        problem=_said(locale, "people_refused", query.get("problem")),
        done=_said(locale, "people_done", query.get("done"), fallback=False),
        typed={name: query.get(name, "")[:100] for name in ("name", "display_name", "new_role")},
        once=once.number(),
    )


def _wanted(query: Mapping[str, str]) -> dict[str, Any]:
    """What nobody can have chosen is left open."""
    role = query.get("role", "")
    return {
        "text": " ".join(query.get("q", "")[:LONGEST_SEARCH].replace("\0", "").split()),
        "role": Role(role) if role in set(Role) else None,
        "active": STATES.get(query.get("state", "")),
    }


def _said(locale: Locale, part: str, code: str | None, *, fallback: bool = True) -> str | None:
    """The address only names a code: a link cannot make our page say anything else."""
    if not code:
        return None
    keys = [f"{part}_{code.lower()}", *([f"refused_{code.lower()}", "refused_other"] if fallback else [])]
    key = next((key for key in keys if locale.knows(key)), None)
    return locale.say(key) if key else None


# --- forms ----------------------------------------------------------------------------------------------------------


@router.post("/do/people/add")
async def add(request: Request, caller: Annotated[Principal, may(Action.USER_CREATE)], form: Posted) -> Response:
    """And make their login link, which the page then shows. What was typed comes back when it is refused."""
    services, sent = services_of(request), once.Once(services_of(request), caller, form)
    if before := await sent.led_to("/people"):
        return RedirectResponse(before, 303)
    name, called = form.get("name", "").strip(), form.get("display_name", "")
    try:
        await require_writes(services.redis)  # else a link would be made that could not be shown
        person = await services.people.create_user(caller, name, _role(form), called)
        path = await _link(request, caller, person.name)
    except (CodeHubError, *FAILURES) as e:
        await sent.failed()
        typed = {"name": name[:63], "display_name": called[:100], "new_role": form.get("role", "")[:10]}
        return back("/people", problem=_code(e), **typed)
    await sent.leads_to(path)
    return RedirectResponse(path, 303)


async def _link(request: Request, caller: Principal, name: str) -> str:
    """The page that shows a new link of theirs."""
    link = await services_of(request).people.make_login_link(caller, name)
    key = await once.keep(request, caller, link.url(base_url(request)))
    return f"/people?{urlencode({'at': name, 'q': name, 'show': key})}"


def _role(form: Form) -> Role:
    wanted = form.get("role", "")
    if wanted not in set(Role):
        raise InvalidRequestError("choose one of the roles", field="role")
    return Role(wanted)


def _code(error: Exception) -> str:
    if not isinstance(error, CodeHubError):
        return UnavailableError.code
    errors = error.extra.get("errors") or [{"field": ""}]
    return FIELDS.get(errors[0]["field"], error.code)


@router.post("/do/people/{name}/link")
async def new_link(
    request: Request, caller: Annotated[Principal, may(Action.LOGIN_LINK_CREATE)], name: str
) -> Response:
    try:
        await require_writes(services_of(request).redis)
        return RedirectResponse(await _link(request, caller, name), 303)
    except (CodeHubError, *FAILURES) as e:
        return back("/people", at=name[:63], problem=_code(e))


Act = Callable[[Services, Principal, str, Form], Awaitable[object]]


async def _change_role(services: Services, caller: Principal, name: str, form: Form) -> None:
    await services.people.change_user(caller, name, role=_role(form), active=None)


async def _call(services: Services, caller: Principal, name: str, form: Form) -> None:
    await services.profiles.change(caller, name, Profile(display_name=form.get("display_name", "")))


async def _activate(services: Services, caller: Principal, name: str, _form: Form) -> None:
    await services.people.change_user(caller, name, role=None, active=True)


async def _deactivate(services: Services, caller: Principal, name: str, _form: Form) -> None:
    await services.people.change_user(caller, name, role=None, active=False)


async def _remove(services: Services, caller: Principal, name: str, form: Form) -> None:
    """It cannot be taken back, so it asks."""
    if form.get("sure") != "yes":
        raise InvalidRequestError("say that you are sure", field="sure")
    await services.removal.remove(caller, name)


VERBS: Mapping[str, tuple[Action, Act]] = {
    "role": (Action.USER_CHANGE, _change_role),
    "called": (Action.USER_CHANGE, _call),
    "activate": (Action.USER_CHANGE, _activate),
    "deactivate": (Action.USER_CHANGE, _deactivate),
    "remove": (Action.USER_REMOVE, _remove),
}


@router.post("/do/people/{name}/{verb}")
async def do(
    request: Request, caller: Annotated[Principal, may(Action.USER_CHANGE)], name: str, verb: str, form: Posted
) -> Response:
    if verb not in VERBS:
        raise HTTPException(404)
    action, act = VERBS[verb]
    policy.require(caller, action)
    path = f"/people?{urlencode({'q': name[:63]})}" if verb != "remove" else "/people"
    try:
        await act(services_of(request), caller, name, form)
    except CodeHubError as e:
        return back(f"/people?{urlencode({'q': name[:63]})}", at=name[:63], problem=_code(e))
    return back(path, at=name[:63] if verb != "remove" else None, done=verb)
