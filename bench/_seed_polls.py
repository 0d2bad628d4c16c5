"""Polls answered as the waiting room's first sketch did it: five questions to Redis, one after the other.

For `waiting_room`, which compares: `_worker` puts it in the place of the front door's own handler. Engine, token and
answer are the same; only how Redis is asked differs.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import redis.asyncio

from codehub.clock import Clock
from codehub.proxy.model import Answer, Forward, RequestHead
from codehub.settings import QueueConfig
from codehub.waiting_room import front_door, keys
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import Standing
from codehub.waiting_room.tokens import Tokens, Waiting


class SeedPolls(front_door.Polls):
    def __init__(self, line: Line, tokens: Tokens, clock: Clock, config: QueueConfig) -> None:
        super().__init__(line, tokens, clock, config)
        self._redis: Any = redis.asyncio.Redis.from_url(os.environ["CODEHUB_REDIS_URL"], max_connections=1024)
        self._config = config
        self._tasks: set[asyncio.Task[None]] = set()

    def _ask(
        self,
        head: RequestHead,
        otherwise: front_door.Otherwise,
        text: str,
        token: Waiting,
        decided: Callable[[Forward | Answer], None],
    ) -> None:
        async def answer() -> None:
            position = await self._position(token)
            if position is None:
                decided(otherwise(head))
            else:
                standing = Standing(position, position - 1, False, False, False, None, False, "", 0)
                decided(self._answer(text, token, standing))

        task = asyncio.create_task(answer())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _position(self, token: Waiting) -> int | None:
        waiting, heartbeat = keys.waiting(token.event, token.pid), keys.heartbeat(token.event, token.pid)
        if await self._redis.get(waiting) is None or not await self._redis.exists(heartbeat):
            return None
        await self._redis.expire(heartbeat, self._config.heartbeat_seconds)
        await self._redis.expire(waiting, self._config.waiting_seconds)
        rank = await self._redis.zrank(keys.event(token.event), token.pid)
        return None if rank is None else rank + 1
