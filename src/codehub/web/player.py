"""A learning session's page, and its forms: start or go on, complete a step, open the workspace of a PRACTICE.

A page that has the run (its fence) says so by its address, which a start leads to: each tab has its own, a reload keeps
it, and one that lost it to another device shows that. Every form is a POST answered by 303 to the same page.
"""

import json
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from codehub import ids
from codehub.errors import CodeHubError
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions import idempotency
from codehub.sessions.authorize import no_run
from codehub.sessions.blueprint import Question, Step
from codehub.sessions.errors import CheckFailedError, PracticeFailedError
from codehub.sessions.model import Run
from codehub.web import player_view
from codehub.web.attempts import Attempt, Attempts
from codehub.web.forms import Form, Posted, PostedAnswers, back
from codehub.web.learning_presentation import Screen
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
SHOWN_BY_THE_PAGE = {"RUN_TAKEN_OVER", "CHECK_FAILED", "PRACTICE_FAILED"}
DONE = {Step.CHECK: "answers", Step.PRACTICE: "checks"}
LONGEST_NUMBER = 15  # digits
MARGIN_SECONDS = 15  # that the page waits longer for checks than they may take


@router.get("/sessions/{id}")
async def show(request: Request, caller: Annotated[Principal, may(Action.SESSION_SEE)], id: str) -> Response:  # noqa: A002
    reader = player_view.Reader(request, caller)
    view = await reader.view(id)
    query = request.query_params
    since = query.get("since", "")
    return render(
        request,
        "session.html",
        caller=caller,
        v=view,
        here=_here(id, view.run.id, view.fence) if view.run and view.fence else f"/sessions/{id}",
        key=ids.new(),
        problem=problem_of(request, query.get("problem")),
        done=query.get("done"),
        resumed=bool(since) and view.screen is Screen.PLAY and query.get("problem") is None,
        since=_moment(request, since),
        wait_seconds=round(reader.services.settings.practice.wait_seconds) + MARGIN_SECONDS,
    )


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
        return back(page, problem=e.code)
    run = json.loads(answer.body)
    goes_on = before.run is not None and run["step_index"] > 0 and not before.elsewhere
    since = str(int(before.run.last_activity_at.timestamp())) if before.run and goes_on else None
    return back(_here(id, run["id"], run["fence"]), since=since)


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
    answers = answers_of(lesson.questions(index), form) if kind is Step.CHECK else {}
    attempts, page = Attempts(services.redis), _here(id, run.id, fence)
    try:
        await services.runs.complete_step(caller, run.id, index, fence, {"answers": answers} if answers else {})
    except CheckFailedError as e:
        await attempts.note(run.id, index, Attempt(answers, e.extra["wrong"], e.extra["feedback"]))
        return back(page, problem=e.code)
    except PracticeFailedError as e:
        await attempts.note(run.id, index, Attempt(checks=e.extra["checks"]))
        return back(page, problem=e.code)
    except CodeHubError as e:
        if answers:
            await attempts.note(run.id, index, Attempt(answers))
        return back(page, problem=e.code)
    return back(page, done=DONE.get(kind) if kind else None)


@router.post("/do/sessions/{id}/workspace")
async def open_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_WRITE)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """Make or wake it; once it runs, the starter files are put into it. `then=open` leads into it."""
    services = services_of(request)
    run, fence, _ = await _named(request, caller, id, form)
    page = _here(id, run.id, fence)
    try:
        opened = await services.practice.open(caller, run.id, fence)
    except CodeHubError as e:
        return back(page, problem=e.code)
    if opened.files is not None:
        files = [{"path": file.path, "put": file.put, "name": file.name} for file in opened.files]
        await Attempts(services.redis).note_files(run.id, opened.workspace.id, files)
    return RedirectResponse(f"/w/{opened.workspace.id}/" if form.get("then") == "open" else page, 303)


async def _named(request: Request, caller: Principal, session_id: str, form: Form) -> tuple[Run, int, int]:
    """The run that a form is about, its page's fence, and the step."""
    run = await services_of(request).runs.get(caller, form.get("run", ""))
    if run.session_id != session_id:
        raise no_run(run.id)
    return run, _number(form, "fence"), _number(form, "index")


def _number(form: Form, name: str) -> int:
    text = form.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else 0


def answers_of(questions: tuple[Question, ...], form: Form) -> dict[str, Any]:
    """What the inputs of the page say, by question id; what was left open is not in it."""
    answers: dict[str, Any] = {}
    for i, question in enumerate(questions):
        if question.kind == "multiple":
            fields = (form.get(player_view.field_of(i, j, question)) for j in range(len(question.choices)))
            answers[question.id] = [chosen for chosen in fields if chosen is not None]
        elif (given := form.get(f"q{i}")) is not None:
            answers[question.id] = given
    return answers
