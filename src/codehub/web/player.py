"""A learning session's page, and its forms: start or go on, complete a step, open the workspace of a PRACTICE.

A page that has the run (its fence) says so by its address, which a start leads to: each tab has its own, a reload keeps
it, and one that lost it to another device shows that. Every form is a POST answered by 303 to the same page.
"""

import json
from dataclasses import replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from codehub import ids
from codehub.errors import CodeHubError
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions import idempotency, practice
from codehub.sessions.authorize import no_run
from codehub.sessions.blueprint import Step
from codehub.sessions.blueprints import Lesson
from codehub.sessions.errors import CheckFailedError, PracticeFailedError
from codehub.sessions.model import Run, RunStatus
from codehub.sessions.practice import OpenedWorkspace
from codehub.waiting_room.model import LAB
from codehub.web import dashboard, handover, player_view, practice_view, questions, waiting_memory
from codehub.web.attempts import Attempt, Attempts
from codehub.web.forms import Form, Posted, PostedAnswers, back, code_of
from codehub.web.learning_presentation import Screen
from codehub.web.middleware import policy_in_frame_of
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of
from codehub.workspaces.errors import OperationInProgressError

router = APIRouter(include_in_schema=False)
SHOWN_BY_THE_PAGE = {"RUN_TAKEN_OVER", "CHECK_FAILED", "PRACTICE_FAILED", questions.MISSING}
DONE = {Step.CHECK: "answers", Step.PRACTICE: "checks"}
LONGEST_NUMBER = 15  # digits
MARGIN_SECONDS = 15  # that the page waits longer for checks than they may take


@router.get("/sessions/{id}")
async def show(request: Request, caller: Annotated[Principal, may(Action.SESSION_SEE)], id: str) -> Response:  # noqa: A002
    reader = player_view.Reader(request, caller)
    view = await reader.view(id)
    query = request.query_params
    since = query.get("since", "")
    problem, at = problem_of(request, query.get("problem")), query.get("at")
    response = render(
        request,
        "session.html",
        caller=caller,
        v=view,
        here=_address(id, view),
        now=_here(id, view.run.id, view.run.fence) if view.run else "",
        key=ids.new(),
        problem=None if at == "line" else problem,
        line_problem=problem if at == "line" else None,
        at=at,
        done=query.get("done"),
        waking=query.get("waking") == "yes",
        resumed=bool(since) and view.screen is Screen.PLAY and query.get("problem") is None,
        since=_moment(request, since),
        wait_seconds=round(reader.services.settings.practice.wait_seconds) + MARGIN_SECONDS,
        frames=reader.services.origins.frame(handover.host_of(request)) is not None,
        beside=handover.is_framed(request),
    )
    if handover.is_framed(request):  # beside the IDE, in the page around both
        response.headers["content-security-policy"] = policy_in_frame_of("'self'")
    waiting_memory.follow(request, response, caller, LAB, view.line.token if view.line else "")
    return response


def problem_of(request: Request, code: str | None) -> str | None:
    """What was refused, in words. The address only names a code: a link cannot make our page say anything else."""
    if not code or code in SHOWN_BY_THE_PAGE:
        return None
    locale = locale_for(request)
    key = next((k for k in (f"learn_refused_{code.lower()}", f"refused_{code.lower()}") if locale.knows(k)), None)
    return locale.say(key or "refused_other")


def _moment(request: Request, since: str) -> str | None:
    """When the run was worked on before: seconds that `start` put into the address."""
    services = services_of(request)
    now = services.clock.now()
    if not since.isdecimal() or len(since) > LONGEST_NUMBER or int(since) > now.timestamp():
        return None
    return locale_for(request).time(now.fromtimestamp(int(since), now.tzinfo), now)


def _address(id_: str, view: player_view.SessionView) -> str:
    """Of this page, to which a step can be added."""
    if view.screen is Screen.REVIEW:
        return f"/sessions/{id_}?read=yes"
    return _here(id_, view.run.id, view.fence) if view.run and view.fence else f"/sessions/{id_}"


def _here(id_: str, run_id: str, fence: int) -> str:
    return f"/sessions/{id_}?{urlencode({'run': run_id, 'fence': fence})}"


# --- forms ----------------------------------------------------------------------------------------------------------


@router.post("/do/sessions/{id}/start")
async def start(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_START)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """Create or recover. Where an earlier run got somewhere, the page first asks whether to go on from there."""
    page = f"/sessions/{id}"
    before = await player_view.Reader(request, caller).view(id)
    chosen = form.get("anew") == "yes" or form.get("resume_from")
    if before.screen is Screen.ABANDONED and not chosen:
        return RedirectResponse(page, 303)
    try:
        key = idempotency.parse(form.get("key") or None)
        resume_from = form.get("resume_from", "")[:63] or None
        answer = await services_of(request).runs.start(caller, id, key=key, resume_from=resume_from)
    except CodeHubError as e:
        return back(page, problem=code_of(e))
    run = json.loads(answer.body)
    goes_on = before.run is not None and run["step_index"] > 0 and not before.elsewhere
    since = str(int(before.run.last_activity_at.timestamp())) if before.run and goes_on else None
    return back(_here(id, run["id"], run["fence"]), since=since)


