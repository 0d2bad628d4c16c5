"""Runs the waiting room's own scripts, as `scripts.py` has them, on the small Redis. Lua 5.1, as in Redis itself."""

import functools
from collections.abc import Sequence
from typing import Any

from lupa.lua51 import LuaRuntime, lua_type

from codehub.settings import QueueConfig
from codehub.waiting_room.scripts import ALONE, Scripts
from model.waiting_room.redis import Redis

PRELUDE = "local KEYS, ARGV = ...\n"


def _bytewise(source: str) -> str:
    """One character for each byte: Lua knows only bytes."""
    return source.encode().decode("latin-1")


class Engine:
    """Compiled scripts. What they call acts on the Redis that `run` was given."""

    def __init__(self, config: QueueConfig, *changes: tuple[str, str, str]) -> None:
        """`changes`: script, text in it, what stands there instead. So a guard is taken away."""
        self._changes = changes
        self._scripts = Scripts(config)
        self._lua = LuaRuntime(encoding="latin-1", unpack_returned_tuples=False, register_eval=False)
        self._redis = Redis()
        call = self._lua.eval("function(f) redis = {call = function(...) return f(...) end} end")
        call(self._call)
        self._compile = functools.cache(self._compiled)

    def text(self, name: str) -> str:
        found = self._scripts.text(name)
        for script, old, new in self._changes:
            if script == name or (script == "common" and name not in ALONE):
                if found.count(old) != 1:
                    raise ValueError(f"{script} has {found.count(old)} times: {old}")
                found = found.replace(old, new)
        return found

    def run(self, redis: Redis, name: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        self._redis = redis
        script = self._compile(self.text(name))
        return self._reply(
            script(self._table([_bytewise(key) for key in keys]), self._table([_bytewise(str(a)) for a in arguments]))
        )

    def _compiled(self, source: str) -> Any:
        return self._lua.eval("function(s) return assert(loadstring(s)) end")(_bytewise(PRELUDE + source))

    def _table(self, values: Sequence[Any]) -> Any:
        return self._lua.table_from([self._value(value) for value in values])

    def _value(self, reply: Any) -> Any:
        """What a script sees of a reply: nothing is false."""
        if reply is None:
            return False
        return self._table(reply) if isinstance(reply, list) else reply

    def _call(self, name: str, *args: Any) -> Any:
        return self._value(self._redis.call(name, *args))

    def _reply(self, value: Any) -> Any:
        """What the client gets: numbers are cut to integers, a table ends at its first gap."""
        if value is None or value is False:
            return None
        if value is True:
            return 1
        if isinstance(value, str):
            return value.encode("latin-1")
        if isinstance(value, int | float):
            return int(value)
        if lua_type(value) != "table":
            raise TypeError(value)
        found = []
        for i in range(1, len(value) + 1):
            if value[i] is None:
                break
            found.append(self._reply(value[i]))
        return found
