"""Answers, feedback and the commands of checks reach no learner before they were checked, whatever is fetched.

Every route that the application has is fetched, found in its own table, so that a new one is, too; and the event
stream, refusals and everything that the API logs are looked through.
"""

import asyncio
import contextlib
import itertools
import json
import pathlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from starlette.routing import BaseRoute

from codehub.courses import folder, source
from codehub.settings import Settings
from codehub.web.app import create_app
from codehub.web.services import Services
from tests.courses.archives import zipped
from tests.platform import ADMIN_TOKEN
from tests.sessions.learning import QUESTION
from tests.sessions.processes import fleet

SECRETS = {
    "the answer": "xq-answer-xq",
    "another answer": "xq-second-answer-xq",
    "feedback of a choice": "xq-feedback-single-xq",
    "feedback of a text": "xq-feedback-text-xq",
    "feedback of several": "xq-feedback-multiple-xq",
    "a command": "xq-command-xq",
    "a hint": "xq-hint-xq",
}
CHECKED = SECRETS["feedback of a choice"]  # what the wrong answer below is told
MARK = "xq-"
LESSON = {
    "steps": ["LEARN", "CHECK", "PRACTICE", "COMPLETE"],
    "learningContent": ["# Hello"],
    "checkQuestions": [
        {**QUESTION, "feedback": {"a": CHECKED}},
        {
            "id": "text",
            "kind": "text",
            "prompt": "Which?",
            "answer": [SECRETS["the answer"], SECRETS["another answer"]],
            "feedback": {"no": SECRETS["feedback of a text"]},
        },
        {
            "id": "several",
            "kind": "multiple",
            "prompt": "Which?",
            "choices": [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}],
            "answer": ["a"],
            "feedback": {"b": SECRETS["feedback of several"]},
        },
    ],
    "practiceActivity": {
        "instructions": "Do it.",
        "checks": [{"id": "one", "title": "One", "command": SECRETS["a command"], "hint": SECRETS["a hint"]}],
    },
    "encouragement": "Well done",
}
WRONG = {"answers": {"loop-count": "a"}}
PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
STREAM_SECONDS = 0.3  # of a stream that is fetched among all the others


@dataclass
class Fetched:
    """Everything that the learner got, and from where."""

    pieces: list[tuple[str, str]] = field(default_factory=list)

    def add(self, where: str, text: str) -> str:
        self.pieces.append((where, text))
        return text

    def secrets(self) -> set[tuple[str, str]]:
        return {(where, found) for where, text in self.pieces for found in re.findall(r"xq-[\w-]+", text)}


@dataclass(frozen=True)
class Learner:
    """A client that notes whatever it gets."""

    client: aiohttp.ClientSession
    url: str
    fetched: Fetched

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, str]:
        async with self.client.request(
            method, f"{self.url}{path}", json=body, headers=headers, allow_redirects=False
        ) as answer:
            text = f"{dict(answer.headers)}\n{await _text(answer)}"
        return answer.status, self.fetched.add(f"{method} {path}", text)

    async def post(self, path: str, body: object = None) -> tuple[int, Any]:
        status, text = await self.ask("POST", f"/api/v1{path}", body)
        return status, json.loads(text.partition("\n")[2])

    async def follow(self) -> None:
        """The event stream, for as long as the test lasts."""
        async with self.client.get(f"{self.url}/api/v1/events", timeout=aiohttp.ClientTimeout(total=None)) as answer:
            async for line in answer.content:
                self.fetched.add("events", line.decode())


async def _text(answer: aiohttp.ClientResponse) -> str:
    if "event-stream" not in answer.content_type:
        return (await answer.read()).decode("utf-8", "replace")
    parts: list[bytes] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STREAM_SECONDS):
            async for line in answer.content:
                parts.append(line)  # noqa: PERF401 (what came until the time is over is kept)
    return b"".join(parts).decode()


def addresses(routes: Iterable[BaseRoute], ids: dict[str, str]) -> Iterator[str]:
    """Of every route that can be fetched. `ids`: by the word before them in an address; elsewhere each is tried."""
    for route in routes:
        path = getattr(route, "path", "")
        if "GET" not in (getattr(route, "methods", None) or ()):
            continue
        names = [(found[1], path[: found.start()].rstrip("/").rpartition("/")[2]) for found in PARAMETER.finditer(path)]
        choices = [[ids[before]] if before in ids else list(ids.values()) for _, before in names]
        for values in itertools.product(*choices):
            yield PARAMETER.sub("{}", path).format(*values)


SAYS_HOW_BUSY = {"/readyz"}  # 503 where the database takes long to answer


async def fetch_all(mina: Learner, services: Services, ids: dict[str, str]) -> int:
    """Each as a program and as a browser would; returns how many were there."""
    few_at_once = asyncio.Semaphore(6)

    async def fetch(path: str, accept: str) -> int:
        async with few_at_once:
            status, text = await mina.ask("GET", path, accept=accept)
            assert status < 500 or path in SAYS_HOW_BUSY, (path, text)
            return status

    paths = set(addresses(create_app(services).routes, ids))
    both = ("application/json", "text/html")
    return (await asyncio.gather(*(fetch(path, accept) for path in paths for accept in both))).count(200)