@router.post("/do/sessions/{id}/anew")
async def begin_anew(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_ABANDON)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """The run ends by its learner's wish, and another one begins. A crash in between leaves a session to be started."""
    if form.get("sure") != "yes":
        raise HTTPException(400)
    runs = services_of(request).runs
    run, fence, _ = await _named(request, caller, id, form)
    try:
        key = idempotency.parse(form.get("key") or None)
        if run.status is RunStatus.RUNNING:
            await runs.abandon(caller, run.id, fence, None)
        new = json.loads((await runs.start(caller, id, key=key)).body)
    except CodeHubError as e:
        return back(_here(id, run.id, fence), problem=code_of(e))
    return back(_here(id, new["id"], new["fence"]))


@router.post("/do/sessions/{id}/complete")
async def complete(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_WRITE)],
    id: str,  # noqa: A002
    form: PostedAnswers,
) -> Response:
    """Save a step. What was sent and did not do is kept, so that the page shows it as it was, with what is said of it.

    A second click while checks run joins them.
    """
    services = services_of(request)
    run, fence, index = await _named(request, caller, id, form)
    lesson = await services.sessions.lesson(caller, id)
    kind = lesson.steps[index] if index < len(lesson.steps) else None
    asked = lesson.questions(index) if kind is Step.CHECK else ()
    answers = questions.answers_of(asked, form)
    attempts, page = Attempts(services.redis), _here(id, run.id, fence)
    is_next = (run.step_index, run.fence) == (index, fence)
    if is_next and any(questions.is_open(question, answers) for question in asked):
        before = await attempts.of(run.id, index)
        await attempts.note(run.id, index, replace(before, answers=answers))
        return back(page, problem=questions.MISSING)
    try:
        if is_next and kind is Step.PRACTICE and not await _is_ready(request, caller, run, lesson):
            return back(page, waking="yes")
        await services.runs.complete_step(caller, run.id, index, fence, {"answers": answers} if answers else {})
    except CheckFailedError as e:
        await attempts.note(run.id, index, Attempt(answers, e.extra["wrong"], e.extra["feedback"]))
        return back(page, problem=code_of(e))
    except PracticeFailedError as e:
        await attempts.note(run.id, index, Attempt(checks=e.extra["checks"]))
        return back(page, problem=code_of(e))
    except CodeHubError as e:
        if answers:
            await attempts.note(run.id, index, Attempt(answers))
        return back(page, problem=code_of(e))
    return back(page, done=DONE.get(kind) if kind else None)


async def _is_ready(request: Request, caller: Principal, run: Run, lesson: Lesson) -> bool:
    """Can the checks of a PRACTICE be run? Where its workspace is not there, sleeps or lacks the starter files, it is
    asked for by this; the page checks once it runs.
    """
    activity = lesson.activity
    if activity is None or not activity.checks:
        return True
    w = await practice_view.workspace_of(request, caller, run)
    if w and practice.is_running(w) and not activity.files:
        return True
    if w and practice.is_running(w) and await Attempts(services_of(request).redis).files(run.id, w.id) is not None:
        return True
    opened = await _open(request, caller, run, run.fence)
    return opened.files is not None


async def _open(request: Request, caller: Principal, run: Run, fence: int) -> OpenedWorkspace:
    services = services_of(request)
    opened = await dashboard.retry_while_busy(services, lambda: services.practice.open(caller, run.id, fence))
    await _note_files(request, run, opened)
    return opened


async def _note_files(request: Request, run: Run, opened: OpenedWorkspace | None) -> None:
    if opened is None or opened.files is None:
        return
    files = [{"path": file.path, "put": file.put, "name": file.name} for file in opened.files]
    await Attempts(services_of(request).redis).note_files(run.id, opened.workspace.id, files)


@router.post("/do/sessions/{id}/workspace")
async def open_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_WRITE)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """With `then=open`: make or wake it, and lead into it. Otherwise, also by a page itself: put the files there."""
    run, fence, _ = await _named(request, caller, id, form)
    page = _here(id, run.id, fence)
    try:
        if form.get("then") != "open":
            await _note_files(request, run, await services_of(request).practice.put_files(caller, run.id, fence))
            return RedirectResponse(page, 303)
        workspace = (await _open(request, caller, run, fence)).workspace.id
    except CodeHubError as e:
        if not (isinstance(e, OperationInProgressError) and run.workspace_id):
            return back(page, problem=code_of(e), at="workspace")
        workspace = run.workspace_id  # whose page waits for the end of that, however long it takes
    beside = urlencode({"session": id, "run": run.id, "fence": fence})
    return RedirectResponse(f"/open/{workspace}?{beside}", 303)


async def _named(request: Request, caller: Principal, session_id: str, form: Form) -> tuple[Run, int, int]:
    """The run that a form is about, its page's fence, and the step."""
    run = await services_of(request).runs.get(caller, form.get("run", ""))
    if run.session_id != session_id:
        raise no_run(run.id)
    return run, _number(form, "fence"), _number(form, "index")


def _number(form: Form, name: str) -> int:
    text = form.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else 0
