"""The processes of a workspace, by their numbers inside: what they use, and how to end them. Used by the watches.

They are read from the workspace's own /proc, which has all of them and nobody else, whoever forked whom, and cannot be
changed from inside. Without a sandbox they are the shepherd's descendants.
"""

# Plain names and descriptors instead of paths: this runs several times a second, in a process without much loaded.
# ruff: noqa: PTH116, PTH123, PTH208

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass

from codehub.runtimes.shepherd import tree
from codehub.runtimes.shepherd.held_files import HeldFiles
from codehub.runtimes.shepherd.share_rules import Sample

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Of one process: memory that is no file's (its own, and what can be shared), and threads."""

    own: int = 0
    shared: int = 0
    threads: int = 0


class Members:
    def __init__(self, first: int, *, plain: bool) -> None:
        self._first = first
        self.plain = plain
        self.root = f"/proc/{first}/root"
        self._proc = "/proc" if plain else f"{self.root}/proc"
        self.held = HeldFiles(self._proc)
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

    def usage(self, pid: int) -> Usage:
        """Roughly, and cheap: pages that several share count for each of them."""
        try:
            lines = self._read(pid, "status").splitlines()
        except OSError:
            return Usage()
        values = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("Rss", "Threads:"))}
        own, shared = (int(values.get(name, 0)) << 10 for name in ("RssAnon", "RssShmem"))
        return Usage(own, shared, int(values.get("Threads", 0)))

    def exact_usage(self, pid: int) -> Usage:
        """The same, shared pages by how many share them; takes the kernel a while."""
        try:
            lines = self._read(pid, "smaps_rollup").splitlines()
            values = {line.partition(":")[0]: int(line.split()[1]) << 10 for line in lines if line.startswith("Pss_")}
        except (OSError, ValueError):
            return self.usage(pid)
        return Usage(values.get("Pss_Anon", 0), values.get("Pss_Shmem", 0))

    def descriptors(self, pid: int) -> int:
        """How many it has open; before Linux 6.2 they have to be listed for that."""
        folder = f"{self._proc}/{pid}/fd"
        try:
            return os.stat(folder).st_size or len(os.listdir(folder))
        except OSError:
            return 0

    def unnamed(self, devices: set[int], *, elsewhere: bool = False) -> int:
        """Bytes of files without a name on these devices, or on all others."""
        self.held.look(self.pids())
        return self.held.bytes(devices, elsewhere=elsewhere)

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
