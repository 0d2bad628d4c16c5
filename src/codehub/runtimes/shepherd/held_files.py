"""Files without a name that the processes of a workspace hold: no walk over folders finds them. For the watches.

Held by a descriptor (each thread can have a table of its own), by a mapping, or by being run. What lies unread in a
socket can be held too, and is nowhere to be seen but as a number.
"""

# Plain names and descriptors instead of paths: this runs several times a second, in a process without much loaded.
# ruff: noqa: PTH116, PTH123, PTH208

import contextlib
import os
import stat
from collections.abc import Iterator

from codehub.system.kernel import now_seconds

LOOK_SECONDS = 0.2  # of one look; the rest of the processes has its turn at the next ones
MOST_MAPS = 8 << 20  # bytes of one process's list
_Files = dict[tuple[int, int], int]  # bytes by device and number


class HeldFiles:
    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._of: dict[int, _Files] = {}
        self._unsized: dict[int, set[int]] = {}  # devices of mapped files that only root can look at
        self._next = 0

    def look(self, pids: list[int]) -> None:
        """What was found of a process counts until it has its turn again, or is gone."""
        self._of = {pid: files for pid, files in self._of.items() if pid in set(pids)}
        self._unsized = {pid: devices for pid, devices in self._unsized.items() if pid in set(pids)}
        ordered = sorted(pids)
        later = [pid for pid in ordered if pid >= self._next]
        until = now_seconds() + LOOK_SECONDS
        self._next = 0
        for pid in [*later, *ordered[: len(ordered) - len(later)]]:
            if now_seconds() > until:
                self._next = pid
                return
            self._look_at(pid)

    def bytes(self, devices: set[int], *, elsewhere: bool = False) -> int:
        """On these devices, or on all others; a file that several hold counts once."""
        found = {file: size for files in self._of.values() for file, size in files.items()}
        return sum(size for (device, _), size in found.items() if (device in devices) is not elsewhere)

    def bytes_of(self, pid: int, devices: set[int]) -> int:
        """What one process holds that is not on these devices."""
        return sum(size for (device, _), size in self._of.get(pid, {}).items() if device not in devices)

    def unsized(self, devices: set[int]) -> bool:
        """Is there a mapped file on these devices whose size we may not see?"""
        return any(not found.isdisjoint(devices) for found in self._unsized.values())

    def in_flight(self, pids: list[int]) -> bool:
        """Do descriptors lie unread in a socket?"""
        until = now_seconds() + LOOK_SECONDS
        return any(self._queued(pid) for pid in pids if now_seconds() < until)

    def _look_at(self, pid: int) -> None:
        files: _Files = {}
        for place in self._descriptors(pid):
            with contextlib.suppress(OSError):
                _add(files, os.stat(place))
        self._unsized[pid] = set()
        for device, place in self._deleted_mappings(pid):
            try:
                _add(files, os.stat(place))
            except PermissionError:
                self._unsized[pid].add(device)
            except OSError:
                continue
        self._of[pid] = files

    def _descriptors(self, pid: int) -> Iterator[str]:
        yield f"{self._proc}/{pid}/exe"
        for thread in _listing(f"{self._proc}/{pid}/task"):
            folder = f"{self._proc}/{pid}/task/{thread}/fd"
            yield from (f"{folder}/{name}" for name in _listing(folder))

    def _deleted_mappings(self, pid: int) -> Iterator[tuple[int, str]]:
        """Device of each, and where root finds the file itself."""
        text, seen = b"", set()
        with contextlib.suppress(OSError), open(f"{self._proc}/{pid}/maps", "rb") as file:
            text = file.read(MOST_MAPS)
        for line in text.splitlines():
            if line.endswith(b"(deleted)"):
                place, _, _, device, number, *_ = line.split(None, 5)
                if (device, number) not in seen:
                    seen.add((device, number))
                    major, minor = (int(part, 16) for part in device.split(b":"))
                    yield os.makedev(major, minor), f"{self._proc}/{pid}/map_files/{place.decode()}"

    def _queued(self, pid: int) -> bool:
        for place in self._descriptors(pid):
            with contextlib.suppress(OSError, ValueError):
                if stat.S_ISSOCK(os.stat(place).st_mode):
                    with open(place.replace("/fd/", "/fdinfo/"), encoding="ascii") as file:
                        if any(int(line.split()[1]) for line in file if line.startswith("scm_fds:")):
                            return True
        return False


def _add(files: _Files, status: os.stat_result) -> None:
    if status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
        files[status.st_dev, status.st_ino] = status.st_blocks * 512


def _listing(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
