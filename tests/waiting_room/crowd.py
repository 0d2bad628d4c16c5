"""People who wait over HTTP, at several API processes that are killed, while Redis is restarted, emptied and stopped.

In real time. Used by `test_killed_processes.py`; what they are answered goes to the recorder, and to `verdicts`.
"""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import aiohttp

from tests.waiting_room.histories import Answer, Kind, Op
from tests.waiting_room.recording import CODES, Recorder

ENOUGH = aiohttp.ClientTimeout(total=20)


class Person:
    """Joins, polls, enters, gives the place back, and begins again; sometimes leaves, or is silent for a while."""

    def __init__(
        self, name: str, token: str, urls: Callable[[], list[str]], recorder: Recorder, chance: random.Random
    ) -> None:
        self.name = name
        self._headers = {"Authorization": f"Bearer {token}"}
        self._urls, self._recorder, self._chance = urls, recorder, chance
        self._token = ""

    async def live(self, client: aiohttp.ClientSession, until: float) -> None:
        while time.time() < until:
            joined = await self._ask(client, Kind.JOIN)
            if joined is not None:
                await self._wait(client, until)
            await asyncio.sleep(self._chance.uniform(0.05, 0.5))

    async def _wait(self, client: aiohttp.ClientSession, until: float) -> None:
        ignores = self._chance.random() < 0.15
        while time.time() < until:
            polled = await self._ask(client, Kind.POLL)
            if polled is not None and polled["ready_for_entry"] and not ignores:
                if await self._ask(client, Kind.ENTER) is not None:
                    await asyncio.sleep(self._chance.uniform(0.2, 2.0))
                    await self._give_back(client)
                    return
            elif self._chance.random() < 0.01:
                await self._ask(client, Kind.LEAVE)
                return
            if self._last is Answer.EXPIRED:
                return
            silent = self._chance.random() < 0.01
            await asyncio.sleep(8.0 if silent else self._chance.uniform(0.2, 1.0))

    async def finally_asked(self, client: aiohttp.ClientSession) -> None:
        if self._token:
            await self._ask(client, Kind.POLL)

    async def _ask(self, client: aiohttp.ClientSession, kind: Kind) -> Any:
        """Once. None: refused, or not known."""
        begin, seq = time.time(), self._recorder.seq(self._token) if self._token and kind is not Kind.JOIN else 0
        answer, body = Answer.AWAY, None
        try:
            async with self._request(client, kind) as response:
                body = await response.json() if response.status != 204 else {}
                code = body.get("error", {}).get("code", "")
                answer = Answer.OK if response.status < 300 else CODES.get(code, Answer.AWAY)
                new = response.status == 201
        except (aiohttp.ClientError, TimeoutError, ConnectionError):
            pass  # the process is gone: it may have been done
        end, shown = time.time(), {}
        if answer is Answer.OK and body is not None:
            shown = self._shown(kind, seq, body, new=new)
        self._last = answer
        self._recorder.history.ops.append(
            Op(kind, begin, end, begin, end, self.name, answer=answer, **{"seq": seq, **shown})
        )
        return body if answer is Answer.OK else None

    def _request(self, client: aiohttp.ClientSession, kind: Kind) -> Any:
        url = f"{self._chance.choice(self._urls())}/api/v1/queue"
        match kind:
            case Kind.JOIN:
                sent = {"event_id": self._recorder.event, "user_id": self.name}
                return client.post(f"{url}/join", json=sent, headers=self._headers, timeout=ENOUGH)
            case Kind.ENTER:
                return client.post(f"{url}/enter", json={"waiting_token": self._token}, timeout=ENOUGH)
            case Kind.LEAVE:
                return client.delete(f"{url}/leave", params={"token": self._token}, timeout=ENOUGH)
        return client.get(f"{url}/status", params={"token": self._token}, timeout=ENOUGH)

    def _shown(self, kind: Kind, seq: int, body: dict[str, Any], *, new: bool) -> dict[str, Any]:
        if kind is Kind.ENTER:
            return {"reservation": body["reservation_token"]}
        if kind is Kind.LEAVE:
            return {}
        self._token = body["waiting_token"]
        counts = self._recorder.know(self._token)
        deadline = body["offer_expires_at"]
        return {
            "seq": counts if kind is Kind.JOIN else seq,
            "stands": 0 if kind is Kind.JOIN or counts == seq else counts,
            "new": new,
            "position": body["position"],
            "ready": body["ready_for_entry"],
            "passed": body["passed"],
            "deadline": datetime.fromisoformat(deadline).timestamp() if deadline else None,
        }

    async def _give_back(self, client: aiohttp.ClientSession) -> None:
        while True:
            url = f"{self._chance.choice(self._urls())}/api/v1/queue/events/{self._recorder.event}/place"
            try:
                async with client.delete(url, headers=self._headers, timeout=ENOUGH) as response:
                    if response.status in {204, 404}:
                        return
            except (aiohttp.ClientError, TimeoutError, ConnectionError):
                pass
            await asyncio.sleep(0.1)
