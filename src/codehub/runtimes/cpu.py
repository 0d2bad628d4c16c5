"""How much processor time a workspace's processes have used: the TTL runner asks whether a job is at work."""

import os
import pathlib
from typing import Protocol, runtime_checkable

from codehub.runtimes.base import Runtime
from codehub.runtimes.shepherd import tree

_TICKS = os.sysconf("SC_CLK_TCK")


@runtime_checkable
class OnThisMachine(Protocol):
    """A runtime whose workspaces are processes of this machine, in containers or not."""

    async def first_process(self, workspace_id: str) -> int | None:
        """The one that all others come from; None while it does not run."""
        ...


async def cpu_seconds(runtime: Runtime, workspace_id: str) -> float | None:
    """Of a workspace's processes that are alive; None where they are not processes of this machine."""
    first = await runtime.first_process(workspace_id) if isinstance(runtime, OnThisMachine) else None
    if first is None:
        return None
    return sum(_seconds(pid) for pid in (first, *tree.descendants(first)))


def _seconds(pid: int) -> float:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
