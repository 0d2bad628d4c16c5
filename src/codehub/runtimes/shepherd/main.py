"""The shepherd: one small process per running workspace, outside its sandbox, that outlives the platform.

Started by `runtimes.process`; it says on its standard output how the start went and then goes on alone. It holds the
workspace's lock, keeps the log within bounds, passes SIGTERM on to the IDE, and writes down how it ended. IDE and
shepherd end together: whichever dies, the kernel or the other one sees to the rest.
"""

# Plain names and descriptors instead of paths: most of this runs between a fork and an exec.
# ruff: noqa: PTH101, PTH102, PTH105, PTH108, PTH116, PTH123

import contextlib
import fcntl
import json
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from codehub.runtimes.shepherd import launch, namespaces, tree
from codehub.runtimes.shepherd.log_files import LogFiles
from codehub.runtimes.shepherd.log_rate import LogRate
from codehub.runtimes.shepherd.namespaces import Begin
from codehub.runtimes.shepherd.network import Inside, Network
from codehub.runtimes.shepherd.shares import rlimits
from codehub.runtimes.shepherd.spec import BUBBLEWRAP, PLAIN, Spec
from codehub.runtimes.shepherd.watch import Watch
from codehub.system import kernel
from codehub.system.processes import Identity

CHUNK = 1 << 17
LOCK_TRIES, LOCK_PAUSE = 200, 0.05  # a verb that moves the volume holds the lock for moments


class NotStartedError(Exception):
    """Said to whoever asked for the start."""


def main(_arguments: list[str]) -> None:
    spec = Spec.loads(sys.stdin.buffer.read())
    if os.fork():
        os._exit(0)  # nobody waits for us: we belong to no session, and to no platform
    run(spec, namespaces.execute)


def run(spec: Spec, begin: Begin) -> NoReturn:
    """The shepherd's life, in a process of its own; `begin` makes the process inside the program."""
    os.setsid()
    os.chdir("/")
    os.umask(0o027)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    try:
        shepherd = Shepherd(spec)
        shepherd.start(begin)
    except NotStartedError as e:
        _answer({"running": True} if not e.args else {"error": str(e)})
        os._exit(0)
    except OSError as e:
        _answer({"error": f"{e.strerror or e} ({e.filename})" if e.filename else str(e.strerror or e)})
        os._exit(1)
    _answer({"started": True})
    shepherd.tend()


