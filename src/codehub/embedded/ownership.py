"""What belonged to the service account of earlier starts becomes the present one's. `embedded.servers` calls it.

Our own files change owner: the servers' data and what lies in their folders below `run`. Workspaces' sockets and logs
change only their group, by which the proxy and the API reach them; workspaces that outlived the platform go on. Links
are not followed, and what has a second name, or is root's, is left alone: it is not one of these files.

Killed in the middle, the next start carries on: a folder changes after all that is in it, and what was done is noted
last.
"""

import contextlib
import os
import pathlib
import stat
from collections.abc import Iterator

from codehub.embedded.datadir import DataDir
from codehub.system.privileges import Account

NOTE = "account"  # below the data directory: whose everything is


def change_owner(data: DataDir, account: Account | None) -> bool:
    """Whether there was anything to look at. Nothing may run on these folders meanwhile but workspaces."""
    whose = f"{account.uid}:{account.gid}\n" if account else ""
    note = data.root / NOTE
    if account is None or (note.is_file() and note.read_text() == whose):
        return False
    for place in _entries(data.workspace_sockets):
        _open_to(place, account.gid)
    for place in _entries(data.workspace_homes):
        _open_to(place / "log", account.gid)
    ours = [data.root / name for name in ("postgres", "postgres.new", "redis")]
    for tree in (*ours, *(data.run / name for name in ("pg", "redis", "api", "metrics"))):
        _give_tree(tree, account)
    fresh = note.with_suffix(".new")
    fresh.write_text(whose)
    fresh.replace(note)
    return True


def _entries(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
        for entry in found:
            yield pathlib.Path(entry.path)


def _give_tree(tree: pathlib.Path, account: Account) -> None:
    """From the bottom up."""
    if tree.is_symlink() or not tree.exists():
        return
    for _, folders, files, fd in os.fwalk(tree, topdown=False, follow_symlinks=False):
        for name in (*files, *folders):
            _give(name, fd, account)
    with contextlib.suppress(FileNotFoundError):
        _give(str(tree), None, account)


def _give(name: str, folder: int | None, account: Account) -> None:
    try:
        held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        found = os.fstat(held)
        plain = stat.S_ISDIR(found.st_mode) or (not stat.S_ISLNK(found.st_mode) and found.st_nlink == 1)
        if plain and found.st_uid not in {0, account.uid}:
            os.chown(f"/proc/self/fd/{held}", account.uid, account.gid)
    finally:
        os.close(held)


def _open_to(folder: pathlib.Path, gid: int) -> None:
    """A folder whose files have a group for us to reach them by: that group is another now."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        before = os.fstat(held)
        if not before.st_mode & stat.S_ISGID or before.st_gid == gid:
            return
        for name in os.listdir(held):  # noqa: PTH208 (of a descriptor)
            _regroup(name, held, before.st_gid, gid)
        os.fchown(held, -1, gid)
        os.fchmod(held, stat.S_IMODE(before.st_mode))
    finally:
        os.close(held)


def _regroup(name: str, folder: int, before: int, gid: int) -> None:
    """Only a socket or file that got the group from its folder; a workspace's user may have put anything there."""
    try:
        held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        found = os.fstat(held)
        kind = stat.S_ISSOCK(found.st_mode) or stat.S_ISREG(found.st_mode)
        if kind and found.st_nlink == 1 and found.st_gid == before:
            os.chown(f"/proc/self/fd/{held}", -1, gid)
    finally:
        os.close(held)
