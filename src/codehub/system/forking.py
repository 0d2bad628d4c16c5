"""Starting a child: a copy of this process (`fork`), which becomes a server's program or goes on as one of our roles.

A role needs no time to load what is loaded here already, at the first start and whenever it died. In return the copy
has to let go of everything that was ours alone: our event loop and its signals, our open files (the lock on the data
directory is one), the environment, what the log said about us.

As the change of account comes without a change of program, the kernel keeps such a role's memory and open files from
other processes of the same account.
"""

import asyncio
import contextvars
import gc
import os
import pathlib
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from codehub import logs
from codehub.system import kernel
from codehub.system.privileges import Account, View, enter

log = logs.get()
NOT_FOUND = 127  # as a shell would say it


@dataclass(frozen=True)
class Spec:
    """Everything about a child that does not change when it is started again."""

    name: str
    program: tuple[str, ...] | Callable[[], None]  # a command, or what to do in a copy of this process
    account: Account | None
    view: View = field(default_factory=View)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    pass_fds: tuple[int, ...] = ()
    directory: pathlib.Path | None = None
    log_file: pathlib.Path | None = None  # None: the supervisor's own output
    stop_signal: int = signal.SIGTERM
    stop_seconds: float = 15.0
    before: Callable[[], Awaitable[None]] | None = None  # clears what an earlier run left in the way


class Process:
    """A child of ours, in the running loop. Waited for through a pidfd: no thread, no handler for SIGCHLD."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._fd = os.pidfd_open(pid)
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._fd, self._reap)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set()

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None  # noqa: S101 (set before the event)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:  # not reaped yet, so the pid is still theirs
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def spawn(spec: Spec) -> Process:
    """OSError: there is no room for one more process. What goes wrong later, the child says itself, and ends."""
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal for the child must not reach our loop through the socket that both have for a moment.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _live(spec, parent, mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return Process(pid)


def _live(spec: Spec, parent: int, mask: set[int | signal.Signals]) -> NoReturn:
    """In the child. It never comes back into the parent's code."""
    code: int | str | None = 1
    try:
        gc.freeze()  # what the parent had is neither cleaned up here, nor looked at
        os.setsid()  # Ctrl-C reaches the supervisor alone, which then stops everything in order
        _forget_signals()
        _take_streams(spec.log_file)
        if spec.directory:
            os.chdir(spec.directory)
        if not isinstance(spec.program, tuple):
            _blank_files({0, 1, 2, *spec.pass_fds})
        enter(spec.account, spec.view, parent, spec.stop_signal)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if isinstance(spec.program, tuple):
            _become(spec.name, spec.program, spec.environment, spec.pass_fds)
        kernel.set_name(f"codehub-{spec.name}")
        os.environ.clear()
        os.environ.update(spec.environment)
        contextvars.Context().run(spec.program)
        code = 0
    except SystemExit as e:
        code = e.code
    except BaseException:  # whatever it is, it is said once, here
        log.exception("Process failed", process=spec.name)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _forget_signals() -> None:
    """As in a new process: a role that handles them says so itself."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _take_streams(log_file: pathlib.Path | None) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    if log_file:
        output = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)


def _become(name: str, command: tuple[str, ...], environment: Mapping[str, str], pass_fds: tuple[int, ...]) -> NoReturn:
    """Our other files close by themselves with the change of program."""
    for fd in pass_fds:
        os.set_inheritable(fd, True)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores, and programs do not expect
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execve(command[0], command, environment)  # noqa: S606 (there is no shell in between)
    except OSError as e:
        log.warning("Process could not be started", process=name, error=str(e))
        sys.exit(NOT_FOUND)


def _blank_files(keep: set[int]) -> None:
    """Let go of the parent's open files. Their numbers stay taken: objects of the parent's may still close them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 (numbers, not paths)
        if fd not in keep | {nothing}:
            os.dup2(nothing, fd, inheritable=False)
    os.close(nothing)
