"""Which process is which. A pid alone is no identity: it is reused. Pid, start time and boot id together are one.

The supervisor notes every child here before it can matter, so that the next start finds and ends what a crash left.
"""

import contextlib
import json
import os
import pathlib
import signal
import time
from dataclasses import asdict, dataclass

BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Identity:
    pid: int
    started: int  # clock ticks since boot
    boot: str

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """None when there is no such process; a zombie is dead."""
        stat = _stat(pid)
        return None if stat is None else cls(pid, stat, BOOT_ID.read_text().strip())

    def alive(self) -> bool:
        return Identity.of(self.pid) == self

    def signal(self, number: int) -> None:
        """Signal exactly this process: a pidfd cannot be reused between the check and the signal."""
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(self.pid)
            try:
                if self.alive():
                    signal.pidfd_send_signal(fd, number)
            finally:
                os.close(fd)


def _stat(pid: int) -> int | None:
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


class Ledger:
    """The children of one supervisor, by name, with how each is stopped, in a file that survives it."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._children: dict[str, tuple[Identity, int]] = {}

    def note(self, name: str, pid: int, stop_signal: int) -> None:
        if identity := Identity.of(pid):
            self._children[name] = (identity, stop_signal)
            self._write()

    def forget(self, name: str) -> None:
        if self._children.pop(name, None):
            self._write()

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({name: [asdict(who), how] for name, (who, how) in self._children.items()}))
        fresh.replace(self._path)

    def end_leftovers(self, *, grace: float = 8.0) -> list[str]:
        """End what an earlier supervisor left running: ask first, then insist. Returns the names."""
        left = {name: child for name, child in self._read().items() if child[0].alive()}
        for identity, stop_signal in left.values():
            identity.signal(signal.SIGCONT)
            identity.signal(stop_signal)
        deadline = time.monotonic() + grace
        while any(identity.alive() for identity, _ in left.values()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for identity, _ in left.values():
            identity.signal(signal.SIGKILL)
        self._path.unlink(missing_ok=True)
        return sorted(left)

    def _read(self) -> dict[str, tuple[Identity, int]]:
        try:
            return {name: (Identity(**who), how) for name, (who, how) in json.loads(self._path.read_text()).items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
