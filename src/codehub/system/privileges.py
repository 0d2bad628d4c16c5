"""Running a child as an unprivileged account, and letting that account see just the files it needs.

Called by `embedded.child` in the child, between fork and exec. When a tree the child needs lies below a directory
its account may not enter (an interpreter or a checkout in root's home), the child gets a mount namespace in which that
directory shows the needed trees and nothing else. No permissions are changed.
"""

import contextlib
import os
import pathlib
import pwd
import signal
import stat
import sys
import tempfile
from dataclasses import dataclass

from codehub.errors import StartError
from codehub.system import kernel

OWN, FALLBACK = "codehub", "nobody"  # `accounts` makes the first


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
    for name in [wanted] if wanted else [own, FALLBACK]:
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

    closed: tuple[tuple[pathlib.Path, tuple[pathlib.Path, ...]], ...] = ()


def view_for(account: Account | None, trees: list[pathlib.Path]) -> View:
    """Which closed directories stand between the account and its trees. Empty for ordinary layouts."""
    found: dict[pathlib.Path, list[pathlib.Path]] = {}
    for tree in trees:
        if account and (closed := _closed_parent(tree, account)):
            found.setdefault(closed, []).append(tree)
    return View(tuple((closed, tuple(trees)) for closed, trees in found.items()))


def _closed_parent(path: pathlib.Path, account: Account) -> pathlib.Path | None:
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
        if view.closed:
            _mount_view(view)
        os.setgroups([])
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    # After the change of user, which would clear it.
    kernel.prctl(kernel.PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:  # it died before we could ask to be told
        os.kill(os.getpid(), signal.SIGKILL)


def _mount_view(view: View) -> None:
    """Build what shall be seen aside, with its trees bound in, then move it over the closed directory."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    for closed, trees in view.closed:
        aside = pathlib.Path(tempfile.mkdtemp(prefix="codehub-view-", dir="/tmp"))
        flags = kernel.MS_NOSUID | kernel.MS_NODEV
        kernel.mount("tmpfs", str(aside), "tmpfs", flags, "mode=0711,size=1m")
        for tree in trees:
            place = aside / tree.relative_to(closed)
            place.mkdir(parents=True, exist_ok=True)
            kernel.mount(str(tree), str(place), None, kernel.MS_BIND | kernel.MS_REC)
        kernel.mount(str(aside), str(closed), None, kernel.MS_MOVE)
        with contextlib.suppress(OSError):
            aside.rmdir()
