"""The archives as operations use them: a home goes into the object store and comes back. Called by `operations`."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from codehub.archives import model, service
from codehub.archives.model import Archived, Quota
from codehub.archives.model import Progress as Note
from codehub.archives.objects import ObjectStore
from codehub.clock import Clock
from codehub.db import Database
from codehub.reconciler.operations import Progress
from codehub.runtimes import limits
from codehub.runtimes.base import Runtime, Source
from codehub.settings import ShareConfig
from codehub.templates.loader import Templates
from codehub.workspaces import rules
from codehub.workspaces import store as workspaces
from codehub.workspaces.model import Workspace

REPORT_SECONDS = 1.0
MIB = 1024 * 1024
# Where a template sets no limit: what no honest home reaches, so that a hostile archive ends somewhere.
NO_LIMIT_BYTES = 1024 * 1024 * MIB
MOST_FILES = 5_000_000
PER_FILE = 1024  # links and attributes count, too


class Homes:
    def __init__(
        self, store: ObjectStore, templates: Templates, clock: Clock, database: Database, shares: ShareConfig
    ) -> None:
        self._shares = shares
        self._database = database
        self._store = store
        self._templates = templates
        self._clock = clock

    async def store(self, w: Workspace, generation: str, epoch: int, runtime: Runtime, progress: Progress) -> Archived:
        """Pack, upload, verify. A committed archive of the same operation is adopted."""
        assert w.op_id  # noqa: S101 (an operation has one)
        base = model.key_base(w.id, w.op_id, epoch)
        pack = functools.partial(runtime.pack, w.id, generation)
        async with self._reported(progress) as note:
            return await service.archive(pack, self._store, base, note, now=self._clock.now())

    async def fetch(self, w: Workspace, epoch: int, runtime: Runtime, progress: Progress) -> None:
        """Unpack beside the volume and swap it in whole; a half one is never startable."""
        assert w.op_id  # noqa: S101
        assert w.archive_key  # noqa: S101 (RESTORING is planned from one)
        key = w.archive_key
        there = (await runtime.volumes([w.id])).get(w.id)
        if there and not there.parked and there.restored_from == key:
            return
        made = rules.new_generation(w.op_id, epoch)  # each leader unpacks in a place of its own
        quota, expected = await self._quota(w)

        async def unpack(chunks: AsyncGenerator[bytes | memoryview, None], _total: int, note: Note) -> None:
            await runtime.unpack(w.id, made, chunks, Source(key, quota, expected, note))

        async with self._reported(progress) as note:
            await service.restore(self._store, key, unpack, quota, note)

    async def remove_all(self, workspace_id: str) -> None:
        await service.delete_all(self._store, workspace_id)

    async def _quota(self, w: Workspace) -> tuple[Quota, int]:
        """What the template allows; or what went in, should that have been more: what was let in may come back.

        By the database's figures. What the object store says of an archive is whose word it may be.
        """
        template = self._templates.find(w.template)
        limit = limits.resolve(template.limits, self._shares).disk_mb * MIB if template else 0
        async with self._database.connection() as c:
            point = await workspaces.find_point(c, w.id, w.archive_key)
        if limit and point:
            limit = max(limit, point.content_bytes + point.files * PER_FILE)
        return Quota(limit or NO_LIMIT_BYTES, MOST_FILES), point.content_bytes if point else 0

    @contextlib.asynccontextmanager
    async def _reported(self, progress: Progress) -> AsyncIterator[Callable[[int, int], None]]:
        """Progress arrives often; it is saved at most once a second, and at the end."""
        latest: list[tuple[int, int]] = []

        news = asyncio.Event()

        async def report() -> None:
            while True:
                await news.wait()
                news.clear()
                await progress(*latest.pop())
                await self._clock.sleep(REPORT_SECONDS)

        def note(done: int, total: int) -> None:
            latest[:] = [(done, total)]
            news.set()

        reporting = asyncio.create_task(report())
        try:
            yield note
        finally:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)
        if latest:
            await progress(*latest.pop())
