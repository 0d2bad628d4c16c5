"""A sandbox without bubblewrap: namespaces by system call, mounts by hand, and the first process inside.

`main` (the shepherd) calls `launch`; `isolation` runs this module by itself as a probe. Three processes take part:
an usher that enters the namespaces and leaves, the first process inside (it mounts, starts the IDE, buries its dead and
ends with it, which ends everything in its pid namespace), and the IDE.
"""

# Plain names and descriptors instead of paths: most of this runs between a fork and an exec.
# ruff: noqa: PTH102, PTH103, PTH110, PTH112, PTH114, PTH115, PTH120, PTH211

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from codehub.runtimes.shepherd import seccomp, shares
from codehub.runtimes.shepherd.spec import UMASK, Mount, Spec
from codehub.system import kernel

COULD_NOT = 125  # exit code for a sandbox that could not be built
LEAST_FILES = 65_536
TERMINALS = 256  # of one workspace; the machine has 4096 for all
Begin = Callable[[Spec], NoReturn]  # makes the process inside the program
NODES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}


def usher(spec: Spec, begin: Begin, go: int, tell: int) -> NoReturn:
    """Forked by the shepherd: enter new namespaces, fork the first process inside, tell its pid, leave."""
    try:
        flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
        flags |= kernel.CLONE_NEWNET if spec.network.private_network else 0
        uid, gid = os.getuid(), os.getgid()
        if spec.uid is None:
            kernel.unshare(kernel.CLONE_NEWUSER | flags)
            kernel.map_user(0, 0, uid, gid)  # as its root for now: a terminal file system can only be mounted so
        else:
            kernel.unshare(flags)
        with contextlib.suppress(OSError):
            kernel.unshare(kernel.CLONE_NEWCGROUP)
        if first := os.fork():
            os.write(tell, str(first).encode())
            os._exit(0)
        os.close(tell)
        _first_process(spec, begin, go, (uid, gid))
    except OSError as e:
        _fail(e)


def _first_process(spec: Spec, begin: Begin, go: int, outside: tuple[int, int]) -> NoReturn:
    # Nothing begins before the shepherd has written down who we are; if it dies, so do we.
    if os.read(go, 1) != b"g":
        os._exit(COULD_NOT)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([go], [], [], 0)[0]:  # it ended between the two lines above
        os._exit(COULD_NOT)
    os.close(go)
    if spec.network.private_network:
        kernel.loopback_up()
    socket.sethostname(spec.workspace_id)
    build(spec.mounts)
    ide = os.fork()
    if ide == 0:
        _become_ide(spec, begin, outside)
    os._exit(_bury(ide))


def _become_ide(spec: Spec, begin: Begin, outside: tuple[int, int]) -> NoReturn:
    try:
        os.setsid()
        os.chdir(spec.directory)
        if spec.uid is None:
            kernel.unshare(kernel.CLONE_NEWUSER)
            kernel.map_user(*outside, 0, 0)
        kernel.give_up_rights(spec.uid, spec.gid)
        shares.apply_rlimits(shares.rlimits(spec.shares))
        os.umask(UMASK)
        seccomp.load(spec.shares.filter)
        begin(spec)
    except OSError as e:
        _fail(e)


def execute(spec: Spec) -> NoReturn:
    """A cold start. A warm one is `become.Becoming`."""
    os.execve(spec.command[0], spec.command, spec.environment)  # noqa: S606


def _bury(ide: int) -> int:
    """Wait for everything that ends in here; return when the IDE itself does, as its exit code."""
    while True:
        pid, status = os.wait()
        if pid == ide:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _fail(error: OSError) -> NoReturn:
    os.write(2, f"[codehub] the sandbox could not be built: {error.strerror or error}\n".encode())
    os._exit(COULD_NOT)


