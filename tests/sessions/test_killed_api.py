"""kill -9 of an API process while pages start sessions and save steps: what a page was told is saved is there."""

import asyncio
import json
import pathlib
import random
from typing import Any

import aiohttp
import pytest

from codehub.settings import Settings
from tests.sessions.learning import LEARN
from tests.sessions.processes import ApiProcess, Insistent, fleet

PAGES = 8
STEPS = 40
LONG = {**LEARN, "steps": [*["LEARN"] * STEPS, "COMPLETE"]}
DICE = random.Random(20260302)


class Page:
    """Starts a session and saves one step after the other, until its server is gone; knows what it was told."""

    def __init__(self, name: str, client: aiohttp.ClientSession, url: str, session_id: str) -> None:
        self._client = client
        self._url = url
        self.name = name
        self.start = (f"/sessions/{session_id}/runs", None, f"start-{session_id}")
        self.started: bytes | None = None
        self.saved: list[dict[str, Any]] = []  # what was acknowledged
        self.under_way: tuple[str, Any, str | None] | None = None

    async def run(self) -> None:
        try:
            self.started = await self._send(*self.start)
            run = json.loads(self.started)
            for index in range(STEPS + 1):
                state = {"page": self.name, "step": index, "text": "x" * DICE.randint(0, 2000)}
                body = {"fence": run["fence"], "state": state}
                await self._send(f"/runs/{run['id']}/steps/{index}/complete", body)
                self.saved.append(state)
        except (aiohttp.ClientError, ConnectionError):
            return  # the server is gone, and something was under way

    async def _send(self, path: str, body: Any, key: str | None = None) -> bytes:
        self.under_way = (path, body, key)
        headers = {"Idempotency-Key": key} if key else {}
        async with self._client.post(f"{self._url}/api/v1{path}", json=body, headers=headers) as answer:
            text = await answer.read()
            assert answer.status in {200, 201}, text
        self.under_way = None
        return text


async def kill_under_load(victim: ApiProcess, pages: list[Page]) -> None:
    running = [asyncio.create_task(page.run()) for page in pages]
    wanted = DICE.randint(PAGES, 6 * PAGES)
    async with asyncio.timeout(60):
        while sum(len(page.saved) for page in pages) < wanted:
            await asyncio.sleep(0.001)
    await asyncio.sleep(DICE.uniform(0, 0.05))
    victim.process.kill()
    victim.process.wait(30)
    await asyncio.gather(*running)


async def is_as_told(page: Page, mina: Insistent) -> None:
    """By another process: all that was acknowledged, at most the one that was under way more, and it goes on."""
    told = await mina.ask("POST", *page.start)
    assert told.status == 201
    assert page.started in {None, told.body}
    run = json.loads(told.body)
    now = json.loads((await mina.ask("GET", f"/runs/{run['id']}")).body)
    kept = json.loads((await mina.ask("GET", f"/runs/{run['id']}/snapshots?limit=200")).body)["items"]
    assert [snapshot["step_index"] for snapshot in kept] == list(range(now["step_index"]))
    assert [snapshot["state"] for snapshot in kept[: len(page.saved)]] == page.saved
    assert len(kept) - len(page.saved) in {0, 1}
    if page.under_way:
        again = await mina.ask("POST", *page.under_way)
        assert again.status in {200, 201}
        if page.under_way[1]:
            assert json.loads(again.body)["step_index"] == len(page.saved) + 1


async def one_round(mina: Insistent, victim: ApiProcess, number: int) -> int:
    sessions = await mina.made(LONG, PAGES)
    pages = [Page(f"{number}-{n}", mina.client, victim.url, id_) for n, id_ in enumerate(sessions)]
    await kill_under_load(victim, pages)
    assert any(page.under_way for page in pages)
    for page in pages:
        await is_as_told(page, mina)
    return sum(len(page.saved) for page in pages)


@pytest.mark.parametrize("rounds", [1, pytest.param(25, marks=pytest.mark.soak)])
async def test_what_a_page_was_told_is_saved_is_there_after_its_server_was_killed(
    settings: Settings, tmp_path: pathlib.Path, rounds: int
) -> None:
    saved = 0
    async with fleet(settings, tmp_path, 1) as apis, apis.learner() as mina:
        for number in range(rounds):
            (victim,) = await apis.start(1)
            saved += await one_round(mina, victim, number)
    print(f"{rounds} times killed: {saved} steps that were acknowledged, all of them there")
