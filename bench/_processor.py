"""Who used the processor between two moments, of all that a benchmark started. For `wake`.

Unlike times, this hardly depends on what else a machine does. Workspaces outlive the platform and are nobody's
children: they are asked for by their pids.
"""

import contextlib
import os
import pathlib
from collections import defaultdict

from tests.platform import descendants

Spent = dict[int, float]
CHROMIUM = {"gpu-process": "Chromium: drawing", "renderer": "Chromium: pages", "utility": "Chromium: network"}


def spent() -> Spent:
    """Milliseconds, by process: those of this one and of all below it."""
    return {pid: of(pid) for pid in [os.getpid(), *descendants(os.getpid())]}


def of(pid: int) -> float:
    """Since it began."""
    total = 0
    with contextlib.suppress(OSError):
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # it has just ended
                total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e6


def by_kind(before: Spent, after: Spent) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for pid, milliseconds in after.items():
        found[_kind(pid)] += milliseconds - before.get(pid, 0.0)
    return found


def _kind(pid: int) -> str:
    with contextlib.suppress(OSError):
        name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        if "chrom" in name:
            return CHROMIUM.get(words.partition("--type=")[2].partition(" ")[0], "Chromium: the browser")
        if name == "postgres" or name.startswith("codehub-"):
            return name
        return "the benchmark" if pid == os.getpid() or "playwright" in words else "others"
    return "others"