def _answer(words: dict[str, Any]) -> None:
    """Tell the platform, and let go of it: it may be gone already, which is fine."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(words).encode())
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


class Shepherd:
    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._lock = take_lock(spec)
        open_home(spec)
        fresh_socket_dir(spec)
        self._log = LogFiles(spec.log_dir, spec.log_max_bytes)
        self._rate = LogRate(spec.shares.log_rate, max(CHUNK, spec.log_max_bytes))
        self._code: int | None = None
        self._silent = False

    def start(self, begin: Begin) -> None:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._spec.exit_file)
        self._child = launch.launch(self._spec, begin)
        first = Identity.of(self._child.first)
        me = Identity.of(os.getpid())
        if first is None or me is None:
            raise NotStartedError(self._last_words())
        self._first = first
        inside = Inside(first.pid, self._spec.uid, self._spec.gid, has_loopback=self._spec.isolation == BUBBLEWRAP)
        self._network = Network(self._spec.network, inside, lambda: launch.join_groups(self._spec.groups))
        self._network.open()
        signal.signal(signal.SIGTERM, self._pass_on)
        write_json(
            self._spec.record,
            {
                "workspace_id": self._spec.workspace_id,
                "shepherd": vars(me),
                "first": vars(first),
                "isolation": self._spec.isolation,
                "address": self._spec.address,
                "started_at": time.clock_gettime(time.CLOCK_REALTIME),
                "uid": self._spec.uid,
                "gid": self._spec.gid,
                "user": self._spec.user,
                "directory": self._spec.directory,
                "groups": self._spec.groups,
                "network": self._spec.network.kind,
                "rlimits": rlimits(self._spec.shares),
                "filter": self._spec.shares.filter,
                "ready": self._spec.ready,
            },
        )
        try:
            self._child.let_go()
        except BrokenPipeError:  # it ended meanwhile, and most likely said why
            raise NotStartedError(self._last_words()) from None

    def _last_words(self) -> str:
        said = os.read(self._child.output, 2000).decode(errors="replace").strip()
        return said or "the sandbox ended before it began"

    def _pass_on(self, number: int, _frame: Any) -> None:
        """To the IDE itself: the sandbox around it neither reacts nor should."""
        pid = self._first.pid if self._spec.isolation == PLAIN else tree.ide_of(self._first.pid)
        with contextlib.suppress(OSError):
            if pid is None:  # it has not begun, so it has nothing to finish
                os.kill(self._first.pid, signal.SIGKILL)
                return
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, number)

    def tend(self) -> NoReturn:
        os.set_blocking(self._child.output, False)
        watch = Watch(self._spec, self._first.pid, self._note)
        while self._code is None:
            # A log that comes too fast is not read for a while: its writer waits.
            wait = None if self._silent else self._rate.pause()
            tasks = {**self._own_tasks(listening=wait is None), **self._network.watched()}
            watched = select.poll()
            for fd in tasks:
                watched.register(fd, select.POLLIN)
            for fd, _ in watched.poll(_milliseconds(watch.pause(), wait)):
                self._do(tasks[fd])
            self._do(watch.look)
            self._bury()
        self._finish(self._code)

    def _own_tasks(self, *, listening: bool) -> dict[int, Callable[[], object]]:
        """What to do when a descriptor can be read."""
        tasks: dict[int, Callable[[], object]] = {self._wake: lambda: os.read(self._wake, 4096)}
        return {**tasks, self._child.output: self._pump} if listening and not self._silent else tasks

    def _do(self, task: Callable[[], object]) -> None:
        """Nothing that goes wrong here may end us: we are the workspace's life."""
        try:
            task()
        except OSError as e:
            self._log.write(f"[codehub] {e.strerror or e}\n".encode())

    def _pump(self) -> None:
        """One piece of output into the log, until there will be no more."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._child.output, CHUNK)
            self._log.write(data)
            self._rate.spend(len(data))
            self._silent = not data

    def _note(self, text: str) -> None:
        self._log.write(f"[codehub] {text}\n".encode())

    def _bury(self) -> None:
        buried = tree.reap()
        self._network.ended(list(buried))
        status = buried.get(self._child.waits_for)
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            self._code = code if code >= 0 else 128 - code

    def _finish(self, code: int) -> NoReturn:
        tree.kill_descendants(os.getpid())
        for _ in range(64):  # what was written last; its writers are dead, so there is an end to it
            with contextlib.suppress(BlockingIOError):
                data = os.read(self._child.output, CHUNK)
                self._log.write(data)
                if data:
                    continue
            break
        if note := launch.why_ended(self._spec):
            self._log.write(f"[codehub] {note}\n".encode())
        write_json(self._spec.exit_file, {"code": code, "at": time.clock_gettime(time.CLOCK_REALTIME)})
        launch.leave_groups(self._spec)
        remove(self._spec.socket_dir)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._spec.record)
        os._exit(0)


def _milliseconds(*seconds: float | None) -> int | None:
    """For a poll: until the first of these, or for ever."""
    known = [pause for pause in seconds if pause is not None]
    return max(0, round(min(known) * 1000)) + 1 if known else None


def take_lock(spec: Spec) -> int:
    """The lock of this workspace, for life. Held by another shepherd means: running already."""
    for _ in range(LOCK_TRIES):
        fd = os.open(spec.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(spec.lock).st_ino == os.fstat(fd).st_ino:
                return fd
        except BlockingIOError:
            if _runs(spec.record):
                raise NotStartedError from None
        except FileNotFoundError:
            pass  # removed while we took it: the file we hold is nobody's
        os.close(fd)
        time.sleep(LOCK_PAUSE)
    raise NotStartedError("another operation holds the workspace")


def _runs(record: str) -> bool:
    try:
        with open(record, encoding="utf-8") as file:
            return Identity(**json.load(file)["first"]).alive()
    except (OSError, ValueError, TypeError, KeyError, RecursionError):  # of whatever is damaged nothing is known
        return False


def fresh_socket_dir(spec: Spec) -> None:
    """Belongs to the workspace's user; whatever it makes there gets the proxy's group. Nobody else may even look."""
    remove(spec.socket_dir)
    os.mkdir(spec.socket_dir, 0o700)
    if spec.uid is not None and spec.socket_gid is not None:
        os.chown(spec.socket_dir, spec.uid, spec.socket_gid)
        os.chmod(spec.socket_dir, 0o2710)  # noqa: S103 (the group passes through, nobody else)
    elif spec.uid is not None:
        os.chown(spec.socket_dir, spec.uid, spec.uid)


def remove(folder: str) -> None:
    """Somebody else filled it, so by `rm`: however deep, and without following links. Closed folders are opened."""
    remove = ("rm", "-rf", "--one-file-system", "--", folder)
    if not _succeeds(*remove):
        _succeeds("chmod", "-R", "u+rwx", "--", folder)
        _succeeds(*remove)


def _succeeds(*command: str) -> bool:
    pid = os.posix_spawnp(command[0], command, {"PATH": os.defpath})
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, 0)[1] == 0
    return not os.path.lexists(command[-1])


def open_home(spec: Spec) -> None:
    """It must be there, or we do not start. Closed by its owner, nothing could begin in it: it is opened again."""
    home = os.open(spec.home, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = stat.S_IMODE(os.fstat(home).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{home}", mode | stat.S_IRWXU)
    finally:
        os.close(home)


def write_json(path: str, values: dict[str, Any]) -> None:
    """Whole or not at all."""
    fresh = f"{path}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    try:
        os.write(fd, json.dumps(values).encode())
    finally:
        os.close(fd)
    os.replace(fresh, path)
