"""The coordinator's part of a PRACTICE: claims tasks, runs them in their workspaces, and saves how they ended.

A loop: `wiring.coordinator` makes it, the driver ticks it on a notification (`codehub_practice`) or a period. So many
at a time, by kind; of each person one, in turns. Every save goes through the lease, on the epoch that claimed:
what a former leader has run is run again by the next one, and only one of them is believed.
"""

from collections.abc import Callable
from datetime import timedelta

from codehub import logs, metrics
from codehub.archives.model import Quota
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.coordinator.under_way import UnderWay
from codehub.errors import LeaseLostError, UnavailableError
from codehub.runtimes import limits
from codehub.runtimes.base import Runtime
from codehub.sessions import practice_runner as runner
from codehub.sessions import practice_store as store
from codehub.sessions.practice_runner import Check, Files, Outcome, Result
from codehub.sessions.practice_store import Kind, Task, sql
from codehub.settings import PracticeConfig, ShareConfig
from codehub.templates.loader import Templates

log = logs.get()
NAME = "practice"
PERIOD_SECONDS = 5.0
FILES_AT_ONCE = 4  # each takes a moment
MOST_ATTEMPTS = 3
KEEP_SECONDS = 600.0  # what has ended: long enough for the API to read it, and for a look at what went on
PRUNED_PER_TICK = 1_000
MIB = 1 << 20
NO_LIMIT = 1 << 50
GAVE_UP = "it ended the process that ran it, more than once"


class PracticeLoop:
    def __init__(
        self,
        lease: Lease,
        runtime: Runtime,
        templates: Templates,
        clock: Clock,
        config: PracticeConfig,
        shares: ShareConfig,
        nudge: Callable[[], None],
    ) -> None:
        self._lease = lease
        self._runtime = runtime
        self._templates = templates
        self._clock = clock
        self._config = config
        self._shares = shares
        self._bounds = {Kind.FILES: FILES_AT_ONCE, Kind.CHECKS: config.checks_at_once}
        self._under_way = UnderWay[Kind](nudge, "Could not save how a practice task ended, it is run again")

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, longest_pause=PERIOD_SECONDS)

    async def close(self) -> None:
        await self._under_way.close()

    async def tick(self) -> Tick:
        now = self._clock.now()
        async with self._lease.transaction() as c:
            back = await c.fetch(sql.put_back, self._lease.epoch, list(self._under_way))
            gave_up = await c.fetch(sql.give_up, MOST_ATTEMPTS, now, runner.failed(GAVE_UP))
            dropped = await c.fetch(sql.drop_outdated, now, runner.superseded())
            if gave_up or dropped:
                await c.execute(sql.say_done)
            claimed: list[Task] = []
            for kind in Kind:
                claimed += await store.claim(c, kind, self._room(kind), self._runtime.node, self._lease.epoch, now)
            await c.execute(sql.prune, now - timedelta(seconds=KEEP_SECONDS), PRUNED_PER_TICK)
            waiting = await c.fetchval(sql.waiting)
        for row in gave_up:
            metrics.PRACTICE_TASKS.labels(row["kind"], "gave_up").inc()
        for row in dropped:
            metrics.PRACTICE_TASKS.labels(row["kind"], Outcome.SUPERSEDED).inc()
        for task in claimed:
            self._under_way.begin(task.id, Kind(task.kind), self._perform(task))
        return Tick({"begun": len(claimed), "put_back": len(back), "waiting": waiting, "running": len(self._under_way)})

    def _room(self, kind: Kind) -> int:
        return self._bounds[kind] - self._under_way.count(kind)

    async def _perform(self, task: Task) -> None:
        begun = self._clock.monotonic()
        try:
            result = await self._result(task)
        except (LeaseLostError, UnavailableError):
            raise
        except Exception as e:
            log.exception("A practice task failed", task=task.id, workspace=task.workspace_id, kind=task.kind)
            result = runner.failed(type(e).__name__)
        await self._finish(task, result)
        metrics.PRACTICE_TASKS.labels(task.kind, result["outcome"]).inc()
        metrics.PRACTICE_SECONDS.labels(task.kind).observe(self._clock.monotonic() - begun)

    async def _result(self, task: Task) -> Result:
        if task.kind == Kind.CHECKS:
            checks = [Check(one["id"], one["command"], one["seconds"]) for one in task.request["checks"]]
            return await runner.run_checks(self._runtime, task.workspace_id, checks, self._clock, self._config.seconds)
        return await runner.put_files(self._runtime, task.workspace_id, await self._files(task))

    async def _files(self, task: Task) -> Files:
        contents = task.request["files"]
        async with self._lease.database.connection() as c:
            known = await store.delivered(c, task.workspace_id, list(contents))
        template = self._templates.find(task.template)
        allowed = limits.resolve(template.limits, self._shares) if template else limits.Limits()
        quota = Quota(allowed.disk_mb * MIB or NO_LIMIT, allowed.files or NO_LIMIT)
        return Files(contents, known, quota)

    async def _finish(self, task: Task, result: Result) -> None:
        now = self._clock.now()
        async with self._lease.transaction() as c:
            if await c.fetchval(sql.finish, task.id, self._lease.epoch, result, now) is None:
                return  # it was put back meanwhile
            if "files" in result:
                contents = Files(task.request["files"], {}, Quota(0, 0)).digests()
                await c.execute(sql.note_delivered, task.workspace_id, list(contents), list(contents.values()), now)
            await c.execute(sql.say_done)
