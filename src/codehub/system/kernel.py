"""The system calls that Python does not offer, for the shepherd and for every process that forks.

Standard library only, as the shepherd is started without `site`; most of it runs right after a fork.
"""

# Plain names and descriptors instead of paths: most of this runs between a fork and an exec.
# ruff: noqa: PTH116, PTH123

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
import time

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 4096, 8192, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NAME, PR_CAPBSET_DROP = 1, 4, 15, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47
PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_CLEAR_ALL = 2, 4
CAP_NET_ADMIN = 12
NS_GET_USERNS = 0xB701
_CAPABILITY_VERSION = 0x20080522
_PIDFD_GETFD = 438  # the same number on every architecture, as the next one
_MOUNT_SETATTR = 442  # the same number on every architecture
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_RENAME_EXCHANGE = 2
_IN_MOVED_TO, _IN_CREATE, _IN_ONLYDIR, _IN_DONT_FOLLOW = 0x80, 0x100, 0x1000000, 0x2000000
_SIOCSIFFLAGS, _IFF_UP, _IFF_LOOPBACK, _IFF_RUNNING = 0x8914, 0x1, 0x8, 0x40

# Loaded before any fork: a child between fork and exec must not have to look for libraries.
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def now_seconds() -> float:
    """For how long something took, or takes; it never goes back."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int = 0) -> None:
    _check(_libc.setns(fd, kind), "setns")


def owning_user_namespace(fd: int) -> int:
    """The user namespace that a namespace belongs to: to enter it takes rights in that one."""
    return fcntl.ioctl(fd, NS_GET_USERNS)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _check(_libc.mount(*arguments[:3], ctypes.c_ulong(flags), arguments[3]), f"mount {target}")


def unmount(target: str) -> None:
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    _check(_libc.pivot_root(os.fsencode(new), os.fsencode(old)), "pivot_root")


def protect(target: str, *, read_only: bool, devices: bool = False) -> None:
    """Nothing below gains rights by being run; with `read_only`, nothing is written either. Includes mounts below."""
    flags = MS_NOSUID | (0 if devices else MS_NODEV) | (MS_RDONLY if read_only else 0)
    attributes = struct.pack("=QQQQ", flags, 0, 0, 0)  # these three have the same bits in both calls
    path = os.fsencode(target)
    if _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, path, _AT_RECURSIVE, attributes, len(attributes)) == 0:
        return
    if ctypes.get_errno() not in {errno.ENOSYS, errno.EPERM}:
        _check(-1, f"protect {target}")
    # Before Linux 5.12, or hidden by a filter: flags that are locked must be named again, so begin with what is there.
    kept = os.statvfs(target).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_RDONLY | os.ST_NOATIME)
    mount(None, target, None, kept | flags | MS_REMOUNT | MS_BIND)


def prctl(option: int, argument: int = 0, second: int = 0) -> None:
    if prctl_value(option, argument, second) != 0:
        raise OSError(errno.EINVAL, f"prctl {option}")


def prctl_value(option: int, argument: int = 0, second: int = 0) -> int:
    result: int = _libc.prctl(option, ctypes.c_ulong(argument), ctypes.c_ulong(second), 0, 0)
    _check(min(result, 0), f"prctl {option}")
    return result


def set_name(name: str) -> None:
    """What process lists show, of which there is room for 15 characters."""
    _check(_libc.prctl(PR_SET_NAME, os.fsencode(name), 0, 0, 0), "prctl")


def exchange(folder: int, one: str, other: str) -> None:
    """Two names of a folder get each other's files, in one step: none of them is gone for a moment."""
    if not hasattr(_libc, "renameat2"):  # an older musl
        raise OSError(errno.ENOSYS, "renameat2")
    names = (folder, os.fsencode(one), folder, os.fsencode(other))
    _check(_libc.renameat2(*names, _RENAME_EXCHANGE), "renameat2")


def watch_folder(path: str) -> int:
    """A descriptor that can be read when something new is in this folder. Not blocking; watches are counted by user."""
    fd: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    _check(min(fd, 0), "inotify_init1")
    mask = _IN_CREATE | _IN_MOVED_TO | _IN_ONLYDIR | _IN_DONT_FOLLOW
    try:
        _check(min(_libc.inotify_add_watch(fd, os.fsencode(path), mask), 0), f"watch {path}")
    except OSError:
        os.close(fd)
        raise
    return fd


def sync_file_system(fd: int) -> None:
    _check(_libc.syncfs(fd), "syncfs")


def give_up_rights(uid: int | None, gid: int | None) -> None:
    """Become this user for good: no groups, no capability, and none to be had by running anything."""
    for capability in range(64):
        with contextlib.suppress(OSError):  # beyond the last one, or not ours to begin with
            prctl(PR_CAPBSET_DROP, capability)
    with contextlib.suppress(OSError):
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    if uid is not None and gid is not None:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    _drop_capabilities()  # in a user namespace of one's own they would last until another program is run
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def _drop_capabilities() -> None:
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    _check(_libc.capset(header, bytes(24)), "capset")


def map_user(inside_uid: int, inside_gid: int, outside_uid: int, outside_gid: int) -> None:
    """In a new user namespace: one user and one group, which is what an ordinary user may map."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inside_uid} {outside_uid} 1"),
        ("gid_map", f"{inside_gid} {outside_gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def open_closed_folders() -> None:
    """See into folders of our own that have been closed, as root does. For a process that only looks, and then ends."""
    uid, gid = os.geteuid(), os.getegid()
    with contextlib.suppress(OSError):  # without user namespaces they stay closed
        if uid != 0:
            unshare(CLONE_NEWUSER)
            map_user(0, 0, uid, gid)


def enter_network(pid: int) -> None:
    """The network namespace of a process, with the rights to change it; for an ordinary user, in its user namespace."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    owner = owning_user_namespace(network)
    if os.fstat(owner).st_ino != os.stat("/proc/self/ns/user").st_ino:
        setns(owner, CLONE_NEWUSER)
    setns(network, CLONE_NEWNET)


def take_descriptor(pid: int, number: int) -> int:
    """A descriptor of a child of ours, as one of our own; closed when we run something else."""
    process = os.pidfd_open(pid)
    try:
        taken: int = _libc.syscall(_PIDFD_GETFD, process, number, 0)
        _check(min(taken, 0), "pidfd_getfd")
        return taken
    finally:
        os.close(process)


def pass_on_network_rights() -> None:
    """Let a program that is run next keep the one right it is run for; a user namespace gives it to us alone."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    data = ctypes.create_string_buffer(24)
    _check(_libc.capget(header, data), "capget")
    effective, permitted, _, *rest = struct.unpack("=6I", data.raw)
    _check(_libc.capset(header, struct.pack("=6I", effective, permitted, 1 << CAP_NET_ADMIN, *rest)), "capset")
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN)


def loopback_up() -> None:
    """A new network namespace has a loopback device that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = _IFF_UP | _IFF_LOOPBACK | _IFF_RUNNING
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))
