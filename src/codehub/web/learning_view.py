"""Gathers what the pages of plans show: how far each is, what comes next, its sessions and runs; courses to take up.

Reads through the services and words it with `learning_presentation`; `learning` hands the result to the templates.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from markupsafe import Markup
from starlette.requests import Request

from codehub import ids, markdown
from codehub.courses.model import Course
from codehub.http import paging
from codehub.i18n import sessions as sentences
from codehub.i18n.locales import Locale
from codehub.i18n.texts import LANGUAGES
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Resource
from codehub.sessions.model import Plan, Run, Session, SessionStatus
from codehub.web import learning_presentation as presentation
from codehub.web.rendering import locale_for
from codehub.web.services import Services, services_of

PLANS, PAGES = 100, 10  # of one person: what is beyond is in the API
OPEN_PLANS = 24  # that are shown with their next session
COURSES = 200  # that are offered: what is beyond is in the API
DESCRIBED = 800  # characters of a course's description
TRAILS, TRAIL = 60, 50  # sessions of a plan whose runs are listed with it, and runs of each


@dataclass(frozen=True)
class PlanCard:
    plan: Plan
    progress: str
    marks: Sequence[presentation.Badge]  # one a session, in order
    next: Session | None
    due: str
    late: bool
    goes_on: bool  # was the next one begun
    key: str  # of the form that starts it


@dataclass(frozen=True)
class CourseCard:
    course: Course
    description: Markup  # its beginning; may be empty
    language: str  # its name, where it is not the reader's
    by: str | None  # who wrote it


@dataclass(frozen=True)
class RunLine:
    began: str
    exactly: str
    ended: str


@dataclass(frozen=True)
class SessionLine:
    session: Session
    badge: presentation.Badge
    due: str
    late: bool
    early: bool  # its day is yet to come
    open: bool
    runs: Sequence[RunLine]


@dataclass(frozen=True)
class PlanView:
    card: PlanCard
    lines: Sequence[SessionLine]
    mine: bool
    may_close: bool


class Reader:
    """One request's view: who looks, in which words, and when."""

    def __init__(self, request: Request, caller: Principal) -> None:
        self.services: Services = services_of(request)
        self.caller = caller
        self.locale: Locale = locale_for(request)
        self.now: datetime = self.services.clock.now()
        self.today: date = presentation.today(self.now, self.locale)

    async def plans(self) -> tuple[list[PlanCard], list[PlanCard]]:
        """One's own that are open, and those that are done; the newest first."""
        found = sorted(await self._all(), key=lambda plan: plan.created_at, reverse=True)
        is_open = {plan.id: any(plan.progress[status] for status in presentation.OPEN) for plan in found}
        now = [plan for plan in found if is_open[plan.id]][:OPEN_PLANS]
        full = [await self.services.sessions.plan(self.caller, plan.id) for plan in now]
        return [self.card(plan) for plan in full], [self.card(plan) for plan in found if not is_open[plan.id]]

    async def _all(self) -> list[Plan]:
        found, after = list[Plan](), paging.place(None)
        for _ in range(PAGES):
            page = await self.services.sessions.plans(self.caller, owner=self.caller.name, after=after, limit=PLANS)
            found += page
            if len(page) < PLANS:
                break
            after = page[-1].created_at, page[-1].id
        return found

    def card(self, plan: Plan) -> PlanCard:
        following = presentation.next_session(plan.sessions)
        due, late = presentation.due(following, self.today, self.locale) if following else ("", False)
        return PlanCard(
            plan=plan,
            progress=presentation.progress(plan.progress, self.locale),
            marks=[presentation.badge(session.status, self.locale) for session in plan.sessions],
            next=following,
            due=due,
            late=late,
            goes_on=following is not None and following.status is SessionStatus.IN_PROGRESS,
            key=ids.new(),
        )

    async def offered(self) -> list[CourseCard]:
        """At a first start: what comes with the product, to a person who is at nothing yet."""
        if not policy.allows(self.caller, Action.COURSE_LIST) or await self._all():
            return []
        return [card for card in await self.courses() if card.course.is_shipped]

    async def courses(self, taken: Sequence[PlanCard] = ()) -> list[CourseCard]:
        """What can be taken up, in the reader's language first; not what one is at already."""
        found = await self.services.courses.page(
            self.caller, language=None, owner=None, key=None, after=paging.place(None), limit=COURSES
        )
        at_it = {card.plan.course_id for card in taken}
        # Of what comes with the product in several languages, the reader's.
        mine = {c.key for c in found if c.language == self.locale.language and c.is_shipped}
        offered = [
            c
            for c in sorted(found, key=lambda c: (c.language != self.locale.language, c.created_at, c.title))
            if c.id not in at_it and not (c.is_shipped and c.language != self.locale.language and c.key in mine)
        ]
        return await asyncio.to_thread(lambda: [self._course(c) for c in offered])  # Markdown takes its time

    def _course(self, course: Course) -> CourseCard:
        other = course.language if course.language != self.locale.language else ""
        return CourseCard(
            course=course,
            description=Markup(markdown.render(beginning(course.description or ""))),  # noqa: S704 (safe)
            language=LANGUAGES.get(other, other),
            by=course.author or course.owner,
        )

    async def plan(self, id_: str) -> PlanView:
        plan = await self.services.sessions.plan(self.caller, id_)
        # Those that were never touched have no runs.
        touched = [
            s.id for s in plan.sessions if s.status is not SessionStatus.SCHEDULED or s.changed_at > plan.created_at
        ]
        trails = {id_: await self._trail(id_) for id_ in touched[:TRAILS]}
        resource = Resource(owner=plan.owner)
        return PlanView(
            card=self.card(plan),
            lines=[self._line(session, trails.get(session.id, [])) for session in plan.sessions],
            mine=policy.allows(self.caller, Action.RUN_START, resource),
            may_close=policy.allows(self.caller, Action.SESSION_SKIP, resource),
        )

    async def _trail(self, session_id: str) -> list[Run]:
        return await self.services.runs.trail(self.caller, session_id, after=paging.place(None), limit=TRAIL)

    def _line(self, session: Session, runs: Sequence[Run]) -> SessionLine:
        due, late = presentation.due(session, self.today, self.locale)
        is_open = session.status in presentation.OPEN
        return SessionLine(
            session=session,
            badge=presentation.badge(session.status, self.locale),
            due=due,
            late=late,
            early=is_open and session.scheduled_for_date > self.today,
            open=is_open,
            runs=[self._run(run) for run in runs],
        )

    def _run(self, run: Run) -> RunLine:
        ended = sentences.ended(self.locale, run.end_reason) if run.end_reason else self.locale.say("run_running")
        return RunLine(self.locale.time(run.started_at, self.now), self.locale.exact(run.started_at), ended)


def beginning(text: str) -> str:
    """Whole paragraphs of a description, as far as a card has room for them; of one that is longer, its beginning."""
    if len(text) <= DESCRIBED:
        return text
    end = text.rfind("\n\n", 0, DESCRIBED)
    return text[:end] if end > 0 else text[:DESCRIBED] + " …"
