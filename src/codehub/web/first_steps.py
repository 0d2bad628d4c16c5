"""The first steps after the first login of a new installation: a way in, a workspace, a course to try, a class.

Shown to the first admin until they say that it is enough (`auth.first_steps`). What is done is read from what there is
(`first_steps_view`), so a second tab, the back button and a step that was done elsewhere all show the same. Forms are
ordinary POSTs answered by 303.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from codehub.errors import CodeHubError
from codehub.http.access import spend_creation
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import (
    account_passkeys,
    account_password,
    classes,
    classes_view,
    dashboard,
    dashboard_view,
    first_steps_view,
    learning_view,
    once,
)
from codehub.web import first_steps_rules as rules
from codehub.web.account_sections import said_of
from codehub.web.first_steps_rules import Step
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.rendering import render
from codehub.web.services import services_of
from codehub.workspaces.admission import admitted

router = APIRouter(include_in_schema=False)
LONGEST = 100


# --- pages ----------------------------------------------------------------------------------------------------------


@router.get(rules.PAGE)
async def go_on(request: Request, caller: Annotated[Principal, may(Action.USER_SEE)]) -> Response:
    if not await services_of(request).first_steps.is_open(caller):
        return RedirectResponse("/", 303)
    return RedirectResponse(rules.first_open((await first_steps_view.find(request, caller)).done), 303)


@router.get(rules.PAGE + "/{step}")
async def show(request: Request, caller: Annotated[Principal, may(Action.USER_SEE)], step: str) -> Response:
    """One step, or the end. Who has said that it is enough finds the start page."""
    if f"{rules.PAGE}/{step}" != rules.END and step not in set(Step):
        raise HTTPException(404)
    if not await services_of(request).first_steps.is_open(caller):
        return RedirectResponse("/", 303)
    found = await first_steps_view.find(request, caller)
    here = Step(step) if step in set(Step) else None
    reader = dashboard_view.Reader(request, caller)
    shown: dict[str, Any] = {
        "step": step,
        "track": rules.track(found.done, here),
        "done": here in found.done if here else rules.is_over(found.done),
        "onward": rules.after(here, found.done) if here else "/",
        "card": reader.card(found.workspace) if found.workspace else None,
        "found": found,
        "problem": reader.problem(),
        "only_here": classes_view.Reader(request, caller).only_here(),
        "once": once.number(),
    }
    if here and here not in found.done:
        shown |= await _asked(request, caller, here)
    return render(request, "first_steps.html", caller=caller, **shown)


async def _asked(request: Request, caller: Principal, step: Step) -> dict[str, Any]:
    """What the form of a step needs."""
    typed = request.query_params
    match step:
        case Step.WAY_IN:
            section = await account_password.section(request, caller)
            return {
                "s": section,
                "adding": await account_passkeys.section(request, caller),
                "said": said_of(request),
            }
        case Step.WORKSPACE:
            reader = dashboard_view.Reader(request, caller)
            name = typed.get("name") or reader.new_name([])
            git = dashboard.git_typed(request)
            return {"kinds": await reader.kinds(), "chosen": typed.get("template"), "name": name[:LONGEST], "git": git}
        case Step.COURSE:
            reader_of_courses = learning_view.Reader(request, caller)
            return {"courses": await reader_of_courses.offered()}
        case Step.CLASS:
            return {"title": typed.get("title", "")[:LONGEST]}


# --- forms ----------------------------------------------------------------------------------------------------------


@router.post("/do/welcome/workspace")
async def make_workspace(
    request: Request, caller: Annotated[Principal, may(Action.WORKSPACE_CREATE)], form: Posted
) -> Response:
    """It starts while the person goes on."""
    services, sent = services_of(request), once.Once(services_of(request), caller, form)
    if before := await sent.led_to(Step.WORKSPACE.path):
        return RedirectResponse(before, 303)
    try:
        new = dashboard.new_workspace(form)
        await spend_creation(request, caller, "workspace")
        admitted(await services.workspaces.create(caller, new))
    except CodeHubError as e:
        await sent.failed()
        return back(Step.WORKSPACE.path, problem=dashboard.problem_of(e), **dashboard.typed(form))
    return await _onward(request, caller, Step.WORKSPACE, sent)


@router.post("/do/welcome/course")
async def take_course(
    request: Request, caller: Annotated[Principal, may(Action.COURSE_TAKE)], form: Posted
) -> Response:
    """A second click finds the plan that the first one made."""
    try:
        await spend_creation(request, caller, "plan")
        await services_of(request).courses.take_up(caller, form.get("course", ""), None)
    except CodeHubError as e:
        return back(Step.COURSE.path, problem=e.code)
    return await _onward(request, caller, Step.COURSE)


@router.post("/do/welcome/class")
async def make_class(
    request: Request, caller: Annotated[Principal, may(Action.CLASS_CREATE)], form: Posted
) -> Response:
    """With its invitation; should only the class have been made, the same step asks for the rest."""
    sent = once.Once(services_of(request), caller, form)
    if before := await sent.led_to(Step.CLASS.path):
        return RedirectResponse(before, 303)
    try:
        class_id = form.get("class") or await _class(request, caller, form)
        await spend_creation(request, caller, "invitation")
        await services_of(request).invitations.create(caller, class_id)
    except CodeHubError as e:
        await sent.failed()
        return back(Step.CLASS.path, problem=classes.problem_code(e), title=form.get("title", "")[:LONGEST])
    await sent.leads_to(Step.CLASS.path)
    return RedirectResponse(Step.CLASS.path, 303)  # which shows the code


async def _class(request: Request, caller: Principal, form: Form) -> str:
    title = classes.title_of(form)
    await spend_creation(request, caller, "class")
    return (await services_of(request).classes.create(caller, title)).id


@router.post("/do/welcome/dismiss")
async def dismiss(request: Request, caller: Annotated[Principal, may(Action.USER_PROFILE)]) -> Response:
    await services_of(request).first_steps.dismiss(caller)
    return RedirectResponse("/", 303)


async def _onward(request: Request, caller: Principal, step: Step, sent: once.Once | None = None) -> Response:
    path = rules.after(step, (await first_steps_view.find(request, caller)).done)
    if sent:
        await sent.leads_to(path)
    return RedirectResponse(path, 303)
