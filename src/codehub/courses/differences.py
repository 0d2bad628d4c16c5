"""What is different between two versions of a course, by codes with data; pages put them into words. Pure.

Sessions are the same where their keys are. What a page of text says is not compared word by word: an author has the
files, and wants to know what learners will find changed.
"""

import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from codehub.courses.model import Lesson, Version
from codehub.courses.source import CourseSession, Source
from codehub.sessions.blueprint import Activity, Blueprint

T = TypeVar("T")
HEAD = ("key", "title", "language", "author", "description")


class Kind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


@dataclass(frozen=True)
class Change:
    """`what`: a code such as `pages` or `question`; `name`: which one, where there are several."""

    what: str
    kind: Kind
    name: str = ""
    old: str = ""
    new: str = ""
    n: int = 1


@dataclass(frozen=True)
class SessionChange:
    key: str
    title: str
    kind: Kind
    is_moved: bool = False
    details: Sequence[Change] = ()
    steps: Sequence[str] = ()


@dataclass(frozen=True)
class Difference:
    head: Sequence[Change] = ()
    sessions: Sequence[SessionChange] = field(default_factory=tuple)

    def __bool__(self) -> bool:
        return bool(self.head or self.sessions)

    def of(self, kind: Kind) -> list[SessionChange]:
        return [session for session in self.sessions if session.kind is kind]


def compare(old: Source, new: Source) -> Difference:
    before, after = {s.key: s for s in old.sessions}, {s.key: s for s in new.sessions}
    moved = set(out_of_order([key for key in before if key in after], [key for key in after if key in before]))
    sessions = [
        change
        for key, session in after.items()
        if (change := _session(before.get(key), session, is_moved=key in moved)) is not None
    ]
    gone = [SessionChange(s.key, s.title, Kind.REMOVED, steps=_steps(s)) for s in before.values() if s.key not in after]
    return Difference(tuple(_fields(old, new, HEAD)), (*sessions, *gone))


def compare_outlines(
    old: Version, old_sessions: Sequence[Lesson], new: Version, new_sessions: Sequence[Lesson]
) -> Difference:
    """The same without what is in the sessions: that one changed is known by its blueprint's hash."""
    before, after = {s.key: s for s in old_sessions}, {s.key: s for s in new_sessions}
    moved = set(out_of_order([key for key in before if key in after], [key for key in after if key in before]))
    sessions = list[SessionChange]()
    for key, lesson in after.items():
        if key not in before:
            sessions.append(SessionChange(key, lesson.title, Kind.ADDED, steps=lesson.steps))
        elif details := _lesson(before[key], lesson):
            sessions.append(SessionChange(key, lesson.title, Kind.CHANGED, key in moved, details))
        elif key in moved:
            sessions.append(SessionChange(key, lesson.title, Kind.MOVED, is_moved=True))
    gone = [SessionChange(s.key, s.title, Kind.REMOVED, steps=s.steps) for s in before.values() if s.key not in after]
    return Difference(tuple(_fields(old, new, ("title", "author", "description"))), (*sessions, *gone))


def _lesson(old: Lesson, new: Lesson) -> list[Change]:
    found = _fields(old, new, ("title", "day")) + _in_steps(old.steps, new.steps)
    return found + ([Change("content", Kind.CHANGED)] if old.blueprint_hash != new.blueprint_hash else [])


