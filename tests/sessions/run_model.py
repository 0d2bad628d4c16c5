"""What sessions, runs and keys should do, as simply as it can be said: one world, and requests that make the next one.

Nothing of the product is used here. `test_machine` compares the product with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

DAY = timedelta(hours=24)
RIGHT: dict[str, Any] = {"answers": {"loop-count": "b"}}
State = Mapping[str, Any]


@dataclass(frozen=True)
class Attempt:
    """A run. Its name is its session's with a number."""

    name: str
    step: int
    fence: int
    states: tuple[State, ...]
    active_at: datetime
    predecessor: str | None
    status: str = "RUNNING"
    reason: str | None = None
    tries: tuple[tuple[int, int], ...] = ()  # (step, how many)


@dataclass(frozen=True)
class Lesson:
    """A session."""

    owner: str
    steps: tuple[str, ...]
    status: str = "SCHEDULED"
    attempts: tuple[Attempt, ...] = ()

    @property
    def running(self) -> Attempt | None:
        return next((a for a in self.attempts if a.status == "RUNNING"), None)

    def put(self, attempt: Attempt, status: str | None = None) -> "Lesson":
        """In the place of the attempt with its name, or as a new one."""
        others = {a.name: a for a in self.attempts}
        return replace(self, attempts=(*(others | {attempt.name: attempt}).values(),), status=status or self.status)


@dataclass(frozen=True)
class Answer:
    """What a client is told: a refusal by its code, else the status and what matters of the run."""

    status: int
    code: str = ""
    run: tuple[Any, ...] = ()
    replayed: bool = False


@dataclass(frozen=True)
class Kept:
    """What a key stands for."""

    request: tuple[str, str | None]
    answer: Answer
    at: datetime


@dataclass(frozen=True)
class World:
    lessons: Mapping[str, Lesson]
    keys: Mapping[tuple[str, str], Kept] = field(default_factory=dict)
    events: int = 0

    def put(self, name: str, lesson: Lesson, events: int) -> "World":
        return replace(self, lessons={**self.lessons, name: lesson}, events=self.events + events)

    def find(self, run: str) -> tuple[str, Lesson, Attempt] | None:
        name = run.partition(".")[0]
        lesson = self.lessons.get(name)
        found = next((a for a in lesson.attempts if a.name == run), None) if lesson else None
        return (name, lesson, found) if lesson and found else None


def show(lesson: Lesson, a: Attempt) -> tuple[Any, ...]:
    """What a client sees of a run."""
    kind = lesson.steps[a.step] if a.step < len(lesson.steps) else None
    return (a.name, a.status, a.step, kind, a.fence, dict(a.states[-1]) if a.states else None, a.predecessor)


def refusal(status: int, code: str) -> Answer:
    return Answer(status, code)


@dataclass(frozen=True)
class Start:
    caller: str
    session: str
    key: str | None = None
    resume_from: str | None = None

    def apply(self, world: World, now: datetime) -> tuple[Answer, World]:
        kept = world.keys.get((self.caller, self.key)) if self.key else None
        if kept and now - kept.at <= DAY:
            if kept.request == (self.session, self.resume_from):
                return replace(kept.answer, replayed=True), world
            return refusal(409, "IDEMPOTENCY_KEY_CONFLICT"), world
        lesson = world.lessons[self.session]
        if lesson.owner != self.caller:
            return refusal(404, "SESSION_NOT_FOUND"), world
        if lesson.status == "COMPLETED":
            return refusal(409, "SESSION_ALREADY_COMPLETED"), world
        if lesson.status in {"SKIPPED", "CANCELED"}:
            return refusal(400, "INVALID_REQUEST"), world
        old = lesson.running
        if old and now - old.active_at <= DAY:
            attempt = replace(old, fence=old.fence + 1, active_at=now)
            return self._keep(
                Answer(200, run=show(lesson, attempt)), world.put(self.session, lesson.put(attempt), 1), now
            )
        return self._create(world, lesson, old, now)

    def _create(self, world: World, lesson: Lesson, old: Attempt | None, now: datetime) -> tuple[Answer, World]:
        source = next((a for a in lesson.attempts if a.name == self.resume_from), None)
        if self.resume_from and (source is None or source.status == "COMPLETED"):
            return refusal(400, "INVALID_REQUEST"), world
        if old:
            lesson = lesson.put(replace(old, status="ABANDONED", reason="inactive"))
        last = lesson.attempts[-1].name if lesson.attempts else None
        attempt = Attempt(
            f"{self.session}.{len(lesson.attempts)}",
            step=source.step if source else 0,
            fence=1,
            states=source.states if source else (),
            active_at=now,
            predecessor=source.name if source else last,
        )
        lesson = lesson.put(attempt, "IN_PROGRESS")
        return self._keep(Answer(201, run=show(lesson, attempt)), world.put(self.session, lesson, 4 if old else 2), now)

    def _keep(self, answer: Answer, world: World, now: datetime) -> tuple[Answer, World]:
        if self.key is None:
            return answer, world
        kept = Kept((self.session, self.resume_from), answer, now)
        return answer, replace(world, keys={**world.keys, (self.caller, self.key): kept})


