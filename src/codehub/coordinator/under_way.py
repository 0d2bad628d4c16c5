"""Work that a loop began and does not wait for, by what it is about. Its end is a reason to look again."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

from codehub import logs

log = logs.get()
Kind = TypeVar("Kind")


class UnderWay(Generic[Kind]):
    """`saying`: how the log tells of one that could not save how it ended. The next look finds it as it was."""

    def __init__(self, nudge: Callable[[], None], saying: str) -> None:
        self._nudge = nudge
        self._saying = saying
        self._tasks: dict[str, tuple[Kind, asyncio.Task[None]]] = {}

    def __contains__(self, id_: str) -> bool:
        return id_ in self._tasks

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def tasks(self) -> dict[str, "asyncio.Task[None]"]:
        return {id_: task for id_, (_, task) in self._tasks.items()}

    def count(self, kind: Kind) -> int:
        return sum(other == kind for other, _ in self._tasks.values())

    def begin(self, id_: str, kind: Kind, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks[id_] = (kind, task)
        task.add_done_callback(lambda done: self._done(id_, done))

    def _done(self, id_: str, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(id_, None)
        if not task.cancelled() and (error := task.exception()):
            log.warning(self._saying, of=id_, error=str(error))
        self._nudge()

    async def close(self) -> None:
        """End all of it; the next leader does it again."""
        tasks = self.tasks().values()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
