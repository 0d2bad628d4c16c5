"""Gathers what a session's page shows: which screen it is, the track, the present step, earlier runs, what comes next.

Reads through the services and words it with `learning_presentation`; `player` hands the result to the template. What a
learner may not see before it is checked (answers, feedback, commands) is not in it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup
from starlette.requests import Request

from codehub.http import paging
from codehub.i18n import sessions as sentences
from codehub.i18n.locales import Locale
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Resource
from codehub.sessions.blueprint import Step, share
from codehub.sessions.blueprints import Lesson
from codehub.sessions.model import Plan, Run, RunStatus, Session, SessionStatus
from codehub.web import learning_presentation as presentation
from codehub.web import learning_view, player_help, player_line_view, practice_view, questions
from codehub.web.attempts import NOTHING, Attempt, Attempts
from codehub.web.learning_presentation import Screen
from codehub.web.player_help import HelpView
from codehub.web.player_line_view import LineView
from codehub.web.practice_view import PracticeView, html
from codehub.web.questions import QuestionView
from codehub.web.rendering import locale_for
from codehub.web.services import Services, services_of
from codehub.workspaces import service as workspaces

PAGE, PAGES = 200, 20  # of a session's runs: what is beyond is in the API
STEP_SHOWN = {Screen.PLAY, Screen.TAKEN_OVER, Screen.REVIEW}
JUST_NOW = timedelta(minutes=3)  # a run that was active so recently is open on another page


@dataclass(frozen=True)
class StepView:
    index: int
    kind: Step
    done: bool  # looked at again
    chunks: Sequence[Markup] = ()
    questions: Sequence[QuestionView] = ()
    tried: bool = False
    practice: PracticeView | None = None
    encouragement: Markup | None = None


@dataclass(frozen=True)
class RunLine:
    began: str
    exactly: str
    place: str
    ended: str


@dataclass(frozen=True)
class SessionView:
    plan: Plan
    session: Session
    badge: presentation.Badge
    due: str
    late: bool
    screen: Screen
    run: Run | None
    fence: int  # that this page has
    track: presentation.Track
    step: StepView | None
    stopped: str | None  # when the run was last worked on
    elsewhere: bool  # it is open on another page right now
    outline: Sequence[tuple[Step, str]]
    runs: Sequence[RunLine]
    next: Session | None  # of the plan, after this one
    learnt: Sequence[Session]  # of the plan: what is completed
    lang: str | None  # of the course
    encouragement: Markup | None
    line: LineView | None  # for a place in the lab
    help: HelpView | None  # None: there is no teacher to ask
    classes: Sequence[str]  # from which the plan is
    mine: bool
    may_close: bool


def held(request: Request) -> tuple[str, int] | None:
    """The run that this page has, and by which fence: its address says so, hence each tab has its own."""
    run, fence = request.query_params.get("run"), request.query_params.get("fence", "")
    return (run, int(fence)) if run and fence.isdecimal() and len(fence) < 16 else None


class Reader:
    """One request's view of one session."""

    def __init__(self, request: Request, caller: Principal) -> None:
        self._request = request
        self.services: Services = services_of(request)
        self.caller = caller
        self.locale: Locale = locale_for(request)
        self.now: datetime = self.services.clock.now()
        self._attempts = Attempts(self.services.redis)

    async def view(self, id_: str) -> SessionView:
        services, caller = self.services, self.caller
        session = await services.sessions.session(caller, id_)
        plan = await services.sessions.plan(caller, session.plan_id)
        lesson = await services.sessions.lesson(caller, id_)
        runs = await self.runs(id_)
        mine = policy.allows(caller, Action.RUN_START, Resource(owner=plan.owner))
        recovery = timedelta(seconds=services.settings.sessions.recovery_seconds)
        where = held(self._request)
        again = self._request.query_params.get("read") == "yes"
        screen, run = presentation.screen(
            session, runs, where, is_learner=mine, reads_again=again, now=self.now, recovery=recovery
        )
        today = presentation.today(self.now, self.locale)
        due, late = presentation.when(session, today, self.locale)
        step = await self._step(lesson, run) if run and screen in STEP_SHOWN else None
        at = run.step_index if run else len(lesson.steps) if session.status is SessionStatus.COMPLETED else 0
        at = step.index if step and screen is Screen.REVIEW else at
        return SessionView(
            plan=plan,
            session=session,
            badge=presentation.badge(session.status, self.locale),
            due=due,
            late=late,
            screen=screen,
            run=run,
            fence=where[1] if where else 0,
            track=presentation.track(lesson.steps, at, self.locale),
            step=step,
            stopped=self.locale.time(run.last_activity_at, self.now) if run else None,
            elsewhere=run is not None and self.now - run.last_activity_at < JUST_NOW,
            outline=list(self._outline(lesson)),
            runs=[self._line(line, len(lesson.steps)) for line in runs],
            next=presentation.next_session([s for s in plan.sessions if s.id != session.id]),
            learnt=[s for s in plan.sessions if s.status is SessionStatus.COMPLETED],
            lang=await learning_view.Reader(self._request, caller).language(plan),
            encouragement=await _rendered(html, lesson.blueprint.encouragement),
            line=await self._place(lesson, run) if run and screen is Screen.PLAY else None,
            help=await self._help(run, runs, screen) if mine else None,
            classes=(await services.assignments.classes_of(caller, [plan.id])).get(plan.id, []),
            mine=mine,
            may_close=policy.allows(caller, Action.SESSION_SKIP, Resource(owner=plan.owner)),
        )

    async def _help(self, run: Run | None, runs: Sequence[Run], screen: Screen) -> HelpView | None:
        """Also after the end: a teacher may answer then, and a hand that is up can be taken down."""
        asked_in = run if screen is Screen.PLAY else runs[-1] if runs and screen is Screen.CLOSED else None
        if asked_in is None:
            return None
        return await player_help.of(self.services, self.caller, asked_in, self.locale, self.now)

    async def runs(self, session_id: str) -> list[Run]:
        """All of them, oldest first. The one that runs is as active as its workspace."""
        found, after = list[Run](), paging.place(None)
        for _ in range(PAGES):
            page = await self.services.runs.trail(self.caller, session_id, after=after, limit=PAGE)
            found += page
            if len(page) < PAGE:
                break
            after = page[-1].started_at, page[-1].id
        if found and found[-1].status is RunStatus.RUNNING and found[-1].workspace_id:
            async with self.services.database.connection() as c:
                at_work = await workspaces.last_activity(c, found[-1].workspace_id)
            if at_work and at_work > found[-1].last_activity_at:
                found[-1] = replace(found[-1], last_activity_at=at_work)
        return found

    def _outline(self, lesson: Lesson) -> Sequence[tuple[Step, str]]:
        """What awaits the learner, without what is asked."""
        blueprint, lines = lesson.blueprint, list[tuple[Step, str]]()
        counts = {
            Step.LEARN: len(blueprint.learning_content),
            Step.CHECK: len(blueprint.check_questions),
            Step.PRACTICE: len(lesson.activity.checks) if lesson.activity else 0,
        }
        for kind, n in counts.items():
            if kind in lesson.steps:
                lines.append((kind, self.locale.say(f"outline_{kind.lower()}", n=n)))
        return lines

    def _line(self, run: Run, steps: int) -> RunLine:
        place = self.locale.say("run_place", n=run.step_index, total=steps)
        ended = sentences.ended(self.locale, run.end_reason) if run.end_reason else self.locale.say("run_running")
        began = self.locale.time(run.started_at, self.now)
        return RunLine(began, self.locale.exact(run.started_at), place, ended)

    async def _place(self, lesson: Lesson, run: Run) -> LineView | None:
        return await player_line_view.Reader(self._request, self.caller).view(lesson, run)

    # --- the step

    async def _step(self, lesson: Lesson, run: Run) -> StepView | None:
        """The one to do, of a completed run the first; or an earlier one that the address asks to look at again."""
        asked = self._request.query_params.get("step", "")
        usual = 0 if run.status is RunStatus.COMPLETED else run.step_index
        index = int(asked) if asked.isdecimal() and len(asked) < 5 and int(asked) < run.step_index else usual
        if index >= len(lesson.steps):
            return None
        done, kind = index < run.step_index, lesson.steps[index]
        match kind:
            case Step.LEARN:
                k, n = lesson.steps[:index].count(kind), lesson.steps.count(kind)
                chunks = share(lesson.blueprint.learning_content, n, k)
                return StepView(index, kind, done, chunks=await _rendered(lambda: [html(chunk) for chunk in chunks]))
            case Step.CHECK:
                attempt = await self._saved(run, index) if done else await self._attempts.of(run.id, index)
                asked_now = lesson.questions(index)
                sent_open = self._request.query_params.get("problem") == questions.MISSING
                shown = await _rendered(
                    lambda: [questions.view(i, q, attempt, sent_open=sent_open) for i, q in enumerate(asked_now)]
                )
                return StepView(index, kind, done, questions=shown, tried=attempt.wrong is not None)
            case Step.PRACTICE:
                assert lesson.activity  # noqa: S101 (a blueprint with a PRACTICE has one)
                practice = await practice_view.read(self._request, self.caller, lesson.activity, run, index)
                return StepView(index, kind, done, practice=practice)
            case _:
                return StepView(index, kind, done, encouragement=await _rendered(html, lesson.blueprint.encouragement))

    async def _saved(self, run: Run, index: int) -> Attempt:
        """The answers that were right, and what was said of wrong ones before, as long as that is known."""
        found, _ = await self.services.runs.snapshots(self.caller, run.id, after=index - 1, limit=1)
        if not found or found[0].step_index != index:
            return NOTHING
        state: Any = found[0].state
        answers = state.get("answers") if isinstance(state, dict) else None
        before = await self._attempts.of(run.id, index)
        return Attempt(answers if isinstance(answers, dict) else {}, wrong=(), feedback=before.feedback)


_rendered = asyncio.to_thread  # 100 KB of brackets take a second: others' requests go on meanwhile
