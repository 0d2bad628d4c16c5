"""`codehub proxy`: one worker per core on the same inherited sockets, and the parent that keeps them running.

The parent forks before any event loop exists and does nothing but wait: for a worker's end, or for a signal. Workers
share the listening sockets by inheritance, never by SO_REUSEPORT: any process of the same user could join in on that.
"""

import asyncio
import contextlib
import gc
import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import NoReturn

import uvloop

from codehub import logs, metrics
from codehub.clock import Clock
from codehub.health import Health
from codehub.proxy.model import Address, Director, Limits
from codehub.proxy.server import Engine
from codehub.proxy.single_upstream import SingleUpstream
from codehub.retry import back_off
from codehub.settings import Settings
from codehub.system import kernel

log = logs.get()
STEADY_SECONDS = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
STOP = {signal.SIGTERM, signal.SIGINT}
# New objects after which the collector looks. What hundreds of requests under way are made of is in use whenever it
# does, and goes without it: with Python's 700, this is a twentieth of the time of a poll.
UNDER_WAY = 10_000
WAITED_FOR = STOP | {signal.SIGCHLD, signal.SIGHUP}


# Makes the director of a worker, for as long as the worker lives; it may end tunnels through the engine.
BuildDirector = Callable[[Engine], AbstractAsyncContextManager[Director]]


async def run(
    settings: Settings,
    clock: Clock,
    listeners: Sequence[socket.socket],
    api: Address,
    *,
    build_director: BuildDirector | None = None,
    limits: Limits | None = None,
    probed: Sequence[socket.socket] = (),
) -> None:
    """One worker: until a signal says stop, and then until what is under way is finished, within bounds.

    `probed`: sockets on which workers say how they are; which one answers is as it comes.
    """
    told_to_stop = asyncio.Event()
    for number in STOP:
        asyncio.get_running_loop().add_signal_handler(number, told_to_stop.set)
    server, leave_seconds = settings.server, settings.roles.leave_seconds
    engine = Engine(
        SingleUpstream(api),
        clock,
        limits or Limits(head_seconds=server.head_seconds),
        trusted=server.trusted_proxies,
        scheme=b"https" if settings.secure else b"http",
    )
    async with build_director(engine) if build_director else nullcontext(engine.director) as engine.director:
        gc.freeze()  # what exists by now stays; the collector need not look at it again and again
        gc.set_threshold(UNDER_WAY, *gc.get_threshold()[1:])
        await engine.start(*listeners)
        own = Health(server.metrics_networks)
        async with own.serving(probed):
            await told_to_stop.wait()
            own.leaving = engine.leaving = True
            await clock.sleep(leave_seconds)
            await engine.drain(server.drain_seconds, one_by_one=leave_seconds > 0)


def run_workers(
    settings: Settings,
    clock: Clock,
    listeners: Sequence[socket.socket],
    api: Address,
    *,
    workers: int | None = None,
    build_director: BuildDirector | None = None,
    limits: Limits | None = None,
    probed: Sequence[socket.socket] = (),
) -> None:
    """Blocks until told to stop (SIGTERM, SIGINT). SIGHUP: new workers take over while the old ones drain."""

    def work() -> None:
        running = run(settings, clock, listeners, api, build_director=build_director, limits=limits, probed=probed)
        uvloop.run(running)

    stop_seconds = settings.roles.leave_seconds + settings.server.drain_seconds
    count = workers or settings.roles.proxy_workers or len(os.sched_getaffinity(0))
    Parent(work, clock, count, stop_seconds).run()


class Parent:
    """Keeps `count` workers running."""

    def __init__(self, work: Callable[[], None], clock: Clock, count: int, stop_seconds: float) -> None:
        self._work = work
        self._clock = clock
        self._count = count
        self._stop_seconds = stop_seconds
        self._born: dict[int, float] = {}  # pid → when
        self._leaving: set[int] = set()  # told to stop, still draining
        self._failures = 0  # short lives in a row
        self._pause_until = 0.0

    def run(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)  # or one could slip by between two looks
        try:
            self._keep_running(before)
            self._stop()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _keep_running(self, mask: set[signal.Signals | int]) -> None:
        while True:
            pause = self._pause_until - self._clock.monotonic()
            while len(self._born) < self._count and pause <= 0:
                self._fork(mask)
            happened = signal.sigtimedwait(WAITED_FOR, max(pause, 0.0) if pause > 0 else 3600)
            if happened is None:
                continue
            if happened.si_signo in STOP:
                return
            if happened.si_signo == signal.SIGHUP:
                self._renew()
            self._reap()

    def _fork(self, mask: set[signal.Signals | int]) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._live(parent, mask)
        self._born[pid] = self._clock.monotonic()

    def _live(self, parent: int, mask: set[signal.Signals | int]) -> NoReturn:
        """In the worker. It never comes back into the parent's code."""
        code = 1
        try:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            if os.getppid() == parent:
                self._work()
                code = 0
        except KeyboardInterrupt:
            code = 130
        except BaseException:  # whatever it is, it is said once, here
            log.exception("A proxy worker failed")
        finally:
            os._exit(code)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            metrics.forget_process(pid)
            born = self._born.pop(pid, None)
            self._leaving.discard(pid)
            if born is not None:
                self._note_death(pid, status, self._clock.monotonic() - born)

    def _note_death(self, pid: int, status: int, lived: float) -> None:
        self._failures = 1 if lived >= STEADY_SECONDS else self._failures + 1
        pause = back_off(self._failures, FIRST_PAUSE, LONGEST_PAUSE)
        self._pause_until = self._clock.monotonic() + pause
        code = os.waitstatus_to_exitcode(status)
        log.warning("A proxy worker ended, starting another", pid=pid, exit_code=code, pause=pause)

    def _renew(self) -> None:
        """The new ones are forked in the next round of the loop; the old ones still serve what they have."""
        old = set(self._born)
        self._born.clear()
        self._leaving |= old
        self._signal(old, signal.SIGTERM)

    def _stop(self) -> None:
        workers = set(self._born) | self._leaving
        self._leaving, self._born = workers, {}
        self._signal(workers, signal.SIGTERM)
        deadline = self._clock.monotonic() + self._stop_seconds + 2
        while self._leaving and (left := deadline - self._clock.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, left)
            self._reap()
        self._signal(self._leaving, signal.SIGKILL)
        while self._leaving:
            signal.sigtimedwait({signal.SIGCHLD}, 1)
            self._reap()

    def _signal(self, pids: set[int], number: int) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
