"""Questions that are asked at the same time share a round trip. Used by `line` for polls, one key for each event.

The first question goes out at once; what is asked while its round trip is under way goes out together with the next,
and where many ask, that one does not wait for the first to come back. So a server that is not busy answers as quickly
as without this; a busy one answers hundreds at a time, and has the next ones by then. Keys do not wait for each other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)
Question = TypeVar("Question")
Answer = TypeVar("Answer")

AT_ONCE = 2  # round trips of a key: while the server answers one, the next is put together and on its way
ENOUGH = 32  # questions that wait before a second one begins: below that, sharing one is worth more
MOST = 256  # questions in a round trip: a few milliseconds of Redis's time, in which it does nothing else


class Batcher(Generic[Key, Question, Answer]):
    def __init__(self, send: Callable[[Key, Sequence[Question]], Awaitable[Sequence[Answer]]]) -> None:
        """`send` gives an answer for each question, in their order."""
        self._send = send
        self._waiting: dict[Key, list[tuple[Question, asyncio.Future[Answer]]]] = {}
        self._tasks: dict[Key, set[asyncio.Task[None]]] = {}

    def ask(self, key: Key, question: Question) -> asyncio.Future[Answer]:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, [])
        waiting.append((question, answer))
        tasks = self._tasks.setdefault(key, set())
        if not tasks or (len(waiting) >= ENOUGH and len(tasks) < AT_ONCE):
            tasks.add(asyncio.create_task(self._work(key)))
        return answer

    async def aclose(self) -> None:
        """Ends what is under way; those who asked are told that it was cancelled."""
        tasks = [task for some in self._tasks.values() for task in some]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, answer in [asked for waiting in self._waiting.values() for asked in waiting]:
            answer.cancel()  # their task ended before its first step
        self._waiting.clear()
        self._tasks.clear()

    async def _work(self, key: Key) -> None:
        """One round trip after another, until no question is left."""
        asked: list[tuple[Question, asyncio.Future[Answer]]] = []
        try:
            while asked := self._take(key):
                await self._answer(key, asked)
        finally:
            tasks = self._tasks.get(key, set())
            tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))
            if not tasks:
                self._tasks.pop(key, None)
                asked += self._waiting.pop(key, [])
            for _, answer in asked:
                answer.cancel()  # of no effect for those that are answered

    def _take(self, key: Key) -> list[tuple[Question, asyncio.Future[Answer]]]:
        """The oldest questions whose askers are still there."""
        there = [(question, answer) for question, answer in self._waiting.pop(key, []) if not answer.done()]
        if len(there) > MOST:
            self._waiting[key] = there[MOST:]
        return there[:MOST]

    async def _answer(self, key: Key, asked: list[tuple[Question, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._send(key, [question for question, _ in asked])
        except Exception as e:  # noqa: BLE001 - it is raised again, where the question was asked
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(e)
            return
        for (_, answer), given in zip(asked, answers, strict=True):
            if not answer.done():
                answer.set_result(given)
