"""Run one command inside a running workspace: in its namespaces, its control groups, as its user. Started by `inside`.

What to run comes as JSON before the command's own standard input, on the same descriptor: length in ten digits, then
the text. How it ended goes to the descriptor named by the first argument.
"""

# Plain names and descriptors instead of paths: most of this runs between a fork and an exec.
# ruff: noqa: PTH116

import contextlib
import json
import os
import signal
import sys
from typing import Any, NoReturn

from codehub.runtimes.shepherd import seccomp, shares, tree
from codehub.runtimes.shepherd.launch import join_groups
from codehub.system import kernel
from codehub.system.processes import Identity

KINDS = ("mnt", "ipc", "uts", "net", "cgroup", "pid")
NOT_FOUND, NOT_RUNNABLE = 127, 126


def main(arguments: list[str]) -> None:
    report = int(arguments[0])
    try:
        wanted = json.loads(read_exactly(int(read_exactly(10))))
        if wanted["contained"]:
            _end_with(wanted["parent"])
        join_groups(wanted["groups"], tell=False)
        if wanted["isolation"] != "none":
            _enter(wanted)
        outcome = _run_contained(wanted, report) if wanted["contained"] else _run(wanted, report)
    except OSError as e:
        outcome = {"error": e.strerror or str(e)}
    if outcome:
        os.write(report, json.dumps(outcome).encode())
    os._exit(0)


def read_exactly(size: int) -> bytes:
    """Not a byte more: the rest belongs to somebody else."""
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            raise OSError("told too little")
        data += piece
    return data


def _enter(wanted: dict[str, Any]) -> None:
    who = Identity(**wanted["first"])
    held = {kind: os.open(f"/proc/{who.pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in KINDS}
    inner = os.open(f"/proc/{wanted['ide']}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    if not who.alive():  # checked after opening: these are its namespaces and nobody else's
        raise OSError("the workspace has ended")
    ours = os.stat("/proc/self/ns/user")
    # What it shares with us (the network) is not ours to enter, and need not be.
    different = [kind for kind in KINDS if os.fstat(held[kind]).st_ino != os.stat(f"/proc/self/ns/{kind}").st_ino]
    outer = kernel.owning_user_namespace(held["mnt"])
    strangers = os.fstat(outer).st_ino != ours.st_ino
    # From here on the workspace can see us in its /proc; what that tells about us is not for it.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    if strangers:  # an ordinary user's sandbox: rights in its user namespace come first
        kernel.setns(outer, kernel.CLONE_NEWUSER)
    for kind in different:
        kernel.setns(held[kind])
    if strangers and os.fstat(inner).st_ino != os.fstat(outer).st_ino:
        kernel.setns(inner, kernel.CLONE_NEWUSER)


def _run(wanted: dict[str, Any], report: int) -> dict[str, Any]:
    child = os.fork()
    if child == 0:
        os.close(report)
        _become(wanted)
    late = False

    def end(*_: object) -> None:
        nonlocal late
        late = True
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, wanted["timeout"])
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code if code >= 0 else 128 - code, "timed_out": late}


def _run_contained(wanted: dict[str, Any], report: int) -> dict[str, Any] | None:
    """By one that says itself how it went, in the workspace's own pid namespace. None: it has said so."""
    parent = os.getpid()
    _end_with(wanted["parent"])  # again: entering a user namespace may have cleared it
    warden = os.fork()
    if warden == 0:
        _end_with(parent)
        os.write(report, json.dumps(_contain(wanted, report)).encode())
        os._exit(0)
    _, status = os.waitpid(warden, 0)
    if status:
        raise OSError("it was ended from outside")  # with its workspace, most likely
    return None


def _end_with(parent: int) -> None:
    """Should the parent die, so do we. In another pid namespace its number is 0."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() not in {0, parent}:
        os._exit(1)


def _contain(wanted: dict[str, Any], report: int) -> dict[str, Any]:
    """Run the command one pid namespace further in: with its first process the kernel ends everything in there.

    Where that is not allowed (an ordinary user's platform without isolation), those who fork away become our children.
    """
    try:
        kernel.unshare(kernel.CLONE_NEWPID)
        first = _first_process
    except OSError:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        first = _become
    child = os.fork()
    if child == 0:
        os.close(report)
        if first is _first_process:
            _end_with(0)
        first(wanted)
    late = False

    def end(*_: object) -> None:
        nonlocal late
        late = True
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, wanted["timeout"])
    code = _wait_for(child)
    signal.setitimer(signal.ITIMER_REAL, 0)
    tree.kill_descendants(os.getpid())
    return {"code": code, "timed_out": late}


def _first_process(wanted: dict[str, Any]) -> NoReturn:
    """Number 1 in there: buries those that are left to it, and ends with the command."""
    command = os.fork()
    if command == 0:
        _become(wanted)
    os._exit(_wait_for(command))


def _wait_for(child: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _become(wanted: dict[str, Any]) -> NoReturn:
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and programs rely on
            signal.signal(number, signal.SIG_DFL)
        os.chdir("/")
        kernel.give_up_rights(wanted["uid"], wanted["gid"])
        shares.prefer_for_oom()
        shares.apply_rlimits(wanted["rlimits"])
        os.umask(0o022)
        os.chdir(wanted["directory"])
        seccomp.load(wanted["filter"])
        os.execvpe(wanted["command"][0], wanted["command"], wanted["environment"])  # noqa: S606
    except FileNotFoundError:
        os.write(2, f"{wanted['command'][0]}: not found\n".encode())
        os._exit(NOT_FOUND)
    except OSError as e:
        os.write(2, f"{wanted['command'][0]}: {e.strerror}\n".encode())
        os._exit(NOT_RUNNABLE)


if sys.flags.isolated:  # a helper process of ours: what is needed after the change of root is loaded before it
    import encodings.idna  # noqa: F401
