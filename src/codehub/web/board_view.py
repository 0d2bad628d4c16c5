"""Gathers what a teacher's board shows: a row for each learner, a cell for each session, hands first, who waits.

Reads through the services and puts states into signs and words; `board` hands the result to the templates.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.requests import Request

from codehub.assignments import rules, sheet
from codehub.assignments.model import Assignment, Cell, CellState, Column, Hand, LearnerProgress
from codehub.classes.model import SchoolClass
from codehub.courses.model import Course
from codehub.http import paging
from codehub.i18n.locales import Locale
from codehub.i18n.texts import LANGUAGES
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions.blueprint_model import Question
from codehub.sessions.model import Run
from codehub.web import classes_view, learning_presentation
from codehub.web.attempts import Attempts
from codehub.web.rendering import locale_for
from codehub.web.services import Services, services_of

SIGNS = {
    CellState.NOT_STARTED: "○",
    CellState.IN_PROGRESS: "◐",
    CellState.FAILING: "▲",
    CellState.COMPLETED: "✓",
    CellState.SKIPPED: "»",
    CellState.CANCELED: "✕",
}
AT_A_STEP = {CellState.IN_PROGRESS, CellState.FAILING}
TAUGHT = 20  # classes on a start page; all are a click away
HANDS = 100  # that are shown at once: who asked first is first
COURSES = 200  # that can be chosen from
WATCHED_EVERY, WAITING_EVERY = 15_000, 5_000  # ms: lines move without events


@dataclass(frozen=True)
class CellView:
    session_id: str
    state: str  # of the style
    sign: str
    short: str  # beside it: the step, tries
    words: str  # all of it


@dataclass(frozen=True)
class Row:
    learner: LearnerProgress
    called: str
    done: str
    hand: bool
    waits: int | None  # at this place in the line
    seen: str
    cells: Sequence[CellView | None]  # as the columns are; None: not in their plan


@dataclass(frozen=True)
class HandView:
    hand: Hand
    called: str
    since: str


@dataclass(frozen=True)
class Group:
    """A course with its sessions, over the columns."""

    assignment: Assignment
    columns: Sequence[Column]


@dataclass(frozen=True)
class BoardView:
    found: SchoolClass
    groups: Sequence[Group]
    assignments: Sequence[Assignment]
    chosen: str | None  # one assignment alone
    rows: Sequence[Row]
    hands: Sequence[HandView]
    legend: Sequence[tuple[str, str, str]]  # style, sign and word
    waiting: int
    every: int
    may_assign: bool
    courses: Sequence[Course]  # that can be given
    titles: Mapping[str, str]  # of the assignments, by id: two of one title say their language
    languages: Mapping[str, str]  # their names
    today: str


@dataclass(frozen=True)
class TriedView:
    """A step that was tried and not passed."""

    step: str
    count: int
    at: str
    answers: Sequence[tuple[str, str]]  # wrong ones: the question, and what was answered
    checks: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class LearnerSessionView:
    found: SchoolClass
    owner: str
    called: str
    title: str
    plan_id: str
    session_id: str
    cell: CellView
    run: Run | None
    active: str
    tried: Sequence[TriedView]
    hand: HandView | None


@dataclass(frozen=True)
class Taught:
    """A class on its teacher's start page."""

    school_class: SchoolClass
    asking: int  # for help


async def taught(request: Request, caller: Principal) -> list[Taught]:
    """The classes that this person teaches now, the newest first."""
    services = services_of(request)
    if not policy.allows(caller, Action.CLASS_CREATE):
        return []
    mine = await services.classes.page(caller, everybodys=False, archived=False, after=paging.place(None), limit=TAUGHT)
    return [
        Taught(k, len(await services.hands.raised(caller, k.id, after=paging.place(None), limit=HANDS)))
        for k in mine
        if caller.name in k.teachers
    ]


def titled(given: Sequence[Assignment]) -> dict[str, str]:
    """By id. A course that the class has in two languages is told apart by them."""
    counted = Counter(one.title for one in given)
    language = {one.id: LANGUAGES.get(one.language, one.language) for one in given}
    return {one.id: f"{one.title} · {language[one.id]}" if counted[one.title] > 1 else one.title for one in given}


def called(display_name: str, name: str) -> str:
    return display_name or name


def told_apart(learners: Sequence[LearnerProgress]) -> dict[str, str]:
    """What each is called, by name; those who are called the same have their name beside it."""
    counted = Counter(called(one.display_name, one.name) for one in learners)
    shown = {one.name: called(one.display_name, one.name) for one in learners}
    return {name: f"{text} ({name})" if counted[text] > 1 else text for name, text in shown.items()}


def cell_view(cell: Cell, locale: Locale) -> CellView:
    short = ""
    if cell.state in AT_A_STEP and cell.step_index is not None:
        short = f"{cell.step_index + 1}/{cell.steps or '?'}" + (f" ×{cell.tries}" if cell.tries else "")
    return CellView(cell.session_id, cell.state.lower(), SIGNS[cell.state], short, sheet.words(cell, locale))


