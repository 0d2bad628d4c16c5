"""A small Redis in memory: the commands that the waiting room's scripts use, and no others.

Keys do not expire by themselves, as time is modelled elsewhere. `lua` calls it; a test compares it with a real server.
"""

from collections.abc import Callable, Sequence
from typing import Any

Reply = Any  # int, str, None, or a list of those
RUN = "run_id"


class ZSet(dict[str, float]):
    """Member → score."""

    def ordered(self) -> list[str]:
        return sorted(self, key=lambda member: (self[member], member))


class Hash(dict[str, str]): ...


class Stream(dict[str, tuple[str, ...]]):
    """Id → fields, in order."""


Value = str | ZSet | Hash | Stream
Frozen = tuple[tuple[str, type, Any], ...]


def text(value: Any) -> str:
    """A number as a script passes it on: `%.17g`."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else format(value, ".17g")


def _score(value: float | None) -> str | None:
    return None if value is None else format(value, ".17g")


class Redis:
    def __init__(self, data: dict[str, Value] | None = None, run: str = "run1") -> None:
        self.data: dict[str, Value] = {} if data is None else data
        self.run = run

    def call(self, name: str, *args: Any) -> Reply:
        command: Callable[..., Reply] = getattr(self, "_" + name.lower())
        return command(*map(text, args))

    # --- as a value

    def freeze(self) -> Frozen:
        kept = sorted((key, value) for key, value in self.data.items() if value)
        return tuple((k, type(v), v if isinstance(v, str) else tuple(sorted(v.items()))) for k, v in kept)

    @classmethod
    def thaw(cls, frozen: Frozen, run: str) -> "Redis":
        return cls({key: kind(value) for key, kind, value in frozen}, run)

    def _get_or(self, key: str, kind: type[Any]) -> Any:
        found = self.data.get(key)
        if found is None:
            return kind()
        if not isinstance(found, kind):
            raise TypeError(f"WRONGTYPE {key}")
        return found

    def _make(self, key: str, kind: type[Any]) -> Any:
        found = self.data[key] = self._get_or(key, kind)
        return found

    def _shrink(self, key: str) -> None:
        if key in self.data and not self.data[key]:
            del self.data[key]

    # --- keys

    def _del(self, *keys: str) -> int:
        return sum(self.data.pop(key, None) is not None for key in keys)

    def _expire(self, key: str, _seconds: str) -> int:
        return int(key in self.data)

    def _set(self, key: str, value: str, *_expiry: str) -> str:
        self.data[key] = value
        return "OK"

    def _get(self, key: str) -> str | None:
        return self._get_or(key, str) if key in self.data else None

    def _mget(self, *keys: str) -> list[str | None]:
        return [self._get(key) for key in keys]

    def _info(self, _section: str) -> str:
        return f"# Server\r\n{RUN}:{self.run}\r\n"

    # --- hashes

    def _hget(self, key: str, field: str) -> str | None:
        return self._get_or(key, Hash).get(field)  # type: ignore[no-any-return]

    def _hmget(self, key: str, *fields: str) -> list[str | None]:
        found = self._get_or(key, Hash)
        return [found.get(field) for field in fields]

    def _hset(self, key: str, *pairs: str) -> int:
        found = self._make(key, Hash)
        before = len(found)
        found.update(zip(pairs[::2], pairs[1::2], strict=True))
        return len(found) - before

    def _hdel(self, key: str, *fields: str) -> int:
        found = self._get_or(key, Hash)
        gone = sum(found.pop(field, None) is not None for field in fields)
        self._shrink(key)
        return gone

    def _hincrby(self, key: str, field: str, by: str) -> int:
        found = self._make(key, Hash)
        found[field] = str(int(found.get(field, "0")) + int(by))
        return int(found[field])

    # --- sorted sets

    def _zadd(self, key: str, *args: str) -> int:
        only_present = args[0] == "XX"
        pairs = args[1:] if only_present else args
        if only_present and key not in self.data:
            return 0
        found = self._make(key, ZSet)
        before = len(found)
        for score, member in zip(pairs[::2], pairs[1::2], strict=True):
            if member in found or not only_present:
                found[member] = float(score)
        return len(found) - before

    def _zrem(self, key: str, *members: str) -> int:
        found = self._get_or(key, ZSet)
        gone = sum(found.pop(member, None) is not None for member in members)
        self._shrink(key)
        return gone

    def _zscore(self, key: str, member: str) -> str | None:
        return _score(self._get_or(key, ZSet).get(member))

    def _zmscore(self, key: str, *members: str) -> list[str | None]:
        return [self._zscore(key, member) for member in members]

    def _zcard(self, key: str) -> int:
        return len(self._get_or(key, ZSet))

    def _zrank(self, key: str, member: str) -> int | None:
        found = self._get_or(key, ZSet)
        return found.ordered().index(member) if member in found else None

    def _zcount(self, key: str, low: str, high: str) -> int:
        return len(self._between(key, low, high))

    def _zrange(self, key: str, start: str, stop: str, *options: str) -> list[str]:
        found = self._get_or(key, ZSet)
        members, last = found.ordered(), int(stop)
        first = max(0, int(start) + len(members)) if int(start) < 0 else int(start)
        return self._shown(found, members[first : len(members) + last + 1 if last < 0 else last + 1], options)

    def _zrangebyscore(self, key: str, low: str, high: str, *options: str) -> list[str]:
        members = self._between(key, low, high)
        if "LIMIT" in options:
            at = options.index("LIMIT")
            offset, count = int(options[at + 1]), int(options[at + 2])
            members = members[offset:] if count < 0 else members[offset : offset + count]
        return self._shown(self._get_or(key, ZSet), members, options)

    def _between(self, key: str, low: str, high: str) -> list[str]:
        found = self._get_or(key, ZSet)
        return [m for m in found.ordered() if _above(low, found[m]) and _above_reversed(high, found[m])]

    def _shown(self, found: ZSet, members: Sequence[str], options: Sequence[str]) -> list[str]:
        if "WITHSCORES" not in options:
            return list(members)
        return [word for member in members for word in (member, _score(found[member]) or "")]

    # --- streams

    def _xadd(self, key: str, *args: str) -> str:
        rest = list(args)
        if rest[0] == "MAXLEN":
            del rest[: 3 if rest[1] in "~=" else 2]
        found = self._make(key, Stream)
        id_ = f"{len(found) + 1}-0" if rest[0] == "*" else rest[0]
        found[id_] = tuple(rest[1:])
        return id_

    def _xrange(self, key: str, start: str, _end: str, *options: str) -> list[Any]:
        found = self._get_or(key, Stream)
        least = 0 if start == "-" else int(start.partition("-")[0])
        entries = [[id_, list(fields)] for id_, fields in found.items() if int(id_.partition("-")[0]) >= least]
        return entries[: int(options[1])] if options else entries


def _above(limit: str, score: float) -> bool:
    return score > float(limit[1:]) if limit.startswith("(") else score >= float(limit)


def _above_reversed(limit: str, score: float) -> bool:
    return score < float(limit[1:]) if limit.startswith("(") else score <= float(limit)
