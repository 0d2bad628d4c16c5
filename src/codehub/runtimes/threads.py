"""Threads for what blocks, an executor for each kind of work: nothing waits behind another kind. Used by `process`.

How much of a kind is under way at a time is bounded by the caller (the controller); a thread is made when it
is needed, so a large number here costs nothing. Only deletions, which other loops ask for too, are bounded here, and
the loading of modules, which takes a processor for seconds.
"""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
OBSERVE, START, STOP, MOVE, DELETE, WARM = "observe", "start", "stop", "move", "delete", "warm"
SIZES = {OBSERVE: 4, START: 128, STOP: 128, MOVE: 16, DELETE: 4, WARM: 1}


class Threads:
    def __init__(self) -> None:
        self._pools = {
            kind: ThreadPoolExecutor(size, thread_name_prefix=f"runtime-{kind}") for kind, size in SIZES.items()
        }

    async def run(self, kind: str, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(
            self._pools[kind], lambda: context.run(work, *args, **options)
        )
