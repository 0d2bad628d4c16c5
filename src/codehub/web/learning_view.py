"""Gathers what the pages of plans show: how far each is, what comes next, its sessions and runs; courses to take up.

Reads through the services and words it with `learning_presentation`; `learning` hands the result to the templates.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

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
RECENT_PLANS = 5  # of which the start page shows the one that was worked on last
COURSES = 200  # that are offered: what is beyond is in the API
DESCRIBED = 800  # characters of a course's description
NEVER = datetime.min.replace(tzinfo=UTC)
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
    lang: str | None  # of its course
    language: str  # its name, where it is not the reader's


@dataclass(frozen=True)
class GoingOn:
    """What the start page offers first: where one stopped."""

    card: PlanCard
    place: str | None  # the step of the next session's last attempt; None: it was not begun
    worked: str | None  # when
    others: int  # plans that are open besides


@dataclass(frozen=True)
class ClassNext:
    """What a class has next for one."""

    title: str  # the class's
    card: PlanCard


@dataclass(frozen=True)
class CourseCard:
    course: Course
    description: Markup  # its beginning; may be empty
    language: str  # its name, where there are courses in several
    by: str | None  # who wrote it
    plan_id: str | None  # of the reader, who is at it already
    may_withdraw: bool


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
    classes: Sequence[str]  # from which it is


class Reader:
    """One request's view: who looks, in which words, and when."""

    def __init__(self, request: Request, caller: Principal) -> None:
        self.services: Services = services_of(request)
        self.caller = caller
        self.locale: Locale = locale_for(request)
        self.now: datetime = self.services.clock.now()
        self.today: date = presentation.today(self.now, self.locale)
        self._found: list[Plan] | None = None
        self._languages: dict[str, str] = {}  # of courses

    async def plans(self) -> tuple[list[PlanCard], list[PlanCard]]:
        """One's own that are open, and those that are done; the newest first."""
        found = sorted(await self._all(), key=lambda plan: plan.created_at, reverse=True)
        is_open = {plan.id: any(plan.progress[status] for status in presentation.OPEN) for plan in found}
        now = [plan for plan in found if is_open[plan.id]][:OPEN_PLANS]
        full = [await self.services.sessions.plan(self.caller, plan.id) for plan in now]
        await self._learn_languages(found)
        return [self.card(plan) for plan in full], [self.card(plan) for plan in found if not is_open[plan.id]]

    async def _learn_languages(self, plans: Sequence[Plan]) -> None:
        """Two plans of the same title may be of one course in two languages."""
        named = [plan.course_id for plan in plans if plan.course_id]
        if named and policy.allows(self.caller, Action.COURSE_LIST):
            self._languages |= await self.services.courses.languages(self.caller, named)

    async def language(self, plan: Plan) -> str | None:
        await self._learn_languages([plan])
        return self._languages.get(plan.course_id or "")

    async def _all(self) -> list[Plan]:
        if self._found is None:
            self._found = await self._read_all()
        return self._found

    async def _read_all(self) -> list[Plan]:
        found, after = list[Plan](), paging.place(None)
        for _ in range(PAGES):
            page = await self.services.sessions.plans(self.caller, owner=self.caller.name, after=after, limit=PLANS)
            found += page
            if len(page) < PLANS:
                break
            after = page[-1].created_at, page[-1].id
        return found

    async def going_on(self) -> GoingOn | None:
        """The plan that was worked on last, at its step; else the newest. None: nothing is left to do."""
        if not policy.allows(self.caller, Action.PLAN_LIST):
            return None
        found = [plan for plan in await self._all() if any(plan.progress[status] for status in presentation.OPEN)]
        found.sort(key=lambda plan: (plan.progress[SessionStatus.IN_PROGRESS] > 0, plan.created_at), reverse=True)
        await self._learn_languages(found[:RECENT_PLANS])
        cards = [self.card(await self.services.sessions.plan(self.caller, plan.id)) for plan in found[:RECENT_PLANS]]
        begun = [(card, await self._last_attempt(card)) for card in cards if card.next]
        if not begun:
            return None
        card, run = max(begun, key=lambda one: (one[0].goes_on, one[1].last_activity_at if one[1] else NEVER))
        return GoingOn(
            card=card,
            place=await self._place(run) if run else None,
            worked=self.locale.time(run.last_activity_at, self.now) if run else None,
            others=len(found) - 1,
        )

    async def of_classes(self, shown: GoingOn | None) -> list[ClassNext]:
        """The next session of each course that one's classes have, in order of its day; not the one that is `shown`."""
        if not policy.allows(self.caller, Action.PLAN_LIST):
            return []
        given = await self.services.assignments.given_to(self.caller, limit=OPEN_PLANS)
        found = [ClassNext(title, await self._card_of(plan_id)) for plan_id, title in given.items()]
        ahead = [one for one in found if one.card.next and not (shown and shown.card.plan.id == one.card.plan.id)]
        return sorted(ahead, key=lambda one: one.card.next.scheduled_for_date if one.card.next else date.max)

    async def _card_of(self, plan_id: str) -> PlanCard:
        plan = await self.services.sessions.plan(self.caller, plan_id)
        await self._learn_languages([plan])
        return self.card(plan)

    async def _last_attempt(self, card: PlanCard) -> Run | None:
        """At its next session, if there was one that got anywhere or goes on."""
        session = card.next
        if session is None or not _is_touched(session, card.plan):
            return None
        if session.run_id:
            return await self.services.runs.get(self.caller, session.run_id)
        runs = await self._trail(session.id)
        return runs[-1] if runs and runs[-1].step_index else None

    async def _place(self, run: Run) -> str:
        steps = (await self.services.sessions.lesson(self.caller, run.session_id)).steps
        track = presentation.track(steps, run.step_index, self.locale)
        words = [mark.word for mark in track.marks if mark.state == "now"]
        return self.locale.say("learn_step", place=track.place, word=words[0]) if words else track.place

    def card(self, plan: Plan) -> PlanCard:
        following = presentation.next_session(plan.sessions)
        lang = self._languages.get(plan.course_id or "")
        due, late = presentation.when(following, self.today, self.locale) if following else ("", False)
        return PlanCard(
            plan=plan,
            progress=presentation.progress(plan.progress, self.locale),
            marks=[presentation.badge(session.status, self.locale) for session in plan.sessions],
            next=following,
            due=due,
            late=late,
            goes_on=following is not None and following.status is SessionStatus.IN_PROGRESS,
            key=ids.new(),
            lang=lang,
            language=LANGUAGES.get(lang, lang) if lang and lang != self.locale.language else "",
        )

    async def offered(self) -> list[CourseCard]:
        """At a first start: what comes with the product, to a person who is at nothing yet."""
        if not policy.allows(self.caller, Action.COURSE_LIST) or await self._all():
            return []
        return [c for c in await self.courses() if c.course.is_shipped and c.course.withdrawn_at is None]

    async def courses(self, taken: Sequence[PlanCard] = ()) -> list[CourseCard]:
        """What can be taken up, in the reader's language first; not what one is at already.

        Those that the reader may withdraw are there in any case; those that are withdrawn, too.
        """
        found = await self.services.courses.page(
            self.caller, language=None, owner=None, key=None, after=paging.place(None), limit=COURSES
        )
        at_it = {card.plan.course_id: card.plan.id for card in taken}
        # Of what comes with the product in several languages, the reader's.
        ours = [c for c in found if c.language == self.locale.language and c.is_shipped]
        mine = {c.key for c in ours if c.withdrawn_at is None}
        offered = [
            c
            for c in sorted(found, key=lambda c: (c.language != self.locale.language, c.created_at, c.title))
            if not (c.is_shipped and c.language != self.locale.language and c.key in mine)
        ]
        # Markdown takes its time.
        mixed = len({c.language for c in offered} | {self.locale.language}) > 1
        owners = await self.services.people.called({c.owner for c in offered if c.owner and not c.author})
        cards = await asyncio.to_thread(
            lambda: [self._course(c, at_it.get(c.id), owners, mixed=mixed) for c in offered]
        )
        return [card for card in cards if card.plan_id is None or card.may_withdraw]

    def _course(self, course: Course, plan_id: str | None, owners: Mapping[str, str], *, mixed: bool) -> CourseCard:
        return CourseCard(
            course=course,
            description=Markup(markdown.render(beginning(course.description or ""))),  # noqa: S704 (safe)
            language=LANGUAGES.get(course.language, course.language) if mixed else "",
            by=course.author or (owners[course.owner] if course.owner else None),
            plan_id=plan_id,
            may_withdraw=policy.allows(self.caller, Action.COURSE_WITHDRAW, Resource(course.id, course.owner)),
        )

    async def plan(self, id_: str) -> PlanView:
        plan = await self.services.sessions.plan(self.caller, id_)
        await self._learn_languages([plan])
        touched = [s.id for s in plan.sessions if _is_touched(s, plan)]
        trails = {id_: await self._trail(id_) for id_ in touched[:TRAILS]}
        resource = Resource(owner=plan.owner)
        return PlanView(
            card=self.card(plan),
            lines=[self._line(session, trails.get(session.id, [])) for session in plan.sessions],
            mine=policy.allows(self.caller, Action.RUN_START, resource),
            may_close=policy.allows(self.caller, Action.SESSION_SKIP, resource),
            classes=(await self.services.assignments.classes_of(self.caller, [plan.id])).get(plan.id, []),
        )

    async def _trail(self, session_id: str) -> list[Run]:
        return await self.services.runs.latest(self.caller, session_id, limit=TRAIL)

    def _line(self, session: Session, runs: Sequence[Run]) -> SessionLine:
        due, late = presentation.when(session, self.today, self.locale)
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


def _is_touched(session: Session, plan: Plan) -> bool:
    """One that never was has no runs."""
    return session.status is not SessionStatus.SCHEDULED or session.changed_at > plan.created_at


def beginning(text: str) -> str:
    """Whole paragraphs of a description, as far as a card has room for them; of one that is longer, its beginning."""
    if len(text) <= DESCRIBED:
        return text
    end = text.rfind("\n\n", 0, DESCRIBED)
    return text[:end] if end > 0 else text[:DESCRIBED] + " …"
