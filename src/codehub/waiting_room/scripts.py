"""The Lua scripts in `lua/`, each one atomic step of a line. Run by `line`; the settings stand in them as numbers.

Fit for a cluster: a script touches only the keys that it is given, and all of them are of one event.
"""

import functools
import importlib.resources
from collections.abc import Sequence
from typing import Any

from codehub.db.redis import Client, Script
from codehub.settings import QueueConfig

ALONE = {"bury", "tell"}  # need nothing of what the others have in common


@functools.cache
def _file(name: str) -> str:
    return importlib.resources.files("codehub.waiting_room").joinpath(f"lua/{name}.lua").read_text(encoding="utf-8")


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _constants(config: QueueConfig) -> str:
    values = {
        "SILENT_MS": milliseconds(config.silent_seconds),
        "HEARTBEAT_MS": milliseconds(config.heartbeat_seconds),
        "OFFER_MS": milliseconds(config.offer_seconds),
        "HEARTBEAT_S": config.heartbeat_seconds,
        "WAITING_S": config.waiting_seconds,
        "EVENT_S": config.event_seconds,
    }
    return "".join(f"local {name} = {value}\n" for name, value in values.items())


class Scripts:
    def __init__(self, config: QueueConfig) -> None:
        self._constants = _constants(config)
        self._known: dict[str, Script] = {}

    def text(self, name: str) -> str:
        return _file(name) if name in ALONE else self._constants + _file("common") + _file(name)

    async def run(self, client: Client, name: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        script = self._known.get(name)
        if script is None:
            script = self._known[name] = Script(self.text(name))
        return await script.run(client, keys, arguments)
