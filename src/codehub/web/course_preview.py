"""A course as its learners would see it, for its owner and admins: read only, and nothing of it is a run.

Of a course that is saved, and of one that is not yet. What learners do not get before it was checked (answers and
commands) is shown apart, to the author alone.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import Response

from codehub.courses.errors import CourseNotFoundError, DraftNotFoundError
from codehub.courses.source import CourseSession, Source
from codehub.i18n.locales import Locale
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions.blueprint import Check, Question, Step, share
from codehub.web import course_import, questions
from codehub.web import learning_presentation as presentation
from codehub.web.attempts import NOTHING
from codehub.web.course import source_of
from codehub.web.forms import back
from codehub.web.page_access import may
from codehub.web.player_view import StepView
from codehub.web.practice_view import html
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
T = TypeVar("T")
LONGEST_NUMBER = 7  # digits


@dataclass(frozen=True)
class Answered:
    """A question with what its author wrote for it."""

    number: int
    answers: Sequence[str]
    feedback: Sequence[tuple[str, Markup]]


@dataclass(frozen=True)
class CheckView:
    title: str
    command: str
    seconds: int
    hint: Markup | None


@dataclass(frozen=True)
class PreviewView:
    """What the templates of a session's page read, as far as there is no run."""

    title: str
    key: str
    lang: str
    number: int
    sessions: Sequence[CourseSession]
    track: presentation.Track
    step: StepView
    answered: Sequence[Answered]
    instructions: Markup | None
    checks: Sequence[CheckView]
    files: Sequence[tuple[str, str]]
    template: str | None
    before: str | None  # addresses, after the page's own
    after: str | None
    next: CourseSession | None


@router.get("/courses/{id}/preview")
@router.get("/courses/{id}/preview/{key}")
async def show(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_SOURCE)],
    id: str,  # noqa: A002
    key: str = "",
) -> Response:
    version = request.query_params.get("version", "")
    number = int(version) if version.isascii() and version.isdigit() and len(version) < LONGEST_NUMBER else None
    _, found = await source_of(request, caller, id, number)
    query = f"version={number}&" if number else ""
    return await _page(request, caller, found, key, f"/courses/{id}", query)


@router.get("/courses/drafts/{id}/preview")
@router.get("/courses/drafts/{id}/preview/{key}")
async def show_draft(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_CREATE)],
    id: str,  # noqa: A002
    key: str = "",
) -> Response:
    try:
        found = await services_of(request).course_drafts.source(caller, id)
    except DraftNotFoundError as e:
        return back(course_import.PAGE, problem=e.code)
    return await _page(request, caller, found, key, f"/courses/drafts/{id}", "")


async def _page(request: Request, caller: Principal, found: Source, key: str, home: str, query: str) -> Response:
    asked = request.query_params.get("step", "")
    at = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < LONGEST_NUMBER else 0
    view = await asyncio.to_thread(_view, found, key, at, locale_for(request))  # 100 KB of brackets take a second
    return render(
        request,
        "course_preview.html",
        caller=caller,
        course=found,
        v=view,
        home=home,
        query=query,
        here=f"{home}/preview",
    )


def _view(course: Source, key: str, at: int, locale: Locale) -> PreviewView:
    place = next((n for n, s in enumerate(course.sessions) if s.key == key), None if key else 0)
    if place is None:
        raise CourseNotFoundError("the course has no such session")
    session, following = course.sessions[place], course.sessions[place + 1 : place + 2]
    blueprint = session.blueprint
    steps, at = blueprint.steps, min(at, len(blueprint.steps) - 1)
    asked = _share(session, at, blueprint.check_questions) if steps[at] is Step.CHECK else ()
    activity = blueprint.practice_activity if steps[at] is Step.PRACTICE else None
    return PreviewView(
        title=session.title,
        key=session.key,
        lang=course.language,
        number=place + 1,
        sessions=course.sessions,
        track=presentation.track(steps, at, locale),
        step=_step(session, at, asked),
        answered=[_answered(n, question) for n, question in enumerate(asked, 1)],
        instructions=html(activity.instructions) if activity else None,
        checks=[_check(check) for check in activity.checks] if activity else (),
        files=list(activity.files.items()) if activity else (),
        template=activity.template if activity else None,
        before=f"{session.key}?step={at - 1}" if at else None,
        after=f"{session.key}?step={at + 1}" if at + 1 < len(steps) else f"{following[0].key}?" if following else None,
        next=following[0] if following else None,
    )


def _step(session: CourseSession, at: int, asked: Sequence[Question]) -> StepView:
    """As one that was done and is looked at again: nothing of it can be sent."""
    blueprint, kind = session.blueprint, session.blueprint.steps[at]
    match kind:
        case Step.LEARN:
            chunks = _share(session, at, blueprint.learning_content)
            return StepView(at, kind, done=True, chunks=[html(chunk) for chunk in chunks])
        case Step.CHECK:
            shown = [questions.view(i, question, NOTHING, sent_open=False) for i, question in enumerate(asked)]
            return StepView(at, kind, done=True, questions=shown)
        case Step.PRACTICE:
            return StepView(at, kind, done=True)
        case _:
            return StepView(at, kind, done=True, encouragement=html(blueprint.encouragement))


def _share(session: CourseSession, at: int, items: Sequence[T]) -> Sequence[T]:
    steps = session.blueprint.steps
    return share(items, steps.count(steps[at]), steps[:at].count(steps[at]))


def _answered(number: int, question: Question) -> Answered:
    named = {choice.id: choice.text for choice in question.choices}
    feedback = [(named.get(chosen, chosen), html(text)) for chosen, text in question.feedback.items()]
    return Answered(number, [named.get(answer, answer) for answer in question.answers], feedback)


def _check(check: Check) -> CheckView:
    return CheckView(check.title, check.command, check.timeout_seconds, html(check.hint) if check.hint else None)
