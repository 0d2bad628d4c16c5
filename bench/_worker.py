"""One worker of the proxy, as `codehub proxy` runs it, on a socket it inherits.

    python bench/_worker.py FD on|off [ours|seed]

`_proxies` starts it. The second argument says whether activity is recorded, the third how polls of waiting people are
answered: as the product does it, or by one question to Redis after the other.
"""

import asyncio
import os
import socket
import sys

import uvloop

from codehub import logs
from codehub import settings as config
from codehub.activity.model import Watched
from codehub.clock import SystemClock
from codehub.proxy import workers
from codehub.proxy.model import Address, RequestHead
from codehub.waiting_room import front_door
from codehub.wiring.proxy import build_director


class Unwatched:
    """Records nothing."""

    def request(self, watched: Watched, head: RequestHead, /) -> None: ...

    def tunnel(self, _watched: Watched, _head: RequestHead, /) -> None:
        return None


async def work(fd: int, *, watched: bool) -> None:
    settings = config.load(dict(os.environ))
    logs.configure(settings.log, "proxy")
    clock, nowhere = SystemClock(), Address(path="/nowhere")  # no page is asked for
    listener = socket.socket(fileno=fd)
    listener.setblocking(False)
    director = build_director(settings, clock, nowhere, None if watched else Unwatched())
    await workers.run(settings, clock, [listener], nowhere, build_director=director)


if __name__ == "__main__":
    if sys.argv[3:] == ["seed"]:
        from bench._seed_polls import SeedPolls

        front_door.Polls = SeedPolls  # type: ignore[misc]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work(int(sys.argv[1]), watched=sys.argv[2] == "on"))