@dataclass(frozen=True)
class Complete:
    caller: str
    run: str
    index: int
    fence: int
    state: State

    def apply(self, world: World, now: datetime) -> tuple[Answer, World]:
        found = world.find(self.run)
        if found is None or found[1].owner != self.caller:
            return refusal(404, "RUN_NOT_FOUND"), world
        name, lesson, a = found
        saved = 0 <= self.index < len(a.states) and a.states[self.index] == self.state
        if saved and self.fence == a.fence:
            return Answer(200, run=show(lesson, a)), world
        if a.status != "RUNNING":
            return refusal(409, "RUN_NOT_RUNNING"), world
        if self.fence != a.fence:
            return refusal(409, "RUN_TAKEN_OVER"), world
        if self.index != a.step:
            return refusal(409, "STEP_OUT_OF_ORDER"), world
        if lesson.steps[a.step] == "CHECK" and self.state != RIGHT:
            tries = dict(a.tries)
            tries[a.step] = tries.get(a.step, 0) + 1
            tried = replace(a, active_at=now, tries=tuple(sorted(tries.items())))
            return refusal(422, "CHECK_FAILED"), world.put(name, lesson.put(tried), 1)
        done = replace(a, step=a.step + 1, states=(*a.states, self.state), active_at=now)
        if done.step < len(lesson.steps):
            return Answer(200, run=show(lesson, done)), world.put(name, lesson.put(done), 1)
        done = replace(done, status="COMPLETED", reason="completed")
        return Answer(200, run=show(lesson, done)), world.put(name, lesson.put(done, "COMPLETED"), 2)


@dataclass(frozen=True)
class Write:
    """The page's heartbeat, or the learner gives up."""

    caller: str
    run: str
    fence: int
    abandons: bool

    def apply(self, world: World, now: datetime) -> tuple[Answer, World]:
        found = world.find(self.run)
        if found is None or found[1].owner != self.caller:
            return refusal(404, "RUN_NOT_FOUND"), world
        name, lesson, a = found
        if a.status != "RUNNING":
            return refusal(409, "RUN_NOT_RUNNING"), world
        if self.fence != a.fence:
            return refusal(409, "RUN_TAKEN_OVER"), world
        if not self.abandons:
            active = replace(a, active_at=now)
            return Answer(200, run=show(lesson, active)), world.put(name, lesson.put(active), 0)
        ended = replace(a, status="ABANDONED", reason="by_learner")
        return Answer(200, run=show(lesson, ended)), world.put(name, lesson.put(ended, "SCHEDULED"), 2)


@dataclass(frozen=True)
class Close:
    """Skip or cancel."""

    caller: str
    session: str
    to: str

    def apply(self, world: World, now: datetime) -> tuple[Answer, World]:
        lesson = world.lessons[self.session]
        if lesson.owner != self.caller:
            return refusal(404, "SESSION_NOT_FOUND"), world
        if lesson.status not in {"SCHEDULED", "IN_PROGRESS"}:
            return refusal(409, "INVALID_TRANSITION"), world
        if a := lesson.running:
            lesson = lesson.put(replace(a, status="ABANDONED", reason=f"session_{self.to.lower()}"))
        return Answer(200), world.put(self.session, replace(lesson, status=self.to), 2 if a else 1)


Request = Start | Complete | Write | Close


def sweep(world: World, now: datetime) -> World:
    for name, lesson in world.lessons.items():
        a = lesson.running
        if a and now - a.active_at > DAY:
            ended = replace(a, status="ABANDONED", reason="inactive")
            world = world.put(name, lesson.put(ended, "SCHEDULED"), 2)
    return world
