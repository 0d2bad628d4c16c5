"""What a new version changes, and on which day a session is. Pure; asked by `service`."""

import hashlib
from collections.abc import Sequence
from datetime import date, timedelta

from codehub.courses import source
from codehub.courses.model import Course, Lesson
from codehub.courses.source import Source
from codehub.errors import InvalidRequestError
from codehub.sessions.revisions import Planned, Revision

MOST_VERSIONS = 1000  # of a course: every one is kept
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2200, 1, 1)  # on which a plan may start


def digest(course: Source) -> str:
    return hashlib.sha256(source.canonical(course).encode()).hexdigest()


def not_offered(course: Course) -> str:
    """Why a course that is withdrawn is not taken up."""
    who = f"ask {course.owner}, whose it is," if course.owner else "ask an admin"
    return f"{course.title} is withdrawn: {who} to offer it again, or choose another course"


def on(starts_on: date, day: int) -> date:
    """Day 1 is the day it starts."""
    return starts_on + timedelta(days=day - 1)


def check_day(starts_on: date | None) -> None:
    """On which a plan may start; None: today."""
    if starts_on is not None and not FIRST_DAY <= starts_on <= LAST_DAY:
        raise InvalidRequestError(f"must be from {FIRST_DAY} to {LAST_DAY}", field="starts_on")


def planned(lesson: Lesson) -> Planned:
    return Planned(lesson.key, lesson.title, lesson.day, lesson.blueprint_hash)


def revision(old: Sequence[Lesson], new: Sequence[Lesson]) -> Revision:
    before = {lesson.key: planned(lesson) for lesson in old}
    after = {lesson.key: planned(lesson) for lesson in new}
    added = [session for key, session in after.items() if key not in before]
    as_appended = [key for key in before if key in after] + [session.key for session in added]
    return Revision(
        changed=[session for key, session in after.items() if key in before and before[key] != session],
        added=added,
        gone=[key for key in before if key not in after],
        order=None if list(after) == as_appended else list(after),
    )
