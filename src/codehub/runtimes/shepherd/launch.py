"""Starting the sandbox's processes, held back until the shepherd has written down who they are. Called by `main`."""

# Plain names and descriptors instead of paths: most of this runs between a fork and an exec.
# ruff: noqa: PTH106, PTH123

import contextlib
import fcntl
import json
import os
import signal
import time
from dataclasses import dataclass
from typing import NoReturn

from codehub.runtimes.shepherd import namespaces, seccomp, shares
from codehub.runtimes.shepherd.namespaces import Begin
from codehub.runtimes.shepherd.spec import BUBBLEWRAP, NAMESPACES, UMASK, Spec
from codehub.system import kernel

PIPE_BYTES = 1 << 20
F_SETPIPE_SZ = 1031
PRLIMIT = ("/usr/bin/prlimit", "/bin/prlimit")  # never by the workspace's PATH, which begins in its own home


@dataclass(frozen=True)
class Child:
    first: int  # the process whose end is the end of everything inside
    waits_for: int  # the one of ours whose exit code counts
    output: int  # reads what they print
    _go: int

    def let_go(self) -> None:
        os.write(self._go, b"g")
        if self.first != self.waits_for:
            os.close(self._go)  # bubblewrap only waits for something to read


def launch(spec: Spec, begin: Begin) -> Child:
    output, printed = os.pipe()
    go, let_go = os.pipe()
    hear, tell = os.pipe()
    with contextlib.suppress(OSError):  # an ordinary user may have to do with less
        fcntl.fcntl(output, F_SETPIPE_SZ, PIPE_BYTES)
    ours = os.fork()
    if ours == 0:
        _child(spec, begin, printed, go, tell)
    for fd in (printed, go, tell):
        os.close(fd)
    said = _read_all(hear)
    first = _first_process(spec, ours, said)
    return Child(first, first if spec.isolation == NAMESPACES else ours, output, let_go)


def _first_process(spec: Spec, ours: int, said: bytes) -> int:
    if spec.isolation == NAMESPACES:
        os.waitpid(ours, 0)  # the usher; from here on the first process inside is our own child
        return int(said) if said else -1
    if spec.isolation == BUBBLEWRAP:
        return int(json.loads(said)["child-pid"]) if said else -1
    return ours


def _read_all(fd: int) -> bytes:
    data = b""
    while piece := os.read(fd, 4096):
        data += piece
        if data.rstrip().endswith(b"}") or data.isdigit():
            break
    os.close(fd)
    return data


def _child(spec: Spec, begin: Begin, printed: int, go: int, tell: int) -> NoReturn:
    """In the forked child: nothing of the shepherd's stays open, then into the sandbox."""
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for fd, place in ((nothing, 0), (printed, 1), (printed, 2)):
            os.dup2(fd, place)
        kept = sorted({0, 1, 2, go, tell})
        for low, high in zip(kept, [*kept[1:], 4096], strict=True):
            os.closerange(low + 1, high)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        join_groups(spec.groups)
        shares.prefer_for_oom()
        # Before there is a user namespace the number of processes would be counted together with the platform's own.
        early = {name: value for name, value in shares.rlimits(spec.shares).items() if spec.uid or name != "nproc"}
        shares.apply_rlimits(early)
        if spec.isolation == NAMESPACES:
            namespaces.usher(spec, begin, go, tell)
        os.setsid()
        if spec.isolation == BUBBLEWRAP:
            if spec.uid is not None and spec.network.private_network:
                kernel.unshare(kernel.CLONE_NEWNET)
                kernel.loopback_up()
            _bubblewrap(spec, go, tell)
        os.close(tell)
        _plain(spec, go)
    except OSError as e:
        os.write(2, f"[codehub] could not be started: {e.strerror or e}\n".encode())
        os._exit(namespaces.COULD_NOT)


def _bubblewrap(spec: Spec, go: int, tell: int) -> NoReturn:
    # Its arguments go through a pipe-like file, so that the process list does not show them.
    arguments = os.memfd_create("arguments", 0)
    program, *options = spec.bubblewrap
    os.write(arguments, b"".join(os.fsencode(option) + b"\0" for option in options))
    os.lseek(arguments, 0, os.SEEK_SET)
    for fd in (go, tell):
        os.set_inheritable(fd, True)
    os.umask(UMASK)
    command = [program, "--args", str(arguments), "--info-fd", str(tell), "--block-fd", str(go)]
    if spec.shares.filter:
        command += ["--seccomp", str(_filter(spec.shares.filter))]
    command += ["--"]
    prlimit = next(filter(os.path.exists, PRLIMIT), None)
    if spec.uid is None and spec.shares.own_processes and prlimit:
        command += [prlimit, f"--nproc={spec.shares.own_processes}"]
    command += spec.command
    os.execve(program, command, spec.environment)  # noqa: S606


def _filter(kind: str) -> int:
    """A file that bubblewrap reads the filter from."""
    fd = os.memfd_create("filter", 0)
    os.write(fd, seccomp.program(os.uname().machine, kind) or b"")
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _plain(spec: Spec, go: int) -> NoReturn:
    if os.read(go, 1) != b"g":
        os._exit(namespaces.COULD_NOT)
    os.chdir(spec.directory)
    kernel.give_up_rights(spec.uid, spec.gid)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # again: a change of user clears it
    os.umask(UMASK)
    os.execve(spec.command[0], spec.command, spec.environment)  # noqa: S606


def join_groups(groups: list[str], *, tell: bool = True) -> None:
    """Limits are a help to the neighbours, not a condition: without them the workspace starts, and the log says so."""
    for group in groups:
        try:
            with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
                file.write("0")
        except OSError as e:
            if tell:
                os.write(2, f"[codehub] no limit by {group}: {e.strerror}\n".encode())


def why_ended(spec: Spec) -> str:
    """What the kernel knows about an end and the log does not: that memory ran out."""
    for group in spec.groups:
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError, ValueError), open(f"{group}/{name}", encoding="ascii") as file:
                values = dict(line.split(None, 1) for line in file)
                if int(values.get("oom_kill", "0")) > 0:
                    return "the memory limit was reached, and processes were ended because of it"
    return ""


def leave_groups(spec: Spec) -> None:
    for group in spec.groups:
        for _ in range(50):  # the kernel takes a moment to see that a group is empty
            try:
                os.rmdir(group)
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.01)
            else:
                break
