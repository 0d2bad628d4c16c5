"""File operations that are whole or not at all, and that a hostile home cannot lead astray. Used below `runtimes`."""

import contextlib
import errno
import fcntl
import os
import pathlib
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from codehub.runtimes.base import RuntimeFailureError

LOCK_TRIES, LOCK_PAUSE = 100, 0.05
T = TypeVar("T")


def raise_if_exhausted(error: Exception) -> None:
    """What this process or machine has run out of is no fault of the file that it was noticed at."""
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
        raise error


def write_whole(path: pathlib.Path, text: str, mode: int = 0o600) -> None:
    """Written aside, flushed, renamed; the rename is flushed too."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")  # two may be at it
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        os.fchmod(fd, mode)
        file.write(text)
        file.flush()
        os.fsync(fd)
    fresh.replace(path)
    sync_folder(path.parent)


def write_new(folder: pathlib.Path, path: str, data: bytes, mode: int) -> None:
    """A file of a folder that nobody else sees yet, flushed; folders on the way to it are made."""
    target = folder / path
    for parent in reversed(list(target.relative_to(folder).parents)[:-1]):  # without the folder itself
        (folder / parent).mkdir(mode=0o755, exist_ok=True)
        (folder / parent).chmod(0o755)  # whatever our umask is
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with os.fdopen(fd, "wb") as file:
        os.fchmod(fd, mode)
        file.write(data)
        file.flush()
        os.fsync(fd)


def text_of(path: str) -> str:
    """A file of the machine's; empty where there is none."""
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def says(path: pathlib.Path, text: str) -> bool:
    """Is there a file with just this in it?"""
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def sync_folder(path: pathlib.Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_tree(path: pathlib.Path) -> None:
    """By `rm`, which goes as deep as a home can be made; Python's own way ends at the depth of its stack.

    Folders that their owner has closed stop everybody but root: they are opened, and then it is tried again.
    """
    remove = ("rm", "-rf", "--one-file-system", "--", str(path))
    try:
        _run(*remove)
    except RuntimeFailureError:
        with contextlib.suppress(RuntimeFailureError):  # what matters is whether it can be removed now
            _run("chmod", "-R", "u+rwx", "--", str(path))
        _run(*remove)


def give_tree(path: pathlib.Path, uid: int, gid: int) -> None:
    """What is root's becomes this user's, everything below; never what a link points at.

    What is theirs already is left alone: a change of owner, even to the same one, would clear set-user-id bits.
    """
    _run("chown", "-R", "-h", "-P", "--from=0:0", f"{uid}:{gid}", "--", str(path))


def hand_over(path: pathlib.Path, uid: int, gid: int) -> None:
    """Everything below becomes this user's, whoever had it; never what a link points at."""
    _run("chown", "-R", "-h", "-P", f"{uid}:{gid}", "--", str(path))


def take_tree(path: pathlib.Path) -> None:
    """What another user has made becomes root's: everybody reads it, and nobody else writes to it or becomes somebody
    by it. Never what a link points at. Nothing of that user's may run any more.
    """
    _run("chown", "-R", "-h", "-P", "0:0", "--", str(path))
    _run("chmod", "-R", "u+rwX,go+rX,go-w,a-s", "--", str(path))


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeFailureError(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])


@contextlib.contextmanager
def locked(path: pathlib.Path) -> Iterator[None]:
    """Hold a workspace against its shepherd and other verbs. Blocks: for threads. Running means: refused."""
    fd = _take(path)
    try:
        yield
    finally:
        os.close(fd)


def _take(path: pathlib.Path) -> int:
    for _ in range(LOCK_TRIES):
        path.parent.mkdir(mode=0o711, exist_ok=True)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            continue  # the folder was removed in between
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.stat().st_ino == os.fstat(fd).st_ino:
                return fd
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(fd)
        time.sleep(LOCK_PAUSE)
    raise RuntimeFailureError("the workspace is running, or another operation holds it")


def is_free(path: pathlib.Path) -> bool:
    """Does nobody hold this lock right now?"""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def wait_for(look: Callable[[], T | None], *, unless: Callable[[], bool], seconds: float) -> T | None:
    """Until `look` finds something, or `unless` says that it will not. Blocks: for threads."""
    for _ in range(round(seconds / LOCK_PAUSE)):
        if unless():
            return look()
        if found := look():
            return found
        time.sleep(LOCK_PAUSE)
    return None
