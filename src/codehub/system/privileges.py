"""Running a child as an unprivileged account, and letting that account see just the files it needs.

Called by `embedded.child` in the child, between fork and exec. When a tree the child needs lies below a directory
its account may not enter (an interpreter or a checkout in root's home), the child gets a mount namespace in which that
directory shows the needed trees and nothing else. Nobody's permissions are changed.
"""

import contextlib
import ctypes
import os
import pathlib
import pwd
import signal
import stat
import sys
import tempfile
from dataclasses import dataclass

from codehub.errors import StartError

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE, MS_MOVE = 4096, 16384, 1 << 18, 8192
MS_NOSUID, MS_NODEV = 2, 4
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
OWN, EVERYBODYS = "codehub", "nobody"  # `accounts` makes the first
# Loaded before any fork: a child between fork and exec must not have to look for libraries.
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Account:
    """Whom a child runs as. `None` in its place means: as ourselves."""

    name: str
    uid: int
    gid: int


def service_account(wanted: str | None, own: str = OWN) -> Account | None:
    """The account for servers, API and proxy, as far as there is one: only root has one to give."""
    if os.geteuid() != 0:
        return None
    for name in [wanted] if wanted else [own, EVERYBODYS]:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid == 0:
            raise StartError(f"CODEHUB_USER={name}: must not be root")
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise StartError(f"CODEHUB_USER={wanted}: there is no such account on this machine")


def needed_trees() -> list[pathlib.Path]:
    """What any Python child has to read: environment, interpreter, and the package itself when it is a checkout."""
    package = pathlib.Path(__file__).resolve().parents[1]
    return [pathlib.Path(sys.prefix), pathlib.Path(sys.base_prefix), package]


@dataclass(frozen=True)
class View:
    """Closed directories, each with the trees below it that shall be visible in the child."""

    rooms: tuple[tuple[pathlib.Path, tuple[pathlib.Path, ...]], ...] = ()


def view_for(account: Account | None, trees: list[pathlib.Path]) -> View:
    """Which closed directories stand between the account and its trees. Empty for ordinary layouts."""
    rooms: dict[pathlib.Path, list[pathlib.Path]] = {}
    for tree in trees:
        if account and (door := _closed_door(tree, account)):
            rooms.setdefault(door, []).append(tree)
    return View(tuple((door, tuple(trees)) for door, trees in rooms.items()))


def _closed_door(path: pathlib.Path, account: Account) -> pathlib.Path | None:
    """The highest parent the account may not enter."""
    for parent in reversed(path.parents):
        info = parent.stat()
        owner = info.st_uid == account.uid
        group = info.st_gid == account.gid
        bit = stat.S_IXUSR if owner else stat.S_IXGRP if group else stat.S_IXOTH
        if not info.st_mode & bit:
            return parent
    return None


def enter(account: Account | None, view: View, parent: int, death_signal: int) -> None:
    """In the child, before exec: take the view, become the account, and die with the supervisor."""
    if account:
        if view.rooms:
            _open_rooms(view)
        os.setgroups([])
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
        _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # After the change of user, which would clear it.
    _libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:  # it died before we could ask to be told
        os.kill(os.getpid(), signal.SIGKILL)


def _open_rooms(view: View) -> None:
    """Build each room aside, with its trees bound in, then move it over the closed directory."""
    _check(_libc.unshare(CLONE_NEWNS), "unshare")
    _mount(None, "/", MS_REC | MS_PRIVATE)
    for door, trees in view.rooms:
        aside = pathlib.Path(tempfile.mkdtemp(prefix="codehub-view-", dir="/tmp"))
        _check(
            _libc.mount(b"tmpfs", os.fsencode(aside), b"tmpfs", MS_NOSUID | MS_NODEV, b"mode=0711,size=1m"),
            f"mount {aside}",
        )
        for tree in trees:
            place = aside / tree.relative_to(door)
            place.mkdir(parents=True, exist_ok=True)
            _mount(tree, place, MS_BIND | MS_REC)
        _mount(aside, door, MS_MOVE)
        with contextlib.suppress(OSError):
            aside.rmdir()


def _mount(source: pathlib.Path | None, target: str | pathlib.Path, flags: int) -> None:
    src = None if source is None else os.fsencode(source)
    _check(_libc.mount(src, os.fsencode(target), None, flags, None), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), what)
