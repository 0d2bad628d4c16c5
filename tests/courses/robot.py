"""A learner that is a program: takes a whole course through the API, in a real workspace, as its folder says it.

Every question is answered wrongly first, and every PRACTICE is failed by each of the folder's wrong solutions before
its reference solution passes: a course whose checks let a mistake through, or refuse what is right, fails its tests.
"""

import asyncio
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codehub.courses import folder as folders
from codehub.courses.source import CourseSession, Source
from codehub.sessions import blueprint
from codehub.sessions.blueprint import Question, Step
from tests.sessions.practice_lab import Pupil

# Nothing that an earlier attempt left, also not hidden; of the shell's own commands, for a home has few files.
EMPTY = "find . -mindepth 1 -delete"


@dataclass
class Robot:
    pupil: Pupil
    course: pathlib.Path
    failed: int = 0  # attempts that were refused, as they should be
    passed: int = 0  # steps

    async def take(self, only: Sequence[str] = ()) -> None:
        """All sessions of the course, or those of these keys."""
        source = folders.load(self.course)
        places = sorted(path.parent for path in self.course.glob("*/session.md"))
        plan = await self._take_up(source)
        assert plan["title"] == source.title
        sessions = {session["key"]: session["id"] for session in plan["sessions"]}
        assert list(sessions) == [session.key for session in source.sessions]
        chosen = [(s, at) for s, at in zip(source.sessions, places, strict=True) if not only or s.key in only]
        for session, place in chosen:
            await self._learn(session, place, sessions[session.key])
        plan = await self.pupil.get(f"/plans/{plan['id']}")
        assert plan["progress"]["COMPLETED"] == len(chosen), plan

    async def _take_up(self, source: Source) -> Any:
        """As the platform installed it."""
        async with asyncio.timeout(60):
            while not (found := await self.pupil.get(f"/courses?key={source.key}&language={source.language}"))["items"]:
                await asyncio.sleep(0.1)
        status, plan = await self.pupil.ask(
            "POST", f"/courses/{found['items'][0]['id']}/plans", {"starts_on": "2026-03-02"}
        )
        assert status == 201, plan
        return plan

    async def _learn(self, session: CourseSession, place: pathlib.Path, session_id: str) -> None:
        run = await self.pupil.started(session_id)
        for index, step in enumerate(session.blueprint.steps):
            state: dict[str, Any] = {}
            match step:
                case Step.CHECK:
                    state = await self._answer(session, run, index)
                case Step.PRACTICE:
                    await self._practise(place, run, index)
            status, done = await self._complete(run, index, state)
            assert status == 200, (place, index, done)
            self.passed += 1
        assert done["status"] == "COMPLETED", done

    async def _answer(self, session: CourseSession, run: Any, index: int) -> dict[str, Any]:
        steps = session.blueprint.steps
        k, n = steps[:index].count(Step.CHECK), steps.count(Step.CHECK)
        questions = blueprint.share(session.blueprint.check_questions, n, k)
        status, refused = await self.pupil.complete(run, index, {"answers": {q.id: wrong(q) for q in questions}})
        assert (status, refused["code"]) == (422, "CHECK_FAILED"), refused
        assert sorted(refused["wrong"]) == sorted(q.id for q in questions)
        self.failed += 1
        return {"answers": {q.id: right(q) for q in questions}}

    async def _practise(self, place: pathlib.Path, run: Any, index: int) -> None:
        """Ends with the reference solution in place."""
        solutions = place / "solutions"
        wrong_ones = sorted(solutions.glob("wrong-*.sh"))
        assert len(wrong_ones) >= 2, f"{solutions}: at least two wrong solutions say what its checks are for"
        await self.pupil.opened(run)
        for attempt in wrong_ones:
            await self._try(run, attempt)
            status, refused = await self._complete(run, index)
            assert (status, refused["code"]) == (422, "PRACTICE_FAILED"), (attempt, refused)
            said = [check for check in refused["checks"] if not check["passed"]]
            assert all(check["output"] or check["hint"] for check in said), (attempt, said)
            self.failed += 1
        await self._try(run, solutions / "reference.sh")

    async def _complete(self, run: Any, index: int, state: object = None) -> tuple[int, Any]:
        """Asks again while the checks are at work, as a page does: an endless loop takes seconds in each of them."""
        while True:
            status, answer = await self.pupil.complete(run, index, state)
            if answer.get("code") != "PRACTICE_BUSY":
                return status, answer

    async def _try(self, run: Any, solution: pathlib.Path) -> None:
        """In a home as the session begins with it."""
        w = await self.pupil.opened(run)
        await self.pupil.sh(w, EMPTY)
        w = await self.pupil.opened(run)  # puts the starter files there again
        await self.pupil.run_script(w, solution.read_text(encoding="utf-8"))


def right(question: Question) -> str | list[str]:
    return list(question.answers) if question.kind == "multiple" else question.answers[0]


def wrong(question: Question) -> str | list[str]:
    """Something that could be chosen, and is not the answer."""
    if question.kind == "text":
        return "no answer of mine"
    others = [choice.id for choice in question.choices if choice.id not in question.answers]
    if question.kind == "single":
        return others[0]
    return others[:1] or list(question.answers)[:-1]
