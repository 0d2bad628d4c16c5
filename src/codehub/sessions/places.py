"""A session started with a place from the waiting room: its run holds the place until it ends. Asked by the API.

The place is checked, the run started, the place bound to it. A crash before the last step leaves a reservation, with
which the same request goes on; the same request after it changes nothing.
"""

import json
from collections.abc import Awaitable, Callable

from codehub.db import Database
from codehub.policy.model import Principal
from codehub.sessions.runs import Answer
from codehub.waiting_room.lab import Lab


class RunPlaces:
    def __init__(self, database: Database, lab: Lab) -> None:
        self._database = database
        self._lab = lab

    async def started(self, caller: Principal, token: str, start: Callable[[], Awaitable[Answer]]) -> Answer:
        async with self._database.connection() as c:
            await self._lab.check_for_run(c, caller.name, token)
        answer = await start()
        async with self._database.transaction() as c:
            await self._lab.hold_for_run(c, caller.name, token, json.loads(answer.body)["id"])
        return answer
