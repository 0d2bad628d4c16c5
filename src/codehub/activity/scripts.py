"""The Lua scripts beside this file, each one atomic step in Redis. Called by `buffer`, `leases` and `service`."""

import functools
import importlib.resources
from collections.abc import Awaitable
from typing import Any, cast

import redis.asyncio

Redis = redis.asyncio.Redis


@functools.cache
def _text(name: str) -> str:
    return importlib.resources.files("codehub.activity").joinpath(f"{name}.lua").read_text(encoding="utf-8")


async def run(client: Redis, name: str, *arguments: str | bytes | int) -> Any:
    """Run a script by its digest; a Redis that does not know it yet is told."""
    script = client.register_script(_text(name))
    return await cast("Awaitable[Any]", script(args=list(arguments)))
