"""Warm parents, one for each kind of Python program that a template wants warm. Owned by `process`, asked at a start.

A parent (`shepherd.warm`) is started when its template is first wanted, in the background, and again when what it had
loaded has changed. Whatever is wrong with one, the start is cold: `ParentFailedError` says why.
"""

import contextlib
import dataclasses
import json
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from codehub import logs
from codehub.runtimes import launch
from codehub.runtimes.base import Cold
from codehub.runtimes.shepherd.python_program import READ_AT_START, PythonProgram
from codehub.runtimes.shepherd.spec import NAMESPACES, Spec
from codehub.runtimes.shepherd.warm import BEGUN, WarmSpec
from codehub.system import kernel

log = logs.get()
LOAD_SECONDS = 60.0  # until everything is imported, on a busy machine
BEGIN_SECONDS = 3.0  # until a copy answers: a parent that takes longer is stopped, or worse
ANSWER_SECONDS = 30.0  # until the workspace's process is there, as for a cold start
AGAIN_SECONDS = 60.0  # after one that was not fit
# Names that nobody has: what modules keep of them when they are imported, a copy replaces by its own.
NO_WORKSPACE, NO_USER = "codehub-placeholder", "codehubplaceholder"


@dataclass(frozen=True)
class WarmConfig:
    idle_seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Kind:
    """What a parent is: programs of one kind are copies of one parent."""

    interpreter: str
    flags: tuple[str, ...]
    preload: tuple[str, ...]
    kernels: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls, program: PythonProgram, preload: tuple[str, ...], kernels: tuple[str, ...], environment: Mapping[str, str]
    ) -> "Kind":
        return cls(program.interpreter, program.flags, preload, kernels, tuple(sorted(environment.items())))


def cold_because(spec: Spec, kind: Kind) -> Cold | None:
    """Why this workspace cannot be a copy of such a parent; None when it can."""
    if spec.isolation != NAMESPACES:
        return Cold.SANDBOX
    parents = dict(kind.environment)
    for name in {*spec.environment, *parents}:
        expected = parents.get(name, "").replace(NO_USER, spec.user)
        if name.startswith(READ_AT_START) and spec.environment.get(name, "") != expected:
            return Cold.ENVIRONMENT
    return None


class ParentFailedError(Exception):
    """It is not there, not fit, or does not answer: the start is cold."""

    def __init__(self, reason: Cold, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


class _Parent:
    """One process, and the socket that it is asked on."""

    def __init__(self, kind: Kind, config: WarmConfig) -> None:
        told = WarmSpec(
            list(kind.preload),
            list(kind.kernels),
            config.idle_seconds,
            config.memory_bytes,
            [NO_WORKSPACE[::-1], NO_USER[::-1]],
        )
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = _spawn(kind, json.dumps(dataclasses.asdict(told)), theirs)
        theirs.close()
        self._control.settimeout(LOAD_SECONDS)

    @property
    def pid(self) -> int:
        return self._process.pid

    def load(self) -> None:
        """Wait until it is ready."""
        try:
            said = json.loads(self._control.recv(65536) or b"{}")
        except (OSError, ValueError):
            said = {}
        if "ready" not in said:
            self.end()
            raise ParentFailedError(Cold.UNFIT, said.get("unfit") or "it ended, or did not come to an end with loading")
        if said["missing"]:
            log.warning("Modules to preload are not there", modules=said["missing"])

    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, theirs: socket.socket) -> None:
        try:
            socket.send_fds(self._control, [b"?"], [theirs.fileno()])
        except OSError as e:
            raise ParentFailedError(Cold.OUTDATED) from e

    def end(self) -> None:
        self._control.close()
        with contextlib.suppress(OSError):
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def _spawn(kind: Kind, told: str, control: socket.socket) -> "subprocess.Popen[bytes]":
    """Nothing of ours but that socket: neither our environment, nor our files, nor our session."""
    fd = control.fileno()
    return subprocess.Popen(
        launch.warm_parent(kind.interpreter, kind.flags, str(fd), told),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(kind.environment),
        cwd="/",
        start_new_session=True,
        pass_fds=(fd,),
    )


class WarmParents:
    """All of this machine. Its methods block: they are called in threads, several at a time."""

    def __init__(self, config: WarmConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._ready: dict[Kind, _Parent] = {}
        self._loading: set[Kind] = set()
        self._unfit: dict[Kind, float] = {}  # since when
        self._closed = False

    def warm_up(self, kind: Kind) -> None:
        """Have a parent of this kind; one that is there, or is being loaded, is enough."""
        with self._lock:
            there = self._ready.get(kind)
            if (there and there.alive()) or kind in self._loading or self._rests(kind):
                return
            self._loading.add(kind)
        try:
            parent = _Parent(kind, self._config)
            parent.load()
        except (ParentFailedError, OSError) as e:
            log.warning("Starts stay cold", program=kind.interpreter, preload=kind.preload, reason=str(e))
            with self._lock:
                self._unfit[kind] = kernel.now_seconds()
        else:
            self._keep(kind, parent)
        finally:
            with self._lock:
                self._loading.discard(kind)

    def _rests(self, kind: Kind) -> bool:
        since = self._unfit.get(kind)
        return since is not None and kernel.now_seconds() - since < AGAIN_SECONDS

    def _keep(self, kind: Kind, parent: _Parent) -> None:
        with self._lock:
            over = parent if self._closed else self._ready.get(kind)
            if not self._closed:
                self._ready[kind] = parent
                self._unfit.pop(kind, None)
        if over:
            over.end()

    def hand_over(self, kind: Kind, spec: Spec) -> bytes:
        """What the shepherd said, which is a copy of the parent. ParentFailedError: nothing has begun."""
        with self._lock:
            parent = self._ready.get(kind)
            reason = Cold.UNFIT if kind in self._unfit else Cold.NOT_LOADED
        if parent is None or not parent.alive():
            raise ParentFailedError(reason)
        ours, theirs = socket.socketpair()
        with ours:
            try:
                with theirs:
                    parent.ask(theirs)
                ours.settimeout(BEGIN_SECONDS)
                begun = ours.recv(len(BEGUN)) == BEGUN
            except (ParentFailedError, OSError):
                begun = False
            if not begun:
                self._drop(kind, parent)
                raise ParentFailedError(Cold.OUTDATED)
            ours.settimeout(ANSWER_SECONDS)
            ours.sendall(spec.dumps())
            ours.shutdown(socket.SHUT_WR)
            return _read_all(ours)

    def _drop(self, kind: Kind, parent: _Parent) -> None:
        with self._lock:
            if self._ready.get(kind) is parent:
                del self._ready[kind]
        parent.end()

    def pids(self) -> dict[Kind, int]:
        """Those that are there, for tests and `doctor`."""
        with self._lock:
            return {kind: parent.pid for kind, parent in self._ready.items() if parent.alive()}

    def close(self) -> None:
        """Also those that are being loaded, once they are."""
        with self._lock:
            self._closed = True
            parents, self._ready = list(self._ready.values()), {}
        for parent in parents:
            parent.end()


def _read_all(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data
