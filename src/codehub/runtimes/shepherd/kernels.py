"""A kernel parent: one more copy of a warm program, made before that begins, which is copied for each of its kernels.

`become` forks it inside of the workspace's walls, with all rights given up and before anything of the person's is read.
It has one socket, whose other end the program has (`codehub.jupyter.kernels`): it is asked there, answers with a pid or
with why not, and reads nothing else. A copy of it becomes the child of the program, as a kernel that was started anew
would be. It ends with the program. Somebody inside may end it, stop it or speak to it: that costs a cold kernel.
"""

# Plain names and descriptors instead of paths: most of this runs between a fork and a program.
# ruff: noqa: PTH110, PTH118, PTH208

import importlib.machinery
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from codehub.runtimes.shepherd import become, own_packages, python_program, stamps
from codehub.runtimes.shepherd.become import Become, Offer
from codehub.runtimes.shepherd.python_program import READ_AT_START, PythonProgram
from codehub.runtimes.shepherd.spec import Spec
from codehub.system import kernel

NAME = "codehub-kernels"
LAUNCHER = ("-m", "ipykernel_launcher", "-f")
# What is loaded for kernels reads these when it is imported, beside what an interpreter reads.
OWN_NAMES = ("DEBUGPY", "IDE_PROJECT_ROOTS", "IPY", "PATHS_FROM_ECLIPSE", "PYDEVD")
READ_AT_IMPORT = (*READ_AT_START, *OWN_NAMES)
LONGEST = 1 << 18  # bytes of a question
READY = b"ready"
SUFFIXES = tuple(importlib.machinery.all_suffixes())


@dataclass(frozen=True)
class Loaded:
    """What a copy has, and when another one would be needed."""

    stamps: bytes
    absent: Collection[str]  # modules that were looked for and were not there
    variables: Mapping[str, str]  # that modules have put into the environment


def offer(loaded: Loaded | None, program: PythonProgram, spec: Spec, become_program: Become) -> Offer | None:
    """In the program to be: None if there is none to be. In each kernel `become_program` is called, and raises."""
    if loaded is None or program.flags:  # its kernels would not have these
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    me = os.getpid()
    try:
        pid = os.fork()
    except OSError:  # as many processes as it may have
        pid = -1
    if not pid:
        ours.close()
        _KernelParent(theirs, me, loaded, spec.environment, become_program).live()
    theirs.close()
    if pid < 0:
        ours.close()
        return None
    return Offer(ours.detach(), pid)


@dataclass(frozen=True)
class _KernelParent:
    control: socket.socket
    program: int  # the pid that it belongs to
    loaded: Loaded
    environment: Mapping[str, str]  # the workspace's own
    become_program: Become

    def live(self) -> NoReturn:
        try:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            become.show([NAME], {}, NAME)
            while os.getppid() == self.program:
                self._answer()
        except Exception:  # noqa: BLE001 (whatever it is: kernels are cold from now on)
            os._exit(1)
        os._exit(0)

    def _answer(self) -> None:
        data, descriptors, flags, _ = socket.recv_fds(self.control, LONGEST, 3)
        if len(descriptors) != 3 or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            os._exit(0)  # also when nobody will ask any more
        asked = json.loads(data)
        try:
            reason = cold_because(asked, self.loaded, self.environment)
            said = {"cold": reason} if reason else self._copy(asked, descriptors)
        except OSError as e:  # its folder is gone, or there are as many processes as there may be
            said = {"cold": f"it could not be forked: {e.strerror}"}
        for fd in descriptors:
            os.close(fd)
        self.control.send(json.dumps(said).encode())

    def _copy(self, asked: Mapping[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Forked twice: the kernel then belongs to the program, which has said that it adopts."""
        hear, tell = os.pipe()
        if not (between := os.fork()):
            self._become_kernel(asked, descriptors, tell)
        os.close(tell)
        os.waitpid(between, 0)
        with os.fdopen(hear, "rb") as file:
            pid, _, state = file.read().partition(b" ")
        said: dict[str, Any] = {"pid": int(pid)} if pid else {}
        return said if state == READY else {**said, "cold": f"it could not be forked: {state.decode()}"}

    def _become_kernel(self, asked: Mapping[str, Any], descriptors: list[int], tell: int) -> NoReturn:
        try:
            if os.fork():
                os._exit(0)
            os.write(tell, b"%d " % os.getpid())
            self.control.close()
            os.setsid()
            _take_over(asked, descriptors, tell)
        except OSError as e:
            os.write(tell, str(e.strerror).encode())
            os._exit(1)
        program = python_program.of(asked["command"])
        if program is None or os.read(3, 1) != b"g":
            os._exit(1)  # they have started another one
        os.close(3)
        try:
            self.become_program(program, asked["environment"], asked["directory"])
        finally:  # as if they were imported now
            os.environ.update(self.loaded.variables)


def cold_because(asked: Mapping[str, Any], loaded: Loaded, environment: Mapping[str, str]) -> str | None:
    """Why this kernel cannot be a copy; None when it can. `environment`: the workspace's own.

    `os.environ` is that of the warm parent still: what it has may have been read when modules were imported.
    """
    interpreter, *words = asked["command"]
    own = asked["environment"]
    if interpreter != sys.executable or len(words) != 4 or tuple(words[:3]) != LAUNCHER:
        return "it is another kernel than this installation's own"
    for name in {*own, *os.environ}:
        if own.get(name) != environment.get(name) and (name in os.environ or name.startswith(READ_AT_IMPORT)):
            return f"{name} in its environment is not as it was for what is loaded"
    if stamps.changed(loaded.stamps, inside=True):
        return "what is installed has changed"
    if own_packages.change(environment["HOME"], loaded.absent):
        return "packages in the home would change what is loaded"
    if name := _shadowed(asked["directory"]):
        return f"{name} in its folder would be imported instead of what is loaded"
    return None


def _shadowed(folder: str) -> str | None:
    """A module of the folder it starts in comes before all others, also one that was meant to be something else."""
    known = {name.partition(".")[0] for name in sys.modules}
    for name in os.listdir(folder):
        if name.partition(".")[0] in known and (
            name.endswith(SUFFIXES) or os.path.exists(os.path.join(folder, name, "__init__.py"))
        ):
            return name
    return None


def _take_over(asked: Mapping[str, Any], descriptors: list[int], tell: int) -> None:
    """As it would be inherited from the program. What it is to wait for is 3 from then on, and all else is closed."""
    output, errors, go = descriptors
    stdin, nobody = os.pipe()
    os.close(nobody)
    high = os.dup(go), os.dup(tell), os.dup(output), os.dup(errors), os.dup(stdin)
    for fd, place in zip(high, (3, 4, 1, 2, 0), strict=True):
        os.dup2(fd, place)
    os.closerange(5, 64)
    os.umask(asked["umask"])
    for number, soft, hard in asked["limits"]:
        resource.setrlimit(number, (soft, hard))
    os.sched_setaffinity(0, asked["processors"])
    os.setpriority(os.PRIO_PROCESS, 0, asked["priority"])
    os.chdir(asked["directory"])
    os.write(4, READY)
    os.close(4)
