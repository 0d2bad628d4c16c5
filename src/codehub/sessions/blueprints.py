"""Blueprints by their hash, kept in the process: read often, never changed. For `Sessions`, `Runs` and their API."""

import json
from collections import OrderedDict
from dataclasses import dataclass

from codehub.db import Connection
from codehub.sessions import blueprint, store
from codehub.sessions.blueprint import Activity, Blueprint, Question, Step

MOST = 200  # of up to 256 KB each


@dataclass(frozen=True)
class Lesson:
    """A blueprint, and what is asked of it again and again."""

    blueprint: Blueprint
    steps: tuple[Step, ...]
    learners_view: str  # JSON
    view_hash: str

    def questions(self, index: int) -> tuple[Question, ...]:
        """Of the CHECK at this step."""
        k, n = self.steps[:index].count(Step.CHECK), self.steps.count(Step.CHECK)
        return tuple(blueprint.share(self.blueprint.check_questions, n, k))

    @property
    def activity(self) -> Activity | None:
        return self.blueprint.practice_activity


class Blueprints:
    def __init__(self) -> None:
        self._kept: OrderedDict[str, Lesson] = OrderedDict()

    async def get(self, c: Connection, hash_: str) -> Lesson:
        found = self._kept.get(hash_)
        if found is None:
            found = self._kept[hash_] = _lesson(*await store.blueprint(c, hash_))
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(hash_)
        return found


def _lesson(body: str, view_hash: str) -> Lesson:
    parsed = blueprint.parse(json.loads(body))
    view = json.dumps(blueprint.learners_view(parsed), ensure_ascii=False, separators=(",", ":"))
    return Lesson(parsed, tuple(parsed.steps), view, view_hash)
