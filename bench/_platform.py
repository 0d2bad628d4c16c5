"""The API of a platform under measurement, as a program uses it. For `class_ends` and `scenarios`."""

import asyncio

import aiohttp

LONGEST_SECONDS = 600.0  # until something counts as hanging


class Api:
    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client

    async def ask(self, method: str, path: str, **body: object) -> dict[str, object]:
        async with self._client.request(method, f"/api/v1{path}", json=body or None) as answer:
            told: dict[str, object] = await answer.json()
            assert answer.status < 300, told
            return told

    async def until(self, id_: str, phase: str, pause: float) -> None:
        """A workspace is in this phase, and nothing is under way."""
        async with asyncio.timeout(LONGEST_SECONDS):
            while True:
                w = await self.ask("GET", f"/workspaces/{id_}")
                if (w["phase"], w["operation"]) == (phase, "NONE"):
                    return
                assert w["phase"] != "ERROR", w["error_info"]
                await asyncio.sleep(pause)
