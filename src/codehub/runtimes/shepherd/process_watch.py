"""Memory and number of processes where no control group limits them (an ordinary user's platform). For the shepherd.

Beyond its memory a workspace loses its largest process, as the kernel would do it; beyond its number of processes
all but the IDE. It looks more often the closer it gets, and never so often that looking costs much.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Collection

from codehub.runtimes.shepherd.members import Members, Usage
from codehub.runtimes.shepherd.shares import Shares
from codehub.system.kernel import now_seconds

FAR_PAUSE, NEAR_PAUSE = 1.0, 0.25
NEAR_SHARE = 0.5
COST, LONGEST_PAUSE = 50, 3.0  # it rests so many times as long as it took, and never for so long that much can happen
FILE_BYTES = 1024  # that an empty file in memory takes
MOST_ROUNDS = 20
MOST_BOMBS = 3
LOOK_BYTES = 128 << 20  # so much less on the machine, and files without a name are looked for


class ProcessWatch:
    def __init__(self, shares: Shares, home: str, members: Members, say: Callable[[str], None]) -> None:
        self._shares = shares
        self._home = home
        self._members = members
        self._say = say
        self._bombs = 0  # one after the other
        self._unmapped = 0
        self._available = _machine_available()

    @property
    def wanted(self) -> bool:
        return bool(self._shares.memory_bytes or self._shares.processes)

    def look(self) -> float:
        """Seconds until the next look."""
        began = now_seconds()
        pids = self._members.pids()
        if not pids:
            return NEAR_PAUSE  # it is being built
        usage = list(map(self._members.usage, pids))
        memory, count = self._memory(usage), sum(one.threads for one in usage)
        limits = self._shares
        if limits.processes and count > limits.processes:
            self._end_bomb()
        else:
            self._bombs = 0
        if limits.memory_bytes and memory > limits.memory_bytes:
            self._end_largest(pids)
        shares = [
            memory / limits.memory_bytes if limits.memory_bytes else 0,
            count / limits.processes if limits.processes else 0,
        ]
        pause = NEAR_PAUSE if max(shares) > NEAR_SHARE else FAR_PAUSE
        return max(pause, min(LONGEST_PAUSE, (now_seconds() - began) * COST))

    def _memory(self, usage: list[Usage]) -> int:
        # Files without a name are looked for only when memory has gone somewhere: there may be many descriptors.
        available = _machine_available()
        if self._unmapped or self._available - available > LOOK_BYTES:
            self._unmapped = self._members.unnamed(self._named_devices(), elsewhere=True)
            self._available = available
        self._available = max(self._available, available)
        return self._sum(usage)

    def _sum(self, usage: Collection[Usage]) -> int:
        """Files in memory that are mapped are shared pages as well: of the two figures the larger one counts."""
        own, shared = sum(one.own for one in usage), sum(one.shared for one in usage)
        return own + max(shared, self._in_memory_files() + self._unmapped)

    def _named_devices(self) -> set[int]:
        """What lies on these is counted elsewhere: the home's disk, and what is in memory and has a name."""
        found = set()
        for folder in ("", "/tmp", "/dev/shm"):  # noqa: S108 (inside the sandbox)
            with contextlib.suppress(OSError):
                found.add(os.stat(self._members.root + folder).st_dev)  # noqa: PTH116
        with contextlib.suppress(OSError):
            found.add(os.stat(self._home).st_dev)  # noqa: PTH116
        return found

    def _in_memory_files(self) -> int:
        """What is in /tmp and /dev/shm belongs to no process."""
        if self._members.plain:
            return 0  # these are the machine's
        total = 0
        for folder in ("tmp", "dev/shm"):
            with contextlib.suppress(OSError):
                found = os.statvfs(f"{self._members.root}/{folder}")
                if found.f_files and os.path.ismount(f"{self._members.root}/{folder}"):
                    total += (found.f_blocks - found.f_bfree) * found.f_frsize
                    total += (found.f_files - found.f_ffree) * FILE_BYTES
        return total

    def _end_largest(self, pids: list[int]) -> None:
        """Only when it is so by the exact figures too, where pages that several share count once."""
        exact = {pid: self._members.exact_usage(pid) for pid in pids}
        if self._sum(exact.values()) <= self._shares.memory_bytes:
            return
        devices = self._named_devices() if self._unmapped else set()
        sizes = {pid: one.own + one.shared for pid, one in exact.items()}
        if self._unmapped:
            sizes = {pid: size + self._members.held.bytes_of(pid, devices) for pid, size in sizes.items()}
        largest = max(sizes, key=lambda pid: sizes[pid])
        self._say(
            f"the memory limit of {self._shares.memory_bytes >> 20} MB was reached, and the largest process ended"
        )
        if largest in self._members.spared:
            self._members.end_workspace()
        else:
            self._members.end([largest])

    def _end_bomb(self) -> None:
        """Stopped first, or they would fork faster than they can be ended; until no new ones appear."""
        self._say(f"the limit of {self._shares.processes} processes was reached, and all but the IDE were ended")
        known: set[int] = set()
        for _ in range(MOST_ROUNDS):
            found = set(self._members.pids()) - self._members.spared
            if not found - known:
                break
            self._members.end(found - known, signal.SIGSTOP)
            known |= found
        self._members.end(known)
        self._bombs += 1
        if self._bombs > MOST_BOMBS:
            self._say("the workspace was ended: its processes come back faster than they can be ended")
            self._members.end_workspace()


def _machine_available() -> int:
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0
