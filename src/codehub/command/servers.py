"""For commands that act on the machine itself (backup, restore, gc, migrate): a way to its database."""

import asyncio
from collections.abc import Awaitable, Callable

from codehub.embedded.servers import Urls, reachable
from codehub.settings import Settings
from codehub.startup import load_settings


def with_servers(work: Callable[[Settings, Urls], Awaitable[None]]) -> None:
    """With the database of the running instance, or one that is started for as long as the command takes."""
    settings = load_settings("cli")

    async def run() -> None:
        async with reachable(settings) as urls:
            await work(settings, urls)

    asyncio.run(run())
