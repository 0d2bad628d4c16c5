"""What tests of sessions share: a learner with a plan, and the requests of their page."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from codehub.command import operator
from codehub.policy.model import Role
from tests.web.server import Site

LEARN = {"steps": ["LEARN", "COMPLETE"], "learningContent": ["# Hello"], "encouragement": "Well done"}
QUESTION = {
    "id": "loop-count",
    "kind": "single",
    "prompt": "How many?",
    "choices": [{"id": "a", "text": "2"}, {"id": "b", "text": "3"}],
    "answer": "b",
    "feedback": {"a": "It begins at 0."},
}
FULL = {
    "steps": ["LEARN", "CHECK", "PRACTICE", "COMPLETE"],
    "learningContent": ["# Hello"],
    "checkQuestions": [QUESTION],
    "practiceActivity": {
        "instructions": "Do it.",
        "checks": [{"id": "one", "title": "One", "command": "test -f secret-place", "hint": "Look again."}],
    },
    "encouragement": "Well done",
}
CHECK = {**LEARN, "steps": ["LEARN", "CHECK", "COMPLETE"], "checkQuestions": [QUESTION]}
RIGHT = {"answers": {"loop-count": "b"}}
Reply = tuple[int, Any]


@dataclass(frozen=True)
class Learner:
    """One person's page or program."""

    client: aiohttp.ClientSession

    async def request(self, method: str, path: str, body: object = None, **headers: str) -> aiohttp.ClientResponse:
        async with self.client.request(method, f"/api/v1{path}", json=body, headers=headers) as answer:
            await answer.read()
            return answer

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        answer = await self.request(method, path, body, **headers)
        return answer.status, await answer.json()

    async def get(self, path: str) -> Any:
        status, found = await self.ask("GET", path)
        assert status == 200, found
        return found

    async def plan(self, *blueprints: Any, **more: Any) -> Any:
        sessions = [
            {"title": f"Day {n}", "scheduled_for_date": f"2026-03-0{n}", "blueprint": blueprint}
            for n, blueprint in enumerate(blueprints or (LEARN,), start=1)
        ]
        status, made = await self.ask("POST", "/plans", {"title": "Plan", "sessions": sessions, **more})
        assert status == 201, made
        return made

    async def session(self, blueprint: Any = None, **more: Any) -> str:
        plan = await self.plan(blueprint or LEARN, **more)
        return str(plan["sessions"][0]["id"])

    async def start(self, session_id: str, key: str | None = None, **body: Any) -> Reply:
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self.ask("POST", f"/sessions/{session_id}/runs", body or None, **headers)

    async def started(self, session_id: str, **body: Any) -> Any:
        status, run = await self.start(session_id, **body)
        assert status in {200, 201}, run
        return run

    async def complete(self, run: Any, index: int, state: object = None, fence: int | None = None) -> Reply:
        body = {"fence": run["fence"] if fence is None else fence, "state": {} if state is None else state}
        return await self.ask("POST", f"/runs/{run['id']}/steps/{index}/complete", body)

    async def abandon(self, run: Any, **more: Any) -> Reply:
        return await self.ask("POST", f"/runs/{run['id']}/abandon", {"fence": run["fence"], **more})

    async def finish(self, run: Any, states: Sequence[object]) -> Any:
        for index, state in enumerate(states):
            status, run = await self.complete(run, index, state)
            assert status == 200, run
        return run


async def add(site: Site, name: str, role: Role = Role.LEARNER) -> None:
    await site.services.people.create_user(operator(), name, role)


@contextlib.asynccontextmanager
async def learner(site: Site, name: str = "mina", role: Role = Role.LEARNER) -> AsyncIterator[Learner]:
    """A new person, with a token."""
    await add(site, name, role)
    async with site.client(await site.token(name)) as client:
        yield Learner(client)
