"""The coordinator's part of a git repository: claims what waits for a workspace that runs, clones it there, says how it
went. Made by `wiring.coordinator`; ticked by a nudge or a period.

Every save goes through the lease, on the epoch that claimed: what a former leader left is fetched again, and finds what
is there already. Tried so many times, then told; a person can ask again.
"""

from collections.abc import Callable
from datetime import datetime

from codehub import logs
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.coordinator.under_way import UnderWay
from codehub.db import Connection, Row
from codehub.errors import LeaseLostError, UnavailableError
from codehub.policy.model import System
from codehub.runtimes.base import Runtime
from codehub.runtimes.network import ways
from codehub.settings import RuntimeConfig
from codehub.templates.loader import Templates
from codehub.templates.model import Network
from codehub.workspaces import fetch_runner, git_rules, history, store
from codehub.workspaces.fetch_runner import Result, Wanted
from codehub.workspaces.model import FetchCause, FetchStatus
from codehub.workspaces.repositories import sql
from codehub.workspaces.store import Change

log = logs.get()
NAME = "fetch"
PERIOD_SECONDS = 5.0
AT_ONCE = 4
ACTOR = System.CONTROLLER


class FetchLoop:
    def __init__(
        self,
        lease: Lease,
        runtime: Runtime,
        templates: Templates,
        clock: Clock,
        config: RuntimeConfig,
        nudge: Callable[[], None],
        seconds: float = fetch_runner.SECONDS,
    ) -> None:
        self._lease = lease
        self._runtime = runtime
        self._templates = templates
        self._clock = clock
        self._config = config
        self._seconds = seconds
        self._under_way = UnderWay[None](nudge, "Could not save how a fetch ended, it is done again")

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, longest_pause=PERIOD_SECONDS)

    async def close(self) -> None:
        await self._under_way.close()

    async def tick(self) -> Tick:
        now, epoch = self._clock.now(), self._lease.epoch
        async with self._lease.transaction() as c:
            if not await c.fetchval(sql.open):
                return Tick({"begun": 0, "running": 0})
            await c.fetch(sql.put_back, epoch, list(self._under_way), now, FetchCause.INTERRUPTED)
            for given_up in await c.fetch(sql.give_up, git_rules.MOST_ATTEMPTS, FetchCause.INTERRUPTED, now):
                await _note_failure(c, given_up["workspace_id"], given_up, now)
            room = AT_ONCE - len(self._under_way)
            claimed = await c.fetch(sql.claim, room, self._runtime.node, epoch, now)
            following: datetime | None = await c.fetchval(sql.next_due, now)
        for row in claimed:
            self._under_way.begin(row["workspace_id"], None, self._perform(row))
        again_in = None if following is None else min(PERIOD_SECONDS, (following - now).total_seconds())
        return Tick({"begun": len(claimed), "running": len(self._under_way)}, again_in=again_in)

    async def _perform(self, row: Row) -> None:
        names = ("workspace_id", "fetch_id", "url", "branch", "folder", "attempts")
        wanted = Wanted(**{name: row[name] for name in names})
        try:
            result = await self._result(wanted, row["template"])
        except (LeaseLostError, UnavailableError):
            raise
        except Exception as e:
            log.exception("A fetch failed", workspace=wanted.workspace_id)
            result = Result(FetchCause.GIT, type(e).__name__)
        await self._save(wanted, result, row["started_at"])

    async def _result(self, wanted: Wanted, template: str) -> Result:
        found = self._templates.find(template)
        if found and found.process and ways.mode_of(found.process, self._config) is Network.NONE:
            return Result(FetchCause.NO_NETWORK)
        return await fetch_runner.fetch(self._runtime, wanted, self._seconds)

    async def _save(self, wanted: Wanted, result: Result, begun: datetime) -> None:
        now, mine = self._clock.now(), (wanted.workspace_id, self._lease.epoch, wanted.fetch_id)
        pause = git_rules.pause_after(result.cause, wanted.attempts) if result.cause else None
        async with self._lease.transaction() as c:
            if pause is not None:
                await c.execute(sql.put_off, *mine, result.cause, result.said, now + pause)
                return
            status = FetchStatus.FAILED if result.cause else FetchStatus.DONE
            if not await c.fetch(sql.end, *mine, status, result.cause, result.said, now):
                return  # it was put back meanwhile
            if result.cause:
                said = {"url": wanted.url, "cause": result.cause, "said": result.said}
                await _note_failure(c, wanted.workspace_id, said, now)
                return
            fetched = history.Fetched(wanted.url, wanted.folder)
            took = (now - begun).total_seconds()
            await store.note(c, wanted.workspace_id, now, Change(ACTOR, fetched, took_seconds=took))


async def _note_failure(c: Connection, id_: str, row: Row | dict[str, str], now: datetime) -> None:
    failed = history.FetchFailed(row["url"], FetchCause(row["cause"]), row["said"] or "")
    await store.note(c, id_, now, Change(ACTOR, failed))
