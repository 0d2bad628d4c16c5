"""Asking a workspace whose time is up whether it is at work all the same: a kernel that computes may say nothing.

Called by the TTL runner just before it would put a workspace to sleep. What answers is the workspace's own program, so
nothing it says is read further than needed; one that does not answer is not kept awake by that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from codehub.clock import Clock
from codehub.runtimes import connect
from codehub.runtimes.base import Address
from codehub.templates.loader import Templates
from codehub.templates.model import ActivityProfile
from codehub.workspaces.idle_store import Idle
from codehub.workspaces.model import Work

if TYPE_CHECKING:
    from codehub.system.doors import Doors

AT_ONCE = 32
AT_MOST = 500  # asked in one tick; the others stay awake until the next
SECONDS = 3.0
LONGEST_ANSWER = 1 << 20
SAMPLE_SECONDS = 1.0
CpuSeconds = Callable[[str], Awaitable[float | None]]


class Probes:
    def __init__(
        self, templates: Templates, clock: Clock, cpu_seconds: CpuSeconds, doors: "Doors | None" = None
    ) -> None:
        self._templates = templates
        self._clock = clock
        self._cpu_seconds = cpu_seconds
        self._doors = doors

    async def busy(self, found: Sequence[Idle]) -> tuple[dict[str, Work], set[str]]:
        """Which of these are at work, and at what; and which could not be asked in this round."""
        concerned = [w for w in found if self._has_probe(w)]
        asked, later = concerned[:AT_MOST], concerned[AT_MOST:]
        turns = asyncio.Semaphore(AT_ONCE)

        async def ask(w: Idle) -> Work | None:
            async with turns:
                return await self._work(w)

        answers = await asyncio.gather(*(ask(w) for w in asked))
        return {w.id: work for w, work in zip(asked, answers, strict=True) if work}, {w.id for w in later}

    def _has_probe(self, w: Idle) -> bool:
        template = self._templates.find(w.template)
        return template is not None and (template.activity_profile is ActivityProfile.JUPYTER or template.busy_cpus > 0)

    async def _work(self, w: Idle) -> Work | None:
        template = self._templates.find(w.template)
        if template is None:
            return None
        if template.activity_profile is ActivityProfile.JUPYTER and w.address:
            prefix = "" if template.strip_prefix else f"/w/{w.id}"
            if work := await self._jupyter_work(Address(**w.address), prefix, w.idle_since):
                return work
        busy = template.busy_cpus > 0 and await self._cpus(w.id) >= template.busy_cpus
        return Work.PROCESSES if busy else None

    async def _jupyter_work(self, address: Address, prefix: str, idle_since: datetime) -> Work | None:
        """A kernel that is busy; or a terminal that printed while no client was connected to it."""
        kernels = await _get(address, f"{prefix}/api/kernels", self._doors)
        if any(_field(kernel, "execution_state") == "busy" for kernel in kernels):
            return Work.KERNEL
        terminals = await _get(address, f"{prefix}/api/terminals", self._doors)
        printed = any(_later(_field(terminal, "last_activity"), idle_since) for terminal in terminals)
        return Work.TERMINAL if printed else None

    async def _cpus(self, workspace_id: str) -> float:
        """Cores that its processes use, over a second."""
        begun, before = self._clock.monotonic(), await self._cpu_seconds(workspace_id)
        await self._clock.sleep(SAMPLE_SECONDS)
        after, took = await self._cpu_seconds(workspace_id), self._clock.monotonic() - begun
        return (after - before) / took if before is not None and after is not None and took > 0 else 0.0


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else None


def _later(text: Any, than: datetime) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text) > than
    except (ValueError, TypeError):
        return False


async def _get(address: Address, path: str, doors: "Doors | None") -> list[Any]:
    """A list in JSON; empty when there is no answer, or none that makes sense."""
    try:
        async with asyncio.timeout(SECONDS):
            reader, writer = await connect.opened(address, doors, LONGEST_ANSWER)
            try:
                writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode("latin-1"))
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.read(LONGEST_ANSWER) if b" 200 " in head[:16] else b""
                while body and len(body) < LONGEST_ANSWER and (more := await reader.read(LONGEST_ANSWER)):
                    body += more
            finally:
                writer.close()
        found = msgspec.json.decode(body) if body else []
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, msgspec.DecodeError):
        return []
    return found if isinstance(found, list) else []
