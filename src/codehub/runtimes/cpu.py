"""How much processor time a workspace's processes have used: the TTL runner asks whether a job is at work."""

import os
import pathlib

from codehub.runtimes.base import Runtime
from codehub.runtimes.shepherd import tree

_TICKS = os.sysconf("SC_CLK_TCK")


async def cpu_seconds(runtime: Runtime, workspace_id: str) -> float | None:
    """Of a workspace's processes that are alive; None where they are not processes of this machine."""
    container = (await runtime.containers()).get(workspace_id)
    if container is None or runtime.name != "process":
        return None
    first = int(container.identity.partition("-")[0])
    return sum(_seconds(pid) for pid in (first, *tree.descendants(first)))


def _seconds(pid: int) -> float:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
