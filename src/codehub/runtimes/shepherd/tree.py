"""Who descends from whom, from /proc. Used by the shepherd to signal the IDE itself and to leave no orphan behind."""

# Plain names and descriptors instead of paths: most of this runs between a fork and an exec.
# ruff: noqa: PTH123, PTH208

import contextlib
import os
import signal


def children(pid: int) -> list[int]:
    """The living and the dead, oldest first; of every thread, since each has those that it forked."""
    try:
        return [child for thread in os.listdir(f"/proc/{pid}/task") for child in _children_of_thread(pid, thread)]
    except FileNotFoundError:  # a kernel without it, or no such process
        return [child for child in _all() if _parent(child) == pid]
    except OSError:
        return []


def _children_of_thread(pid: int, thread: str) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        if int(thread) == pid:
            raise
        return []  # a thread that has ended
    except ProcessLookupError:
        return []  # one that ended while it was read: of the other threads it is not known yet


def ide_of(first: int) -> int | None:
    """The IDE inside a pid namespace: the child of its first process that was made first, and so is number 2."""
    for pid in children(first):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8") as file:
            line = next((line for line in file if line.startswith("NSpid:")), "")
            if line.split()[-1:] == ["2"]:
                return pid
    return None


def ready_ide_of(first: int) -> int | None:
    """The IDE once it is one: before, it is a copy of the first process, and the sandbox around it is not finished."""
    pid = ide_of(first)
    return pid if pid and _command_line(pid) not in {b"", _command_line(first)} else None


def _command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def kill_descendants(pid: int) -> None:
    """All at once is not possible, so until there are none: who forks away is adopted by us, and found next time."""
    for _ in range(1000):
        found = descendants(pid)
        if not found:
            return
        for descendant in found:
            with contextlib.suppress(OSError):
                os.kill(descendant, signal.SIGKILL)
        reap()
    return


def reap() -> dict[int, int]:
    """Bury the dead; pid and wait status of each."""
    buried = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            buried[pid] = status
    return buried


def descendants(pid: int) -> list[int]:
    found, left = [], children(pid)
    while left:
        child = left.pop()
        found.append(child)
        left += children(child)
    return found


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return 0
    return int(text[text.rindex(")") + 2 :].split()[1])
