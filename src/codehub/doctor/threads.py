"""For checks that block: in a daemon thread, which a disk that hangs can hold for ever without holding us."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except Exception as e:  # noqa: BLE001 (told to the task that waits)
            tell(future.set_exception, e)
        else:
            tell(future.set_result, result)

    def tell(settle: Callable[..., None], outcome: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(outcome))

    threading.Thread(target=run, daemon=True).start()
    return await future