def build(mounts: Sequence[Mount]) -> None:
    """Make a new root of these mounts and move into it; what is not named does not exist there."""
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    # A scratch root on top of any directory: after the pivot that directory is uncovered again, below /old.
    kernel.mount("tmpfs", "/tmp", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0755")  # noqa: S108
    os.chdir("/tmp")  # noqa: S108
    os.mkdir("old", 0o700)
    os.mkdir("new", 0o755)
    kernel.mount("tmpfs", "new", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0755,size=16m")
    kernel.pivot_root(".", "old")
    os.chdir("/")
    os.umask(0o022)
    for mount in mounts:
        _apply(mount)
    _read_only_root()
    kernel.unmount("/old")
    os.chdir("/new")
    kernel.pivot_root(".", ".")
    kernel.unmount(".")
    os.chdir("/")


def _read_only_root() -> None:
    """Only the new root itself: what is mounted below keeps its own rights."""
    flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount(None, "/new", None, flags)


def _apply(step: Mount) -> None:
    target = "/new" + step.target
    match step.kind:
        case "read-only" | "bind":
            _bind("/old" + step.source, target)
            kernel.protect(target, read_only=step.kind == "read-only")
        case "symlink":
            _folder(os.path.dirname(target))
            os.symlink(step.source, target)
        case "tmpfs" | "hide":
            _folder(target)
            flags = kernel.MS_NOSUID | kernel.MS_NODEV | (kernel.MS_RDONLY if step.kind == "hide" else 0)
            kernel.mount("tmpfs", target, "tmpfs", flags, _tmpfs_options(step))
        case "proc":
            _folder(target)
            kernel.mount("proc", target, "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        case "dev":
            _devices(target)
        case _:
            _folder(target)


def _tmpfs_options(step: Mount) -> str:
    if step.kind == "hide":
        return "mode=0555,size=4k"
    # An empty file takes no size, and a kilobyte of memory.
    return f"mode=1777,size={step.size},nr_inodes={max(LEAST_FILES, step.size >> 12)}" if step.size else "mode=1777"


def _bind(source: str, target: str) -> None:
    # The machine's own links (/etc/resolv.conf, /home) are absolute: followed by hand, they stay below /old.
    source = "/old" + _real(source.removeprefix("/old"))
    if os.path.isdir(source):
        _folder(target)
    elif not os.path.exists(target):  # else it lies on top of a file of a tree that is there already
        _folder(os.path.dirname(target))
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    kernel.mount(source, target, None, kernel.MS_BIND | kernel.MS_REC)


def _real(path: str, depth: int = 40) -> str:
    """`realpath` as if /old were the root."""
    done = ""
    parts = [part for part in path.split("/") if part]
    while parts:
        part = parts.pop(0)
        if part == "..":
            done = os.path.dirname(done)
            continue
        here = f"{done}/{part}"
        if depth and os.path.islink("/old" + here):
            depth -= 1
            link = os.readlink("/old" + here)
            parts = [piece for piece in link.split("/") if piece not in {"", "."}] + parts
            done = "" if link.startswith("/") else done
            continue
        done = here
    return done or "/"


def _devices(target: str) -> None:
    """The few that programs expect, and terminals of our own."""
    _folder(target)
    kernel.mount("tmpfs", target, "tmpfs", kernel.MS_NOSUID | kernel.MS_NOEXEC, "mode=0755,size=64k")
    for name in NODES:
        place = f"{target}/{name}"
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        kernel.mount(f"/old/dev/{name}", place, None, kernel.MS_BIND)
        kernel.protect(place, read_only=False, devices=True)
    for name, link in LINKS.items():
        os.symlink(link, f"{target}/{name}")
    os.mkdir(f"{target}/pts", 0o755)
    options = f"newinstance,ptmxmode=0666,mode=0620,max={TERMINALS}"
    kernel.mount("devpts", f"{target}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, options)
    os.symlink("pts/ptmx", f"{target}/ptmx")
    os.mkdir(f"{target}/shm", 0o755)
    kernel.mount(
        None, target, None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NOEXEC
    )


def _folder(path: str) -> None:
    os.makedirs(path, 0o755, exist_ok=True)


def main(_arguments: list[str]) -> None:
    """The probe: run the spec's command in a sandbox and end with its exit code."""
    spec = Spec.loads(sys.stdin.buffer.read())
    go, let_go = os.pipe()
    hear, tell = os.pipe()
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    ours = os.fork()
    if ours == 0:
        os.close(let_go)
        usher(spec, execute, go, tell)
    os.close(tell)
    first = os.read(hear, 32)
    os.waitpid(ours, 0)  # only then are we the parent whose death would be the first process's own
    os.write(let_go, b"g")
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            sys.exit(COULD_NOT)
        if first and pid == int(first):
            sys.exit(os.waitstatus_to_exitcode(status))
