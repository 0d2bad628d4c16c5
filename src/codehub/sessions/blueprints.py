"""Blueprints by their hash, kept in the process: read often, never changed. For `Sessions`, `Runs` and their API."""

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass

from codehub.db import Connection
from codehub.sessions import blueprint, store
from codehub.sessions.blueprint import Activity, Blueprint, Question, Step

MOST_TEXT = 4 * 1024 * 1024  # characters of JSON in all: in the process one takes up to 25 times as much


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
        self._kept: OrderedDict[str, tuple[Lesson, int]] = OrderedDict()  # with the length of its text
        self._text = 0

    async def get(self, c: Connection, hash_: str) -> Lesson:
        if found := self._kept.get(hash_):
            self._kept.move_to_end(hash_)
            return found[0]
        body, view_hash = await store.blueprint(c, hash_)
        lesson = await asyncio.to_thread(_lesson, body, view_hash)  # a large one takes long enough for others to notice
        self._keep(hash_, lesson, len(body))
        return lesson

    def _keep(self, hash_: str, lesson: Lesson, length: int) -> None:
        if hash_ in self._kept:  # another request was quicker
            return
        self._kept[hash_] = lesson, length
        self._text += length
        while self._text > MOST_TEXT:
            _, (_, gone) = self._kept.popitem(last=False)
            self._text -= gone


def _lesson(body: str, view_hash: str) -> Lesson:
    parsed = blueprint.parse(json.loads(body))
    view = json.dumps(blueprint.learners_view(parsed), ensure_ascii=False, separators=(",", ":"))
    return Lesson(parsed, tuple(parsed.steps), view, view_hash)
