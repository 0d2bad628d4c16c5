"""What a coordinator costs while nothing changes, while IDEs end, while people wake and stop their workspaces.

It is the real role in a process of its own, on real servers and behind the real API server, whose audit log says what
it was asked for. Processor time and memory are those of the processes, as the kernel counts them.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from cluster.scale import pods
from codehub.runtimes.kubernetes.runtime import KubernetesRuntime
from codehub.workspaces.store import sql

TICK = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS = 0.02  # how often the rows are looked at
PATIENCE = 120.0
Processes = dict[str, set[int]]  # by name


def processor_seconds(pids: set[int]) -> float:
    """Of these and of their children that have ended."""
    found = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just ended
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            found += sum(map(int, stat[stat.rindex(")") + 2 :].split()[11:15]))
    return found / TICK


def megabytes(pids: set[int]) -> float:
    found = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    found += int(line.split()[1])
    return found / 1024


class Audit:
    """What the API server was asked by the coordinator, since it was last looked at."""

    def __init__(self, log: pathlib.Path) -> None:
        self._log = log
        self._at = 0

    def taken(self) -> Counter[str]:
        with self._log.open("rb") as log:
            log.seek(self._at)
            content = log.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._at += len(whole)
        events = [json.loads(line) for line in whole.splitlines()]
        return Counter(f"{one['verb']} {one['objectRef']['resource']}" for one in events if not _has_only_ended(one))


def _has_only_ended(event: dict[str, Any]) -> bool:
    """A watch is told of when it begins, and again after minutes."""
    return (event["verb"], event["stage"] != "ResponseStarted") == ("watch", True)


@dataclass
class Phase:
    """One stretch of a measurement."""

    seconds: float
    changes: int
    processor: dict[str, float]  # seconds, by process
    requests: Counter[str]
    took: list[float] = field(default_factory=list)  # of each change, until its row said so
    missing: int = 0  # changes that no row told of in time

    @property
    def per_change(self) -> float:
        return sum(self.requests.values()) / self.changes if self.changes else 0.0

    def percentile(self, part: float) -> float:
        ordered = sorted(self.took)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")

    @property
    def median(self) -> float:
        return statistics.median(self.took) if self.took else float("nan")


@dataclass
class Figures:
    """All that was measured at one size."""

    known: int
    running: int
    first: Phase
    idle: Phase
    ends: Phase
    wakes: Phase
    stops: Phase
    memory: dict[str, float]


class Measuring:
    def __init__(
        self, database: asyncpg.Connection, runtime: KubernetesRuntime, audit: Audit, processes: Callable[[], Processes]
    ) -> None:
        self._database = database
        self._runtime = runtime
        self._audit = audit
        self._processes = processes

    async def during(self, seconds: float) -> Phase:
        """While nothing changes."""
        begun = self._begin()
        await asyncio.sleep(seconds)
        return self._end(begun, 0)

    async def ends(self, ids: Sequence[str], seconds: float) -> Phase:
        """IDEs end by themselves: from what the API server has taken in until the row says so."""

        async def end(id_: str) -> None:
            await pods.end(self._runtime.api, self._runtime.names.of(id_), "1\nKilled")

        return await self._changing(ids, seconds, end, "observed_status <> 'RUNNING'")

    async def wakes(self, ids: Sequence[str], seconds: float) -> Phase:
        return await self._changing(ids, seconds, self._wanted("RUNNING"), "observed_status = 'RUNNING'")

    async def stops(self, ids: Sequence[str], seconds: float) -> Phase:
        wanted = "observed_status = 'STANDBY' AND operation = 'NONE'"
        return await self._changing(ids, seconds, self._wanted("STANDBY"), wanted)

    def _wanted(self, state: str) -> Callable[[str], Any]:
        """As the service writes a person's request."""

        async def want(id_: str) -> None:
            desired_by = "wake" if state == "RUNNING" else "user"
            query = sql.set_desired.replace("$4", "clock_timestamp()")
            async with self._database.transaction():
                await self._database.execute(query, id_, state, desired_by)
                await self._database.execute(sql.wake_controller)

        return want

    async def _changing(
        self, ids: Sequence[str], seconds: float, change: Callable[[str], Any], condition: str
    ) -> Phase:
        """Evenly over this time. The rows are looked at all the while."""
        begun, pending, took = self._begin(), dict[str, float](), list[float]()
        started, waiting = time.monotonic(), list(enumerate(ids))
        query = f"SELECT id FROM workspaces WHERE id = ANY ($1::text[]) AND {condition}"  # noqa: S608 (ours)
        deadline = started + seconds + PATIENCE
        while (waiting or pending) and time.monotonic() < deadline:
            while waiting and time.monotonic() >= started + waiting[0][0] * seconds / len(ids):
                _, id_ = waiting.pop(0)
                await change(id_)
                pending[id_] = time.monotonic()
            for row in await self._database.fetch(query, list(pending)):
                took.append(time.monotonic() - pending.pop(row["id"]))
            await asyncio.sleep(LOOK_SECONDS)
        found = self._end(begun, len(ids))
        found.took, found.missing = took, len(pending) + len(waiting)
        return found

    def memory(self) -> dict[str, float]:
        return {name: megabytes(pids) for name, pids in self._processes().items()}

    def _begin(self) -> tuple[float, dict[str, float]]:
        self._audit.taken()
        return time.monotonic(), dict(self._spent())

    def _end(self, begun: tuple[float, dict[str, float]], changes: int) -> Phase:
        at, before = begun
        spent = {name: value - before.get(name, 0.0) for name, value in self._spent()}
        return Phase(time.monotonic() - at, changes, spent, self._audit.taken())

    def _spent(self) -> Iterator[tuple[str, float]]:
        for name, pids in self._processes().items():
            yield name, processor_seconds(pids)