class Reader:
    """One request's view of one class."""

    def __init__(self, request: Request, caller: Principal) -> None:
        self.services: Services = services_of(request)
        self.caller = caller
        self.locale: Locale = locale_for(request)
        self.now: datetime = self.services.clock.now()

    async def board(self, class_id: str, chosen: str | None) -> BoardView:
        services, caller = self.services, self.caller
        found = await services.classes.get(caller, class_id)
        progress = await services.assignments.progress(caller, class_id, chosen)
        hands = await services.hands.raised(caller, class_id, after=paging.place(None), limit=HANDS)
        names = told_apart(progress.learners)
        waiting = await services.waiting_events.places_of(caller, list(names))
        asking = {hand.owner for hand in hands}
        rows = [
            self._row(one, names[one.name], progress.columns, waiting.get(one.name), one.name in asking)
            for one in progress.learners
        ]
        rows.sort(key=lambda row: classes_view.by_name(row.called, row.learner.name))
        rows.sort(key=lambda row: 0 if row.hand else rules.urgency(row.learner))
        grouped = [(a, [c for c in progress.columns if c.assignment_id == a.id]) for a in progress.assignments]
        may_assign = found.archived_at is None
        given = {a.course_id for a in progress.assignments}
        return BoardView(
            found=found,
            groups=[Group(a, columns) for a, columns in grouped if columns],
            assignments=progress.assignments,
            chosen=chosen,
            rows=rows,
            hands=[self._hand(hand, names.get(hand.owner)) for hand in hands],
            legend=[(s.lower(), SIGNS[s], self.locale.say(f"progress_{s.lower()}")) for s in CellState],
            waiting=len(waiting),
            every=WAITING_EVERY if waiting else WATCHED_EVERY,
            may_assign=may_assign,
            courses=[c for c in await self._courses() if c.id not in given] if may_assign else [],
            titles=titled(progress.assignments),
            languages=LANGUAGES,
            today=learning_presentation.today(self.now, self.locale).isoformat(),
        )

    async def _courses(self) -> list[Course]:
        """In the reader's language first."""
        found = await self.services.courses.page(
            self.caller, language=None, owner=None, key=None, after=paging.place(None), limit=COURSES
        )
        offered = [course for course in found if course.withdrawn_at is None]
        return sorted(offered, key=lambda c: (c.language != self.locale.language, c.is_shipped, c.title))

    def _row(self, one: LearnerProgress, shown: str, columns: Sequence[Column], waits: int | None, hand: bool) -> Row:
        cells = [one.cells.get((column.assignment_id, column.key)) for column in columns]
        return Row(
            learner=one,
            called=shown,
            done=f"{one.completed}/{one.total}",
            hand=hand,
            waits=waits,
            seen=self.locale.time(one.last_activity_at, self.now) if one.last_activity_at else "",
            cells=[cell_view(cell, self.locale) if cell else None for cell in cells],
        )

    def _hand(self, hand: Hand, shown: str | None = None) -> HandView:
        name = shown or called(hand.display_name, hand.owner)
        return HandView(hand, name, self.locale.time(hand.raised_at, self.now))

    # --- one learner's session

    async def learner_session(self, class_id: str, session_id: str) -> LearnerSessionView:
        services, caller = self.services, self.caller
        found = await services.classes.get(caller, class_id)
        session = await services.sessions.session(caller, session_id)
        plan = await services.sessions.plan(caller, session.plan_id)
        progress = await services.assignments.progress_of(caller, class_id, plan.owner)
        cells = [cell for cell in progress.cells.values() if cell.session_id == session_id]
        runs = await services.runs.latest(caller, session_id, limit=1)
        run = runs[-1] if runs else None
        hand = await services.hands.last(caller, run.id) if run else None
        cell = cell_view(cells[0], self.locale) if cells else self._without(session_id)
        return LearnerSessionView(
            found=found,
            owner=plan.owner,
            called=called(progress.display_name, plan.owner),
            title=session.title,
            plan_id=plan.id,
            session_id=session_id,
            cell=cell,
            run=run,
            active=self.locale.time(run.last_activity_at, self.now) if run else "",
            tried=await self._tried(run) if run else [],
            hand=self._hand(hand) if hand and hand.is_open else None,
        )

    def _without(self, session_id: str) -> CellView:
        """Of a plan that the class did not give."""
        return CellView(session_id, "not_started", "○", "", "")

    async def _tried(self, run: Run) -> list[TriedView]:
        lesson = await self.services.sessions.lesson(self.caller, run.session_id)
        attempts = Attempts(self.services.redis)
        shown = []
        for tries in await self.services.runs.tries(self.caller, run.id):
            last = tries.last_result
            kind = lesson.steps[tries.step_index].value if tries.step_index < len(lesson.steps) else ""
            asked = {question.id: question for question in lesson.questions(tries.step_index)} if kind else {}
            kept = (await attempts.of(run.id, tries.step_index)).checks
            shown.append(
                TriedView(
                    step=self.locale.say(f"step_{kind.lower()}") if kind else "",
                    count=tries.count,
                    at=self.locale.time(tries.last_at, self.now),
                    answers=[_answered(asked.get(id_), id_, text) for id_, text in last.get("answers", {}).items()],
                    checks=last.get("checks") or kept,
                )
            )
        return shown


def _answered(question: Question | None, id_: str, text: str) -> tuple[str, str]:
    """A question and what was answered, by the words of the choices: several are kept with a comma between them."""
    if question is None:
        return id_, text
    words = {choice.id: choice.text for choice in question.choices}
    return question.prompt, ", ".join(words.get(part, part) for part in text.split(", ")) if words else text
