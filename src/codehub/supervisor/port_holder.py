"""Which process listens on a port that we want. Asked by `listeners` when it could not have it; read from /proc."""

import contextlib
import os
import pathlib

from codehub.system.processes import Identity

PROC = pathlib.Path("/proc")
LISTENING = "0A"  # a socket's state in /proc/net/tcp


def described(port: int) -> str:
    """` (process 123, python3)`; of another user's process only whose it is; nothing when that cannot be told."""
    inodes = _listening(port)
    if not inodes:
        return ""
    for pid in _pids():
        with contextlib.suppress(OSError):  # it has ended, or its files are not ours to see
            if inodes.keys() & _sockets(pid):
                return f" (process {pid}, {(PROC / pid / 'comm').read_text().strip()})"
    return f" (a process of user {next(iter(inodes.values()))})"


def _listening(port: int) -> dict[str, str]:
    """Socket's inode → uid"""
    found = {}
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found[fields[9]] = fields[7]
    return found


def _pids() -> list[str]:
    """The oldest first: the process that opened a socket is older than the children that were forked with it."""
    names = [name for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 (names, not paths)
    found = [(identity.started, name) for name in names if (identity := Identity.of(int(name)))]
    return [name for _, name in sorted(found)]


def _sockets(pid: str) -> set[str]:
    folder = f"{PROC}/{pid}/fd"
    links = set()
    for name in os.listdir(folder):  # noqa: PTH208
        with contextlib.suppress(OSError):
            links.add(os.readlink(f"{folder}/{name}"))  # noqa: PTH115
    return {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
