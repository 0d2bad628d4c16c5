"""Work on a home where it is: in the pod that has it, or in one that is made for that. Called by `runtime`.

A home is in one pod at a time. So what is done to the home of a running workspace is done by the relay beside its IDE,
and what is done to another in a pod of ours, which has that home, no token of the cluster and no other secret.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from codehub.archives import process as archives
from codehub.archives.model import Progress
from codehub.runtimes.base import Address, HomeFullError, RuntimeFailureError
from codehub.runtimes.containers.homes import Home
from codehub.runtimes.kubernetes import judging, names
from codehub.runtimes.kubernetes.asking import Asking, understood
from codehub.runtimes.kubernetes.lifecycle import Lifecycle, ask_address

JOB_SECONDS = 60.0


class Jobs:
    def __init__(self, lifecycle: Lifecycle, asking: Asking) -> None:
        self._lifecycle = lifecycle
        self._asking = asking

    @contextlib.asynccontextmanager
    async def worker(
        self, workspace_id: str, home: Home, name: str, progress: Progress, total: int = 0, **arguments: object
    ) -> AsyncIterator[archives.Worker]:
        """One that packs or unpacks, as `archives.process` has it."""
        order = {"job": name, "arguments": arguments, "fresh": name == "unpack"}
        async with (
            self._where(workspace_id, home) as address,
            self._asking.under_way(address, {"do": "job", "order": order}) as process,
        ):
            pipes = archives.Pipes(process if name == "unpack" else None, process if name == "pack" else None)
            worker = archives.Worker(process, pipes, progress, total)
            try:
                yield worker
            finally:
                await asyncio.shield(asyncio.ensure_future(worker.close()))

    async def run(
        self,
        workspace_id: str,
        home: Home,
        name: str,
        arguments: dict[str, object],
        *contents: bytes,
        seconds: float = JOB_SECONDS,
    ) -> bytes:
        """What it prints."""
        order = {"job": name, "arguments": arguments, "fresh": name == "make"}
        async with self._where(workspace_id, home) as address:
            request = {"do": "job", "order": order}
            printed, outcome = await self._asking.ask(address, request, contents, seconds=seconds)
        if outcome.get("code") or not printed:
            said = outcome.get("said") or f"it ended with {outcome.get('code')}"
            raise RuntimeFailureError(f"a home could not be worked on ({name}): {said}")
        return printed

    async def ask(self, workspace_id: str, home: Home, name: str, *contents: bytes, **arguments: object) -> Any:
        """The same for one that answers in JSON."""
        printed = await self.run(workspace_id, home, name, arguments, *contents)
        with understood():
            said = dict(json.loads(printed))
        if "error" in said:
            raise (HomeFullError if said.get("full") else RuntimeFailureError)(said["error"])
        return said

    @contextlib.asynccontextmanager
    async def _where(self, workspace_id: str, home: Home) -> AsyncIterator[Address]:
        """The door of a pod that has this home."""
        running = await self._lifecycle.there(workspace_id)
        if running is None or running["metadata"]["annotations"].get(names.HOME_NAME) != home.name:
            async with self._lifecycle.job(workspace_id, home) as address:
                yield address
        elif judging.runs(running):
            yield ask_address(running)
        else:
            raise RuntimeFailureError("the workspace is being started or stopped")