def out_of_order(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Of the same names in two orders, as few as have to be moved to make one of the other."""
    place = {name: number for number, name in enumerate(old)}
    ends: list[int] = []  # the smallest place with which an ordered row of each length can end
    rows: list[int] = []
    for name in new:
        length = bisect.bisect_left(ends, place[name])
        ends[length : length + 1] = [place[name]]
        rows.append(length)
    kept, wanted = set[str](), len(ends) - 1
    for name, length in zip(reversed(new), reversed(rows), strict=True):
        if length == wanted:
            kept.add(name)
            wanted -= 1
    return [name for name in new if name not in kept]


def _session(old: CourseSession | None, new: CourseSession, *, is_moved: bool) -> SessionChange | None:
    if old is None:
        return SessionChange(new.key, new.title, Kind.ADDED, steps=_steps(new))
    details = (*_fields(old, new, ("title", "day")), *_blueprint(old.blueprint, new.blueprint))
    if details:
        return SessionChange(new.key, new.title, Kind.CHANGED, is_moved, details)
    return SessionChange(new.key, new.title, Kind.MOVED, is_moved=True) if is_moved else None


def _steps(session: CourseSession) -> tuple[str, ...]:
    return tuple(step.value for step in session.blueprint.steps)


def _fields(old: object, new: object, names: Sequence[str]) -> list[Change]:
    pairs = ((name, getattr(old, name), getattr(new, name)) for name in names)
    return [
        Change(name, _kind(a, b), old="" if a is None else str(a), new="" if b is None else str(b))
        for name, a, b in pairs
        if a != b
    ]


def _kind(old: object, new: object) -> Kind:
    return Kind.ADDED if old is None else Kind.REMOVED if new is None else Kind.CHANGED


def _blueprint(old: Blueprint, new: Blueprint) -> list[Change]:
    found = _in_steps([step.value for step in old.steps], [step.value for step in new.steps])
    found += _counted("page", old.learning_content, new.learning_content)
    found += _named("question", {q.id: q for q in old.check_questions}, {q.id: q for q in new.check_questions})
    found += _activity(old.practice_activity, new.practice_activity)
    return found + [Change(c.what, c.kind) for c in _fields(old, new, ("encouragement",))]


def _in_steps(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    if list(old) == list(new):
        return []
    more, fewer = Counter(new) - Counter(old), Counter(old) - Counter(new)
    found = [Change("step", Kind.ADDED, name, n=n) for name, n in more.items()]
    found += [Change("step", Kind.REMOVED, name, n=n) for name, n in fewer.items()]
    return found or [Change("steps", Kind.MOVED, old=" ".join(old), new=" ".join(new))]


def _counted(what: str, old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Of things without a name: as many as came and went were changed."""
    more, fewer = (Counter(new) - Counter(old)).total(), (Counter(old) - Counter(new)).total()
    counts = {Kind.ADDED: more - min(more, fewer), Kind.REMOVED: fewer - min(more, fewer)}
    counts[Kind.CHANGED] = min(more, fewer)
    found = [Change(what, kind, n=n) for kind, n in counts.items() if n]
    return found or ([] if list(old) == list(new) else [Change(what, Kind.MOVED)])


def _named(what: str, old: Mapping[str, Any], new: Mapping[str, Any], call: str = "") -> list[Change]:
    """`call`: the field by which a person knows it; unset: its id."""

    def name(id_: str, one: Any) -> str:
        return str(getattr(one, call)) if call else id_

    found = [Change(what, Kind.ADDED, name(i, one)) for i, one in new.items() if i not in old]
    found += [Change(what, Kind.REMOVED, name(i, one)) for i, one in old.items() if i not in new]
    found += [Change(what, Kind.CHANGED, name(i, one)) for i, one in new.items() if i in old and old[i] != one]
    moved = out_of_order([i for i in old if i in new], [i for i in new if i in old])
    return found + [Change(what, Kind.MOVED, name(i, new[i])) for i in moved if old[i] == new[i]]


def _activity(old: Activity | None, new: Activity | None) -> list[Change]:
    if old is None or new is None:
        return [] if old is new else [Change("practice", _kind(old, new))]
    found = [Change(c.what, c.kind) for c in _fields(old, new, ("instructions",))]
    found += _fields(old, new, ("template",))
    found += [c for c in _named("file", old.files, new.files) if c.kind is not Kind.MOVED]
    return found + _named("check", {c.id: c for c in old.checks}, {c.id: c for c in new.checks}, "title")
