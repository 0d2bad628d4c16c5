"""The archives as operations use them: a home goes into the object store and comes back. Called by `operations`."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable

from codehub.archives import model, service
from codehub.archives.model import Archived, Quota
from codehub.archives.objects import ObjectStore
from codehub.clock import Clock
from codehub.coordinator.operations import Progress
from codehub.runtimes.base import Runtime
from codehub.templates.loader import Templates
from codehub.workspaces.model import Workspace

REPORT_SECONDS = 1.0
MIB = 1024 * 1024
# Where a template sets no limit: what no honest home reaches, so that a hostile archive ends somewhere.
NO_LIMIT_BYTES = 1024 * 1024 * MIB
MOST_FILES = 5_000_000


class Homes:
    def __init__(self, store: ObjectStore, templates: Templates, clock: Clock) -> None:
        self._store = store
        self._templates = templates
        self._clock = clock

    async def store(self, w: Workspace, epoch: int, runtime: Runtime, progress: Progress) -> Archived:
        """Pack, upload, verify. A committed archive of the same operation is adopted."""
        assert w.op_id  # noqa: S101 (an operation has one)
        base = model.key_base(w.id, w.op_id, epoch)
        async with self._reported(progress) as note:
            return await service.archive(runtime.volume_path(w.id), self._store, base, note, now=self._clock.now())

    async def fetch(self, w: Workspace, runtime: Runtime, progress: Progress) -> None:
        """Unpack beside the volume and swap it in whole; a half one is never startable."""
        assert w.op_id  # noqa: S101
        assert w.archive_key  # noqa: S101 (RESTORING is planned from one)
        there = (await runtime.volumes([w.id])).get(w.id)
        if there and not there.parked and there.restored_from == w.archive_key:
            return
        staged = await asyncio.to_thread(runtime.staging, w.id, w.op_id)
        try:
            async with self._reported(progress) as note:
                await service.restore(self._store, w.archive_key, staged, None, self._quota(w), note)
            await runtime.place_volume(w.id, w.op_id, staged, w.archive_key)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, staged, ignore_errors=True)
            raise

    async def remove_all(self, workspace_id: str) -> None:
        await service.delete_all(self._store, workspace_id)

    def _quota(self, w: Workspace) -> Quota:
        template = self._templates.find(w.template)
        limit = template.limits.disk_mb * MIB if template else 0
        return Quota(limit or NO_LIMIT_BYTES, MOST_FILES)

    @contextlib.asynccontextmanager
    async def _reported(self, progress: Progress) -> AsyncIterator[Callable[[int, int], None]]:
        """Progress arrives often; it is saved once a second."""
        latest: list[tuple[int, int]] = []

        async def report() -> None:
            while True:
                await self._clock.sleep(REPORT_SECONDS)
                if latest:
                    await progress(*latest.pop())

        def note(done: int, total: int) -> None:
            latest[:] = [(done, total)]

        reporting = asyncio.create_task(report())
        try:
            yield note
        finally:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)
