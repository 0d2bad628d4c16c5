"""One child process that is kept running. Used by `supervisor.serve` for servers and roles alike."""

import asyncio

from codehub import logs
from codehub.clock import Clock
from codehub.retry import back_off
from codehub.system.forking import Process, Spec, spawn
from codehub.system.processes import Ledger

log = logs.get()
STEADY_SECONDS = 30.0  # a child that lived so long starts afresh in the back-off
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 15.0


class Child:
    """Keeps one process running until told to stop."""

    def __init__(self, spec: Spec, ledger: Ledger, clock: Clock) -> None:
        self.spec = spec
        self._ledger = ledger
        self._clock = clock
        self._process: Process | None = None
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self.failures = 0  # runs in a row that were short

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_alive(), name=f"child-{self.spec.name}")

    async def _keep_alive(self) -> None:
        while True:
            born = self._clock.monotonic()
            code = await self._live_once()
            if self._stopping:
                return
            steady = self._clock.monotonic() - born >= STEADY_SECONDS
            self.failures = 1 if steady else self.failures + 1
            pause = back_off(self.failures, FIRST_PAUSE, LONGEST_PAUSE)
            log.warning("Process ended, starting it again", process=self.spec.name, exit_code=code, pause=pause)
            await self._clock.sleep(pause)

    async def _live_once(self) -> int | None:
        try:
            if self.spec.before:
                await self.spec.before()
            self._process = spawn(self.spec)
        except OSError as e:
            log.warning("Process could not be started", process=self.spec.name, error=str(e))
            return None
        pid = self._process.pid
        self._ledger.note(self.spec.name, pid, self.spec.stop_signal)
        log.debug("Process started", process=self.spec.name, pid=pid)
        code = await self._process.wait()
        self._ledger.forget(self.spec.name)
        from codehub import metrics  # noqa: PLC0415 (which reads at once where counters live: see `serve`)

        metrics.forget_process(pid)
        return code

    async def stop(self) -> None:
        """Ask, wait, insist."""
        self._stopping = True
        process = self._process
        if process and process.returncode is None:
            process.send_signal(self.spec.stop_signal)
            try:
                await asyncio.wait_for(process.wait(), self.spec.stop_seconds)
            except TimeoutError:
                log.warning("Process did not stop in time, ending it", process=self.spec.name)
                process.kill()
                await process.wait()
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
