"""The coordinator's part: installs the IDE that an admin asked for, one at a time, and writes down how far it is.

Made by `wiring.coordinator`. Whoever leads next goes on where this one ended: what is done is noted on disk, by step.
"""

import asyncio
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from codehub import logs
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.coordinator.under_way import UnderWay
from codehub.errors import CodeHubError
from codehub.ides.model import Problem, Status
from codehub.ides.store import sql
from codehub.runtimes import ide_install
from codehub.runtimes.ide_install import BuildFailedError, InstallingAlreadyError, MissingToolsError, Told

log = logs.get()
NAME = "ides"
PERIOD_SECONDS = 10.0
LOOK_SECONDS = 1.0  # how often its progress is written down, and whether it is to end is read
MOST_ATTEMPTS = 3
BUSY_TRIES = 20
MOST_SECONDS = 2 * 3600.0
STEPS_KEPT, LINES_KEPT, LINE_LENGTH = 60, 6, 200
TAIL_BYTES = 8192


Why = Mapping[str, Any]


class InstallLoop:
    def __init__(
        self,
        lease: Lease,
        clock: Clock,
        data_dir: pathlib.Path,
        uid_base: int,
        nudge: Callable[[], None],
    ) -> None:
        self._lease = lease
        self._clock = clock
        self._data_dir = data_dir
        self._uid_base = uid_base
        self._under_way = UnderWay[None](nudge, "Could not save how an installation ended, it is done again")

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, longest_pause=PERIOD_SECONDS)

    async def close(self) -> None:
        """With all its processes; the next leader goes on."""
        await self._under_way.close()

    async def tick(self) -> Tick:
        now, epoch = self._clock.now(), self._lease.epoch
        async with self._lease.transaction() as c:
            await c.fetch(sql.put_back, epoch, list(self._under_way), now)
            await c.execute(sql.give_up, MOST_ATTEMPTS, now, {"code": Problem.GAVE_UP})
            name: str | None = None if self._under_way else await c.fetchval(sql.claim, epoch, now)
        if name:
            self._under_way.begin(name, None, self._perform(name))
        return Tick({"begun": int(bool(name)), "running": len(self._under_way)})

    async def _perform(self, name: str) -> None:
        noted: list[dict[str, Any]] = []

        def note(step: Told) -> None:
            kept = {
                "code": step.code,
                "title": step.title[:LINE_LENGTH],
                "data": dict(step.data),
                "before": step.before,
            }
            noted.append({**kept, "at": self._clock.now().isoformat()})
            del noted[:-STEPS_KEPT]

        log.info("An IDE is being installed", ide=name)
        work = asyncio.ensure_future(self._install(name, note))
        try:
            goes_on = await self._watch(name, work, noted)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        await self._finish(name, work, noted, goes_on=goes_on)

    async def _install(self, name: str, note: ide_install.Say) -> pathlib.Path:
        """A former leader may need a moment to end what it was doing."""
        for _ in range(BUSY_TRIES):
            try:
                return await ide_install.install(name, self._data_dir, note, self._uid_base)
            except InstallingAlreadyError:
                await self._clock.sleep(LOOK_SECONDS)
        return await ide_install.install(name, self._data_dir, note, self._uid_base)

    async def _watch(self, name: str, work: "asyncio.Future[pathlib.Path]", noted: list[dict[str, Any]]) -> bool | None:
        """Until it is over, or is to end: False when an admin ended it, None when it took too long."""
        deadline = self._clock.monotonic() + MOST_SECONDS
        while not work.done():
            pause = asyncio.ensure_future(self._clock.sleep(LOOK_SECONDS))
            either: set[asyncio.Future[Any]] = {work, pause}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            pause.cancel()
            lines = await asyncio.to_thread(last_lines, ide_install.log_of(self._data_dir))
            async with self._lease.transaction() as c:
                if not await c.fetchval(sql.progress, name, self._lease.epoch, noted, lines):
                    return False
            if self._clock.monotonic() > deadline:
                return None
        return True

    async def _finish(
        self, name: str, work: "asyncio.Future[pathlib.Path]", noted: list[dict[str, Any]], *, goes_on: bool | None
    ) -> None:
        status, why = _outcome(work, goes_on=goes_on)
        lines = await asyncio.to_thread(last_lines, ide_install.log_of(self._data_dir))
        async with self._lease.transaction() as c:
            await c.fetchval(sql.finish, name, self._lease.epoch, status, why, noted, lines, self._clock.now())
        log.info("An installation is over", ide=name, status=status, why=why)


def _outcome(work: "asyncio.Future[pathlib.Path]", *, goes_on: bool | None) -> tuple[Status, Why | None]:
    if work.done() and not work.cancelled() and work.exception() is None:
        return Status.DONE, None  # also when it was to end a moment too late
    if goes_on is None:
        return Status.FAILED, {"code": Problem.TIME}
    if not goes_on or work.cancelled():
        return Status.CANCELLED, None
    return Status.FAILED, problem_of(work.exception())


def problem_of(error: BaseException | None) -> Why:
    match error:
        case MissingToolsError():
            return {"code": Problem.TOOLS, "missing": error.missing}
        case InstallingAlreadyError():
            return {"code": Problem.BUSY}
        case BuildFailedError() if error.step:
            step = {"code": error.step.code, "title": error.step.title, "data": dict(error.step.data)}
            return {"code": Problem.STEP, "step": step, "said": error.said}
        case CodeHubError():
            return {"code": Problem.OTHER, "said": error.detail}
    return {"code": Problem.OTHER, "said": f"{type(error).__name__}: {error}"[:LINE_LENGTH]}


def last_lines(path: pathlib.Path) -> list[str]:
    """Of what its tools said; a line that draws a bar is what it drew last."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = file.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    shown = ["".join(c for c in line.rstrip("\r").rpartition("\r")[2] if c.isprintable()) for line in text.split("\n")]
    return [line.strip()[:LINE_LENGTH] for line in shown if line.strip()][-LINES_KEPT:]
