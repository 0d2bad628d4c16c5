"""Courses, and what is different between two versions of one, in words. Pure; used by the pages of courses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from codehub.courses import problem_words
from codehub.courses.differences import Change, Difference, Kind, SessionChange
from codehub.courses.drafts import Draft
from codehub.courses.model import Course, Lesson, Version
from codehub.courses.source import Source
from codehub.courses.tree import Problem
from codehub.i18n.locales import Locale
from codehub.i18n.texts import LANGUAGES
from codehub.sessions.revisions import Reach

SIGNS = {Kind.ADDED: "+", Kind.REMOVED: "−", Kind.CHANGED: "✎", Kind.MOVED: "↕"}
MOST_DETAILS = 40  # of one session
MOST_PROBLEMS = 200  # on one page
SHORT = 80  # characters of a text that is named in a sentence


@dataclass(frozen=True)
class Row:
    course: Course
    language: str
    sessions: str
    plans: str
    by: str  # whose it is; empty: the platform's
    changed: str


@dataclass(frozen=True)
class SessionLine:
    """A session that is different."""

    key: str
    title: str
    kind: str
    sign: str
    word: str
    details: Sequence[str]
    more: int  # that are not shown
    reach: str
    is_new: bool  # it can be looked at in the new version


@dataclass(frozen=True)
class DifferenceView:
    summary: str
    head: Sequence[str]
    sessions: Sequence[SessionLine]


@dataclass(frozen=True)
class OutlineLine:
    key: str
    title: str
    day: str
    steps: str


@dataclass(frozen=True)
class ProblemLine:
    file: str
    line: int
    what: str
    is_error: bool


@dataclass(frozen=True)
class DraftView:
    draft: Draft
    language: str
    lead: str
    reach: str
    is_same: bool
    difference: DifferenceView
    outline: Sequence[OutlineLine]
    warnings: Sequence[ProblemLine]


@dataclass(frozen=True)
class VersionLine:
    version: int
    by: str
    at: str
    exactly: str
    difference: DifferenceView | None  # None: the first, or one that is not compared here


class Reader:
    """One reader's words."""

    def __init__(self, locale: Locale, now: datetime) -> None:
        self.locale = locale
        self.now = now

    def row(self, course: Course, plans: int, called: Mapping[str, str]) -> Row:
        return Row(
            course=course,
            language=LANGUAGES.get(course.language, course.language),
            sessions=self.sessions(course.sessions),
            plans=self.counted("courses_plans", plans),
            by=called.get(course.owner, course.owner) if course.owner else "",
            changed=self.locale.time(course.changed_at, self.now),
        )

    def sessions(self, n: int) -> str:
        return self.counted("courses_sessions", n)

    def counted(self, key: str, n: int) -> str:
        return self.locale.say(f"{key}_one" if n == 1 else f"{key}_none" if n == 0 else key, n=n)

    # --- what is different

    def difference(self, found: Difference, reach: Reach | None = None) -> DifferenceView:
        counts = [(kind, len(found.of(kind))) for kind in Kind]
        told = [self.locale.say(f"diff_sessions_{kind}", n=n) for kind, n in counts if n]
        return DifferenceView(
            summary=" · ".join(told),
            head=[self._change(change) for change in found.head],
            sessions=[self._session(session, reach) for session in found.sessions],
        )

    def _session(self, session: SessionChange, reach: Reach | None) -> SessionLine:
        details = [self._change(change) for change in session.details[:MOST_DETAILS]]
        if session.kind is Kind.CHANGED and session.is_moved:
            details.append(self.locale.say("diff_moved_too"))
        if session.steps:
            details.append(self.steps(session.steps))
        return SessionLine(
            key=session.key,
            title=session.title,
            kind=session.kind.value,
            sign=SIGNS[session.kind],
            word=self.locale.say(f"diff_{session.kind}"),
            details=details,
            more=max(0, len(session.details) - MOST_DETAILS),
            reach=self._reach(session, reach) if reach and reach.plans else "",
            is_new=session.kind is not Kind.REMOVED,
        )

    def _change(self, change: Change) -> str:
        word = self.locale.say(f"step_{change.name.lower()}") if change.what == "step" else change.name
        old, new = change.old, change.new
        if change.what == "steps":
            old, new = (self.steps(text.split()) for text in (old, new))
        values = {"name": short(word), "old": short(old), "new": short(new), "n": change.n}
        return self.locale.say(f"diff_{change.what}_{change.kind}", **values)

    def _reach(self, session: SessionChange, reach: Reach) -> str:
        """To how many learners' plans it comes."""
        n, present = reach.untouched.get(session.key, 0), reach.present.get(session.key, 0)
        kept = present - n
        match session.kind:
            case Kind.ADDED:
                return self.locale.say("reach_added", n=reach.plans - present)
            case Kind.MOVED:
                return self.locale.say("reach_moved", n=present)
            case kind:
                said = self.locale.say(f"reach_{kind}", n=n)
                return f"{said} {self.locale.say('reach_kept', n=kept)}" if kept else said

    def steps(self, steps: Sequence[str]) -> str:
        """Their words in order; of a row of the same, how many."""
        words = list[tuple[str, int]]()
        for step in steps:
            word = self.locale.say(f"step_{step.lower()}")
            if words and words[-1][0] == word:
                words[-1] = word, words[-1][1] + 1
            else:
                words.append((word, 1))
        shown = [word if n == 1 else f"{word} ×{n}" for word, n in words[:SHORT]]
        return " → ".join([*shown, *(["…"] if len(words) > SHORT else [])])

    # --- a draft

    def draft(self, draft: Draft) -> DraftView:
        plans = draft.reach.plans if draft.reach else 0
        return DraftView(
            draft=draft,
            language=LANGUAGES.get(draft.source.language, draft.source.language),
            lead=self._lead(draft),
            reach=self.counted("draft_plans", plans) if draft.course and not draft.is_same else "",
            is_same=draft.is_same,
            difference=self.difference(draft.difference, draft.reach),
            outline=self.outline(draft.source),
            warnings=self.problems(draft.warnings),
        )

    def _lead(self, draft: Draft) -> str:
        if draft.is_same and draft.course:
            key = "draft_same_shipped" if draft.course.is_shipped else "draft_same"
            return self.locale.say(key, title=draft.course.title, version=draft.course.version)
        if draft.course:
            said = self.locale.say("draft_version", title=draft.course.title, version=draft.course.version + 1)
        else:
            said = self.locale.say("draft_new")
        copied = self.locale.say("draft_copy", title=draft.copy_of.title) if draft.copy_of else ""
        return f"{said} {copied}".strip()

    def outline(self, course: Source) -> list[OutlineLine]:
        steps = {s.key: [step.value for step in s.blueprint.steps] for s in course.sessions}
        return [self._line(s.key, s.title, s.day, steps[s.key]) for s in course.sessions]

    def lessons(self, lessons: Sequence[Lesson]) -> list[OutlineLine]:
        return [self._line(s.key, s.title, s.day, s.steps) for s in lessons]

    def _line(self, key: str, title: str, day: int, steps: Sequence[str]) -> OutlineLine:
        return OutlineLine(key, title, self.locale.say("course_day", n=day), self.steps(steps))

    def problems(self, found: Sequence[Problem]) -> list[ProblemLine]:
        """What is wrong before what is only worth knowing."""
        ordered = sorted(found, key=lambda p: (not p.is_error, p.file, p.line))[:MOST_PROBLEMS]
        return [
            ProblemLine(p.file, p.line, problem_words.told(p.what, self.locale.language), p.is_error) for p in ordered
        ]

    def version(self, version: Version, difference: Difference | None, called: Mapping[str, str]) -> VersionLine:
        return VersionLine(
            version=version.version,
            by=called.get(version.created_by, version.created_by),
            at=self.locale.time(version.created_at, self.now),
            exactly=self.locale.exact(version.created_at),
            difference=None if difference is None else self.difference(difference),
        )


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[:SHORT]}…"
