"""What is learnt, and by whom: sessions, courses and what classes are given; built once for an API process."""

from collections.abc import Callable
from dataclasses import dataclass

from codehub.assignments.hands import Hands
from codehub.assignments.service import Assignments
from codehub.classes.service import Classes
from codehub.clock import Clock
from codehub.courses.drafts import Drafts
from codehub.courses.service import Courses
from codehub.db import Database
from codehub.sessions.blueprints import Blueprints
from codehub.sessions.practice import Practice
from codehub.sessions.practice_results import PracticeResults
from codehub.sessions.runs import Runs
from codehub.sessions.service import Sessions
from codehub.settings import Settings
from codehub.templates.loader import Templates
from codehub.workspaces.service import Workspaces


@dataclass(frozen=True)
class LearningServices:
    sessions: Sessions
    runs: Runs
    practice: Practice
    courses: Courses
    course_drafts: Drafts
    assignments: Assignments
    hands: Hands


def build(
    settings: Settings,
    database: Database,
    clock: Clock,
    templates: Templates,
    workspaces: Workspaces,
    classes: Classes,
    results: PracticeResults,
    publish: Callable[[], None],
) -> LearningServices:
    """`publish`: called after a change of sessions or runs, for its events."""
    blueprints = Blueprints()
    practice = Practice(database, clock, settings.practice, workspaces, blueprints, results)
    sessions = Sessions(database, clock, settings.sessions, templates, blueprints, publish)
    courses = Courses(database, clock, settings.sessions, sessions)
    runs = Runs(database, clock, settings.sessions, blueprints, practice, publish)
    return LearningServices(
        sessions=sessions,
        runs=runs,
        practice=practice,
        courses=courses,
        course_drafts=Drafts(database, clock, courses),
        assignments=Assignments(database, clock, classes, courses),
        hands=Hands(database, clock, classes, runs),
    )
