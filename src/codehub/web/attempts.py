"""What a learner last sent for a step, and what came of it: `player` notes it, `player_view` puts it on the page.

A form is answered by 303, so what its page then shows has to be kept somewhere meanwhile: here in Redis, for a day, one
entry for a run and step. Without Redis the page says less; what was saved with a step is in the database.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from codehub.db.redis import FAILURES, Client

KEPT_SECONDS = 86400


@dataclass(frozen=True)
class Attempt:
    answers: Mapping[str, Any] = field(default_factory=dict)  # of a CHECK, by question id
    wrong: Sequence[str] | None = None  # ids of questions; None: they were not looked at
    feedback: Mapping[str, str] = field(default_factory=dict)
    checks: Sequence[Mapping[str, Any]] = ()  # of a PRACTICE


NOTHING = Attempt()


class Attempts:
    def __init__(self, client: Client) -> None:
        self._redis = client

    async def note(self, run_id: str, index: int, attempt: Attempt) -> None:
        await self._set(f"{run_id}:{index}", asdict(attempt))

    async def of(self, run_id: str, index: int) -> Attempt:
        found = await self._get(f"{run_id}:{index}")
        return Attempt(**found) if isinstance(found, dict) else NOTHING

    async def note_files(self, run_id: str, workspace_id: str, files: Sequence[Mapping[str, str]]) -> None:
        """What became of the starter files."""
        await self._set(f"files:{run_id}:{workspace_id}", list(files))

    async def files(self, run_id: str, workspace_id: str) -> list[dict[str, str]] | None:
        """None: they were not put there yet, as far as is known."""
        found = await self._get(f"files:{run_id}:{workspace_id}")
        return found if isinstance(found, list) else None

    async def _set(self, key: str, value: object) -> None:
        try:
            await self._redis.set(f"codehub:attempt:{key}", json.dumps(value), ex=KEPT_SECONDS)
        except FAILURES:
            return

    async def _get(self, key: str) -> object:
        try:
            found = await self._redis.get(f"codehub:attempt:{key}")
        except FAILURES:
            return None
        parsed: object = json.loads(found) if found else None
        return parsed
