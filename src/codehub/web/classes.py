"""Classes: those that one teaches or attends, one of them, and its code for the wall; and the forms of these pages.

Forms are ordinary POSTs answered by 303, as on the dashboard; `static/codehub.js` keeps the pages live.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from codehub import names
from codehub.classes.errors import InvitationNotFoundError
from codehub.classes.invitations import MOST_USES
from codehub.classes.model import MemberRole
from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError
from codehub.http import paging
from codehub.http.access import spend_creation
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import classes_view, learning_view, once, schedules_view
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.rendering import render
from codehub.web.services import Services, services_of

router = APIRouter(include_in_schema=False)
LONGEST_TITLE = 100
MOST = 200
LONGEST_NUMBER = 6  # digits
# What a form offers; hours.
VALIDITIES = {"hour": 3600, "day": 86400, "week": 7 * 86400, "term": 120 * 86400}


@router.get("/classes")
async def show_all(request: Request, caller: Annotated[Principal, may(Action.CLASS_LIST)]) -> Response:
    everybodys = "all" in request.query_params and policy.allows(caller, Action.CLASS_LIST_ALL)
    found = await services_of(request).classes.page(
        caller, everybodys=everybodys, archived=True, after=paging.place(None), limit=MOST
    )
    return render(
        request,
        "classes.html",
        caller=caller,
        classes=[k for k in found if k.archived_at is None],
        called=await services_of(request).people.called({name for k in found for name in k.teachers}),
        archived=[k for k in found if k.archived_at is not None],
        may_make=policy.allows(caller, Action.CLASS_CREATE),
        sees_all=policy.allows(caller, Action.CLASS_LIST_ALL),
        everybodys=everybodys,
        title=request.query_params.get("title", "")[:LONGEST_TITLE],
        problem=classes_view.problem_of(request),
        done=request.query_params.get("done"),
        once=once.number(),
    )


@router.get("/classes/{id}")
async def show_one(request: Request, caller: Annotated[Principal, may(Action.CLASS_SEE)], id: str) -> Response:  # noqa: A002
    reader = classes_view.Reader(request, caller)
    found = await services_of(request).classes.get(caller, id)
    shared: dict[str, Any] = {
        "caller": caller,
        "k": found,
        "done": request.query_params.get("done"),
        "at": request.query_params.get("at"),
        "who": request.query_params.get("who"),
        "problem": classes_view.problem_of(request),
        "typed": {name: request.query_params.get(name, "")[:LONGEST_TITLE] for name in TYPED},
        "once": once.number(),
    }
    if not await reader.manages(id):
        teachers = await services_of(request).classes.shown_teachers(found)
        going_on = await learning_view.Reader(request, caller).going_on()
        return render(request, "class_learner.html", **shared, teachers=teachers, going_on=going_on)
    schedules = await schedules_view.section(request, caller, id)
    return render(
        request, "class.html", **shared, v=await reader.board(found), validities=VALIDITIES, schedules=schedules
    )


@router.get("/classes/{id}/wall")
async def show_wall(request: Request, caller: Annotated[Principal, may(Action.CLASS_INVITATIONS)], id: str) -> Response:  # noqa: A002
    """For a projector: the code as large as it gets."""
    reader = classes_view.Reader(request, caller)
    found = await services_of(request).classes.get(caller, id)
    invitation = await reader.invitation(id, request.query_params.get("invitation"))
    return render(request, "class_wall.html", caller=caller, k=found, i=invitation, only_here=reader.only_here())


@router.post("/do/classes")
async def make(request: Request, caller: Annotated[Principal, may(Action.CLASS_CREATE)], form: Posted) -> Response:
    sent = once.Once(services_of(request), caller, form)
    if before := await sent.led_to("/classes"):
        return RedirectResponse(before, 303)
    try:
        title = title_of(form)
        await spend_creation(request, caller, "class")
        made = await services_of(request).classes.create(caller, title)
    except CodeHubError as e:
        await sent.failed()
        return back("/classes", problem=problem_code(e), title=form.get("title", "")[:LONGEST_TITLE])
    await sent.leads_to(f"/classes/{made.id}")
    return back(f"/classes/{made.id}")


@router.post("/do/classes/{id}/{verb}")
async def do(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SEE)],  # the service asks for more
    id: str,  # noqa: A002
    verb: str,
    form: Posted,
) -> Response:
    if verb not in VERBS:
        raise HTTPException(404)
    policy.require_scope(caller, Action.CLASS_CHANGE)
    page, sent = f"/classes/{id}", once.Once(services_of(request), caller, form)
    if before := await sent.led_to(page):
        return RedirectResponse(before, 303)
    try:
        if verb in MAKES:
            await spend_creation(request, caller, MAKES[verb])
        who = await VERBS[verb](services_of(request), caller, id, form)
    except InvitationNotFoundError:
        who = None  # it is over already
    except CodeHubError as e:
        await sent.failed()
        typed = {name: form.get(name, "")[:LONGEST_TITLE] for name in TYPED}
        return back(page, problem=problem_code(e), at=verb, **typed)
    if verb == "delete":
        return back("/classes", done="deleted")
    if verb == "remove" and policy.is_self(caller, form.get("name", "")):
        return back("/classes", done="left")
    answer = back(page, done=verb if verb in SAID else None, who=who)
    await sent.leads_to(answer.headers["location"])
    return answer


async def _rename(services: Services, caller: Principal, id_: str, form: Form) -> None:
    await services.classes.change(caller, id_, title=title_of(form))


def _archive(*, archived: bool) -> "Act":
    async def act(services: Services, caller: Principal, id_: str, _form: Form) -> None:
        await services.classes.change(caller, id_, archived=archived)

    return act


async def _delete(services: Services, caller: Principal, id_: str, form: Form) -> None:
    """It cannot be undone, so it asks."""
    if form.get("sure") != "yes":
        raise InvalidRequestError("say that you are sure", field="sure")
    await services.classes.delete(caller, id_)


def _add(role: MemberRole) -> "Act":
    async def act(services: Services, caller: Principal, id_: str, form: Form) -> str:
        name = form.get("name", "").strip().casefold()
        try:
            await services.classes.add_member(caller, id_, name, role)
        except NotFoundError as e:
            if e.code == NotFoundError.code:  # the class is there, so it is the person who is not
                raise InvalidRequestError("there is no user of that name", field="user") from e
            raise
        return name

    return act


async def _remove(services: Services, caller: Principal, id_: str, form: Form) -> None:
    try:
        await services.classes.remove_member(caller, id_, form.get("name", ""))
    except NotFoundError as e:
        if e.code != NotFoundError.code:  # the class is there, so it is the person who is out already
            raise


async def _person(services: Services, caller: Principal, id_: str, form: Form) -> str:
    display_name = names.composed(" ".join(form.get("display_name", "").split()))
    if not display_name or len(display_name) > LONGEST_TITLE or names.complaint(display_name):
        raise InvalidRequestError("a name needs 1 to 100 characters, all of which can be seen", field="title")
    name = form.get("name", "").strip().casefold() or None
    return await services.importing.make_person(caller, id_, display_name, name)


async def _invite(services: Services, caller: Principal, id_: str, form: Form) -> None:
    seconds, typed = VALIDITIES.get(form.get("valid", ""), VALIDITIES["week"]), form.get("max_uses", "").strip()
    number = int(typed) if typed.isascii() and typed.isdigit() and len(typed) <= LONGEST_NUMBER else None
    if typed and not (number and number <= MOST_USES):
        raise InvalidRequestError(f"must be a whole number from 1 to {MOST_USES}", field="max_uses")
    await services.invitations.create(caller, id_, seconds=seconds, max_uses=number)


async def _revoke(services: Services, caller: Principal, id_: str, form: Form) -> None:
    await services.invitations.revoke(caller, id_, form.get("invitation", ""))


Act = Callable[[Services, Principal, str, Form], Awaitable[str | None]]  # returns who it was about
VERBS: Mapping[str, Act] = {
    "rename": _rename,
    "archive": _archive(archived=True),
    "unarchive": _archive(archived=False),
    "delete": _delete,
    "add": _add(MemberRole.LEARNER),
    "teacher": _add(MemberRole.TEACHER),
    "remove": _remove,
    "person": _person,
    "invite": _invite,
    "revoke": _revoke,
}
MAKES = {"person": "person", "invite": "invitation"}  # these are counted, as those of the API are
SAID = {"archive", "rename", "add", "teacher", "remove", "person"}
TYPED = ("title", "name", "display_name", "valid", "max_uses")  # what comes back when a form is refused


def title_of(form: Form) -> str:
    title = names.composed(form.get("title", "").strip())
    if not title or len(title) > LONGEST_TITLE or names.complaint(title):
        raise InvalidRequestError("a title needs 1 to 100 characters, all of which can be seen", field="title")
    return title


def problem_code(error: CodeHubError) -> str:
    """What `refused_…` of the texts is about: the wrong field where there is one."""
    errors = error.extra.get("errors") or [{"field": ""}]
    fields = {"title": "NAME", "user": "NOBODY", "max_uses": "INVITATION_USES", "name": "USER_NAME"}
    return fields.get(errors[0]["field"], error.code)
