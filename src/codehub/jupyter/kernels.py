"""Kernels that start warm: JupyterLab asks the kernel parent beside it for a copy, which is then its own child.

`offered` is put here when a copy of a warm parent becomes JupyterLab (`runtimes.shepherd.kernels` is the other side);
the server extension makes `WarmProvisioner` the provisioner of kernels, unless the person has configured another. All
that is done with a kernel afterwards is what jupyter_client does with those it starts itself. Where there is no copy to
be had, the kernel is started as ever, and the server's log says why.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import pathlib
import resource
import signal
import socket
import threading
from importlib.metadata import EntryPoint
from typing import Any, cast

from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

NAME = "codehub-warm"
SECONDS = 5.0  # for an answer: a parent that takes longer is stopped, or worse
LONGEST = 1 << 17  # bytes of a question
PR_SET_CHILD_SUBREAPER = 36
LIMITS = [number for name, number in vars(resource).items() if name.startswith("RLIMIT_")]

offered: tuple[int, int] | None = None  # a descriptor and a pid


class RefusedError(Exception):
    """There is no copy; says why."""


class WarmKernel:
    """As much of `subprocess.Popen` as a provisioner uses, for a child that was forked for us."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        return self._bury(os.WNOHANG)

    def wait(self) -> int | None:
        return self._bury(0)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _bury(self, options: int) -> int | None:
        with self._lock:
            if self.returncode is None:
                try:
                    pid, status = os.waitpid(self.pid, options)
                except ChildProcessError:  # somebody else has
                    self.returncode = 0
                else:
                    self.returncode = os.waitstatus_to_exitcode(status) if pid else None
            return self.returncode


class KernelParent:
    """The process that is asked. Whatever is wrong with it, it is ended, and not asked again."""

    def __init__(self, fd: int, pid: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.settimeout(SECONDS)
        self._pid = pid
        self._lock = threading.Lock()
        self._libc = ctypes.CDLL(None, use_errno=True)

    def copy(self, question: bytes) -> WarmKernel:
        """In a thread: it takes as long as a fork."""
        if len(question) > LONGEST:
            raise RefusedError("its environment is too large")
        with self._lock:
            if not self._pid:
                raise RefusedError("their parent is gone")
            try:
                return self._ask(question)
            except (OSError, ValueError, TypeError, KeyError) as e:
                self._end()
                raise RefusedError(f"their parent did not answer ({type(e).__name__})") from e

    def end(self) -> None:
        with self._lock:
            if self._pid:
                self._end()

    def _ask(self, question: bytes) -> WarmKernel:
        go, let_go = os.pipe()
        try:
            said = self._exchange(question, go)
            if "pid" not in said:
                raise RefusedError(str(said["cold"]))
            kernel = WarmKernel(int(said["pid"]))
            # Not before it is ours for certain: a pid that we do not wait for may be anybody's.
            os.waitid(os.P_PID, kernel.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if "cold" in said:
                kernel.wait()
                raise RefusedError(str(said["cold"]))
            os.write(let_go, b"g")
            return kernel
        finally:
            os.close(go)
            os.close(let_go)

    def _exchange(self, question: bytes, go: int) -> dict[str, Any]:
        """What loses its parent meanwhile becomes our child: the copy does."""
        self._libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
        try:
            socket.send_fds(self._socket, [question], [1, 2, go])
            said = json.loads(self._socket.recv(4096))
        finally:
            self._libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(0), 0, 0, 0)
        return dict(said)

    def _end(self) -> None:
        pid, self._pid = self._pid, 0
        self._socket.close()
        with contextlib.suppress(OSError):  # it has been waited for
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class WarmProvisioner(LocalProvisioner):
    """The provisioner of all kernels that name none of their own."""

    parent_of_kernels: KernelParent | None = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        try:
            kernel = await self._copy(cmd, self._scrub_kwargs(kwargs))
        except RefusedError as e:
            self.log.info("Kernel %s is started cold: %s", self.kernel_id, e)
            return await super().launch_kernel(cmd, **kwargs)
        self.process = cast("Any", kernel)
        self.pid = self.pgid = kernel.pid  # it leads a session
        self.cwd = kwargs.get("cwd", pathlib.Path.cwd())
        return self.connection_info

    async def _copy(self, cmd: list[str], given: dict[str, Any]) -> WarmKernel:
        if self.parent_of_kernels is None or given.keys() - {"env", "cwd"}:
            raise RefusedError("it is to be started in another way")
        given["env"]["JPY_PARENT_PID"] = str(os.getpid())
        question = {
            "command": cmd,
            "environment": given["env"],
            "directory": os.fspath(given.get("cwd") or pathlib.Path.cwd()),
            "umask": _umask(),
            "limits": [(number, *resource.getrlimit(number)) for number in LIMITS],
            "processors": sorted(os.sched_getaffinity(0)),
            "priority": os.getpriority(os.PRIO_PROCESS, 0),
        }
        return await asyncio.to_thread(self.parent_of_kernels.copy, json.dumps(question).encode())


def _umask() -> int:
    lines = pathlib.Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines()
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))


def use(server: Any) -> None:
    """By the server extension, before there are kernels."""
    try:
        parent = KernelParent(*offered) if offered else None
    except OSError as e:  # something of the person's has closed it
        server.log.info("Kernels are started cold: %s", e.strerror)
        return
    if parent is None:
        server.log.info("Kernels are started cold: this server was, too")
        return
    own = server.config.KernelProvisionerFactory
    if "default_provisioner_name" in own or os.environ.get(KernelProvisionerFactory.default_provisioner_name_env):
        server.log.info("Kernels are started by the provisioner that is configured")
        parent.end()
        return
    WarmProvisioner.parent_of_kernels = parent
    factory = KernelProvisionerFactory.instance(parent=server)
    entry = EntryPoint(NAME, f"{__name__}:{WarmProvisioner.__name__}", KernelProvisionerFactory.GROUP_NAME)
    factory.provisioners[NAME] = entry
    factory.default_provisioner_name = NAME