async def made(mina: Learner, path: str, sessions: dict[str, Any], *, by_admin: bool = False, **more: str) -> Any:
    """A plan or a course with the lesson."""
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"} if by_admin else {}
    body = {"title": "Plan", "sessions": [{"title": "Day", "blueprint": LESSON, **sessions}], **more}
    async with mina.client.post(f"{mina.url}/api/v1{path}", json=body, headers=headers) as answer:
        assert answer.status == 201, await answer.text()
        if not by_admin:
            mina.fetched.add(path, await answer.text())
        return await answer.json()


async def drafted(mina: Learner) -> str:
    """The same, brought by a teacher as an archive, and not saved yet."""
    admin, users = {"Authorization": f"Bearer {ADMIN_TOKEN}"}, f"{mina.url}/api/v1/users"
    async with mina.client.post(users, json={"name": "kim", "role": "teacher"}, headers=admin) as answer:
        assert answer.status == 201, await answer.text()
    async with mina.client.post(f"{users}/kim/tokens", json={}, headers=admin) as answer:
        token = (await answer.json())["token"]
    sessions = [{"key": "one", "title": "Day", "day": 1, "blueprint": LESSON}]
    texts = folder.texts(source.parse({"key": "c", "title": "Course", "language": "en", "sessions": sessions}))
    form = aiohttp.FormData()
    form.add_field("file", zipped(texts), filename="course.zip")
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{mina.url}/courses/import"
    async with mina.client.post(url, data=form(), headers=headers, allow_redirects=False) as answer:
        assert answer.status == 303, await answer.text()
        path = answer.headers["location"]
    async with mina.client.get(f"{mina.url}{path}/preview/one?step=1", headers=headers) as answer:
        assert SECRETS["the answer"] in await answer.text()
    return path.rpartition("/")[2]


async def refusals(mina: Learner, run: Any) -> None:
    """Wrong in every way that comes to mind; of a CHECK, what it says about the choice that was made is allowed."""
    steps = f"/runs/{run['id']}/steps"
    for body in (
        None,
        {},
        {"fence": 1},
        {"fence": "x", "state": []},
        {"fence": 2, "state": WRONG},
        {"fence": 1, "state": 7},
    ):
        await mina.post(f"{steps}/1/complete", body)
    for index in (0, 2, 3, 4, 5000):
        await mina.post(f"{steps}/{index}/complete", {"fence": 1, "state": WRONG})
    tried: list[Any] = [{}, [], {"text": "no way"}, {"several": ["c"]}, {"unknown": "a"}, {"text": {"a": 1}}]
    for answers in tried:
        status, problem = await mina.post(f"{steps}/1/complete", {"fence": 1, "state": {"answers": answers}})
        assert (status, problem["code"]) == (422, "CHECK_FAILED")


async def test_no_answer_reaches_a_learner_before_it_was_checked(
    settings: Settings, services: Services, tmp_path: pathlib.Path
) -> None:
    async with fleet(settings, tmp_path, 1, log_level="debug") as apis, apis.learner() as client:
        mina = Learner(client.client, apis.processes[0].url, Fetched())
        following = asyncio.create_task(mina.follow())
        day = {"scheduled_for_date": "2026-03-02"}
        await made(mina, "/plans", day)
        plan = await made(mina, "/plans", day, by_admin=True, owner="mina")
        course = await made(mina, "/courses", {"key": "one", "day": 1}, by_admin=True, language="en")
        await mina.post(f"/courses/{course['id']}/plans", {"starts_on": "2026-03-02"})
        session_id = plan["sessions"][0]["id"]
        status, run = await mina.post(f"/sessions/{session_id}/runs")
        assert status == 201
        await mina.post(f"/runs/{run['id']}/steps/0/complete", {"fence": 1})
        await refusals(mina, run)
        assert mina.fetched.secrets() == set()

        step = f"/runs/{run['id']}/steps/1/complete"
        status, problem = await mina.post(step, {"fence": 1, "state": WRONG})
        assert (status, problem["feedback"]) == (422, {"loop-count": CHECKED})
        ids = {"plans": plan["id"], "sessions": session_id, "runs": run["id"], "courses": course["id"], "users": "mina"}
        ids |= {"preview": "one", "versions": "1", "drafts": await drafted(mina)}
        assert await fetch_all(mina, services, ids) > 15
        assert mina.fetched.secrets() == {(f"POST /api/v1{step}", CHECKED)}

        right = {"answers": {"loop-count": "b", "text": SECRETS["the answer"], "several": ["a"]}}
        status, _ = await mina.post(step, {"fence": 1, "state": right})
        assert status == 200
        await mina.post(f"/runs/{run['id']}/steps/2/complete", {"fence": 1})
        await fetch_all(mina, services, ids)
        # What she wrote herself is hers to read; nothing else is.
        assert {secret for _, secret in mina.fetched.secrets()} == {CHECKED, SECRETS["the answer"]}
        assert [text for where, text in mina.fetched.pieces if where == "events" and "run_updated" in text]
        following.cancel()
        log = apis.processes[0].log.read_text()
    assert MARK not in log
    assert "request_id" in log
