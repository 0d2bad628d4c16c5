"""The processes of a workspace, by their numbers inside: what they use, and how to end them. Used by the watches.

They are read from the workspace's own /proc, which has all of them and nobody else, whoever forked whom, and cannot be
changed from inside. Without a sandbox they are the shepherd's descendants.
"""

# Plain names and descriptors instead of paths: this runs several times a second, in a process without much loaded.
# ruff: noqa: PTH116, PTH123, PTH208

import contextlib
import os
import signal
import stat
from collections.abc import Iterable

from codehub.runtimes.shepherd import tree
from codehub.runtimes.shepherd.share_rules import Sample

MOST_DESCRIPTORS = 50_000  # at one look
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGESIZE")


class Members:
    def __init__(self, first: int, *, plain: bool) -> None:
        self._first = first
        self.plain = plain
        self.root = f"/proc/{first}/root"
        self._proc = "/proc" if plain else f"{self.root}/proc"
        self.spared = frozenset([first] if plain else [1, 2])  # the IDE, and the first process around it

    def pids(self) -> list[int]:
        """Empty until the sandbox is finished: before, its root is still the machine's."""
        if self.plain:
            return tree.descendants(os.getpid())
        try:
            if os.stat(self._proc).st_dev == os.stat("/proc").st_dev:
                return []
            return [int(name) for name in os.listdir(self._proc) if name.isdigit()]
        except OSError:
            return []

    def samples(self) -> dict[int, Sample]:
        return {pid: sample for pid in self.pids() if (sample := self._sample(pid))}

    def _sample(self, pid: int) -> Sample | None:
        try:
            fields = self._stat(pid)
            counters = dict(line.split(": ") for line in self._read(pid, "io").splitlines())
        except (OSError, ValueError):
            return None
        written = int(counters["write_bytes"]) - int(counters["cancelled_write_bytes"])
        return Sample(int(fields[19]), written, (int(fields[11]) + int(fields[12])) / _TICKS)

    def memory(self, pid: int) -> int:
        """What would be free without it, roughly: its pages that are nobody's file. Cheap; shared ones count twice."""
        try:
            _, resident, shared, *_ = map(int, self._read(pid, "statm").split())
        except (OSError, ValueError):
            return 0
        return (resident - shared) * _PAGE

    def share_of_memory(self, pid: int) -> int:
        """The same exactly, shared pages by how many share them; takes the kernel a while."""
        try:
            lines = self._read(pid, "smaps_rollup").splitlines()
            return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
        except (OSError, ValueError):
            return self.memory(pid)

    def threads(self, pid: int) -> int:
        try:
            return int(self._stat(pid)[17])
        except (OSError, ValueError):
            return 0

    def unnamed(self, devices: set[int], pids: Iterable[int] | None = None, *, elsewhere: bool = False) -> int:
        """Bytes of open files without a name on these devices, or on all others: no walk over folders finds them."""
        found: dict[tuple[int, int], int] = {}
        left = MOST_DESCRIPTORS
        for pid in self.pids() if pids is None else pids:
            with contextlib.suppress(OSError):
                for name in os.listdir(f"{self._proc}/{pid}/fd"):
                    left -= 1
                    with contextlib.suppress(OSError):
                        status = os.stat(f"{self._proc}/{pid}/fd/{name}")
                        if status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                            found[status.st_dev, status.st_ino] = status.st_blocks * 512
            if left <= 0:
                break
        return sum(size for (device, _), size in found.items() if (device in devices) is not elsewhere)

    def end(self, pids: Iterable[int], number: int = signal.SIGKILL) -> int:
        """How many were still there."""
        done = 0
        for pid in pids:
            with contextlib.suppress(OSError):
                fd = os.open(f"{self._proc}/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    signal.pidfd_send_signal(fd, number)  # a process's folder is as good as a pidfd
                    done += 1
                finally:
                    os.close(fd)
        return done

    def end_workspace(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self._first, signal.SIGKILL)

    def tell_terminals(self, text: str) -> None:
        """As `wall` does; a terminal that takes nothing is not waited for."""
        if self.plain or not self.pids():
            return
        folder = f"{self.root}/dev/pts"
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                if name.isdigit():
                    with contextlib.suppress(OSError):
                        fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
                        try:
                            os.write(fd, f"\r\n{text}\r\n".encode())
                        finally:
                            os.close(fd)

    def _stat(self, pid: int) -> list[str]:
        text = self._read(pid, "stat")
        return text[text.rindex(")") + 2 :].split()

    def _read(self, pid: int, name: str) -> str:
        with open(f"{self._proc}/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()
