"""The Lua scripts beside this file, each one atomic step in Redis. Called by `buffer`, `leases` and `service`.

They use keys that no caller can name beforehand. On a Cluster all of activity is therefore on one node: every name in
there begins with `place`, which is nothing elsewhere.
"""

import functools
import importlib.resources
from typing import Any

from codehub.activity import keys
from codehub.db import redis
from codehub.db.redis import Client, Script


def place(client: Client) -> str:
    return redis.place(client, "activity")


@functools.cache
def _script(name: str, begin: str) -> Script:
    text = importlib.resources.files("codehub.activity").joinpath(f"{name}.lua").read_text(encoding="utf-8")
    return Script(f"local at = '{begin}'\n{text}")


async def run(client: Client, name: str, *arguments: str | bytes | int) -> Any:
    begin = place(client)
    return await _script(name, begin).run(client, [begin + keys.ACTIVITY], arguments)
