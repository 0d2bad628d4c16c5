"""Workspaces as containers of this machine's Docker engine. Made by `wiring`, called by the controller.

A verb here is short: what a container is told is decided in `bodies`, homes are in `volumes`, work on them is done by
`jobs`, containers are started and ended in `lifecycle`. All that is known is on the engine, so that nothing has to be
remembered: each workspace has a container for its IDE, one for the relay beside it, and a volume.
"""

import asyncio
import contextlib
import json
import pathlib
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence

from codehub.archives import process as archives
from codehub.archives.model import Packing, Progress, Quota, no_progress
from codehub.clock import Clock
from codehub.runtimes import inside, limits, nodes, uids
from codehub.runtimes.base import (
    Cold,
    Container,
    DiskItem,
    ExecResult,
    Exit,
    Found,
    HomeFullError,
    PutFile,
    RuntimeFailureError,
    Source,
    StartFailedError,
    Volume,
    Workload,
)
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.containers import job
from codehub.runtimes.containers.homes import PARKED, VOLUME, Entry, Home, Seen, TakenError
from codehub.runtimes.docker import bodies, entering, logs
from codehub.runtimes.docker.disk_guard import DiskGuard
from codehub.runtimes.docker.engine import Engine
from codehub.runtimes.docker.jobs import Jobs
from codehub.runtimes.docker.lifecycle import Lifecycle
from codehub.runtimes.docker.names import Names
from codehub.runtimes.docker.volumes import Volumes
from codehub.runtimes.layout import Layout
from codehub.system.privileges import Account
from codehub.templates.model import StarterFile, Template


class DockerRuntime:
    name = "docker"

    def __init__(self, data_dir: pathlib.Path, config: RuntimeConfig, account: Account | None, clock: Clock) -> None:
        self._layout = Layout(data_dir)
        self._config = config
        self._clock = clock
        self.engine = Engine(config.docker_socket)
        installation = nodes.node_of(data_dir)
        self.node = f"docker-{installation}"
        self.names = Names(installation)
        self._volumes = Volumes(self.engine, self.names)
        self._jobs = Jobs(self.engine, self.names, config.platform_image)
        self._lifecycle = Lifecycle(self.engine, self.names, self._layout, config, account, clock)
        self.disk_guard = DiskGuard(self.engine, self.names, self._layout, config, clock)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def containers(self) -> Found[Container]:
        return await self._lifecycle.all()

    async def container(self, workspace_id: str) -> Container | None:
        return await self._lifecycle.one(workspace_id)

    async def first_process(self, workspace_id: str) -> int | None:
        return await self._lifecycle.first_process(workspace_id)

    async def volumes(self, ids: Collection[str]) -> Found[Volume]:
        return await self._volumes.look(ids)

    async def create_volume(self, workspace_id: str, generation: str, starter: Collection[StarterFile] = ()) -> None:
        self._layout.of(workspace_id)
        async with self._held(workspace_id) as seen:
            if seen.volume:
                return
            await self._make_way(workspace_id, seen, generation)
            home = await self._volumes.make_home(workspace_id, generation, await self._new_uid())
            header = json.dumps([[file.path, len(file.data), file.executable] for file in starter]).encode()
            contents = [f"{len(header):010}".encode(), header, *(file.data for file in starter)]
            async with self._or_removed(home):
                await self._jobs.ask(workspace_id, home.name, "make", *contents, uid=home.uid)
                with contextlib.suppress(TakenError):
                    await self._volumes.enter(workspace_id, VOLUME, Entry(generation, home))
                    return
            await self._volumes.remove_home(home.name)

    @contextlib.asynccontextmanager
    async def pack(
        self, workspace_id: str, generation: str, progress: Progress = no_progress, *, gzip: bool = False
    ) -> AsyncIterator[Packing]:
        home, parked = await self._volumes.generation(workspace_id, generation)
        async with self._jobs.worker(workspace_id, home.name, "pack", progress, live=not parked, gzip=gzip) as packing:
            yield packing

    async def unpack(
        self, workspace_id: str, generation: str, chunks: AsyncGenerator[bytes | memoryview, None], source: Source
    ) -> None:
        self._layout.of(workspace_id)
        async with contextlib.aclosing(chunks), self._held(workspace_id) as seen:
            if seen.volume:
                if (seen.volume.generation, seen.volume.restored_from) == (generation, source.restored_from):
                    return
                raise RuntimeFailureError(f"there is a volume already, of generation {seen.volume.generation}")
            await self._lifecycle.require_space(source.expected_bytes)
            await self._make_way(workspace_id, seen, generation)
            home = await self._volumes.make_home(workspace_id, generation, await self._new_uid())
            async with self._or_removed(home):
                await self._unpack_into(workspace_id, home, chunks, source)
                await self._volumes.enter(workspace_id, VOLUME, Entry(generation, home, source.restored_from))
            await self._remove_half_made(workspace_id, await self._volumes.of(workspace_id))

    async def _unpack_into(
        self, workspace_id: str, home: Home, chunks: AsyncGenerator[bytes | memoryview, None], source: Source
    ) -> None:
        quota = {"quota_bytes": source.quota.bytes, "quota_inodes": source.quota.inodes}
        async with self._jobs.worker(
            workspace_id, home.name, "unpack", source.progress, source.expected_bytes, uid=home.uid, **quota
        ) as worker:
            await archives.feed(worker, chunks)

    async def delete_volume(self, workspace_id: str, generation: str) -> None:
        async with self._held(workspace_id) as seen:
            kinds = {entry.generation for entry in seen.entries.values()} | {home.generation for home in seen.unclaimed}
            kinds |= {""} if seen.unreadable else set()
            if kinds and generation not in kinds:
                return
            await self._require_stopped(workspace_id)
            await self._lifecycle.remove(workspace_id, jobs=True)
            await self._destroy(workspace_id, generation, seen)
            rest = await self._volumes.of(workspace_id)
            if not (rest.entries or rest.unreadable or rest.unclaimed):
                await self._volumes.remove_rest(workspace_id)
                await asyncio.to_thread(self._lifecycle.remove_folders, workspace_id)

    async def _destroy(self, workspace_id: str, generation: str, seen: Seen) -> None:
        """An entry first, then its home: what is half destroyed cannot be started."""
        if seen.stale:
            await self._volumes.leave(workspace_id, PARKED)
        for kind in seen.unreadable if not generation else ():
            await self._volumes.leave(workspace_id, kind)
        for kind, entry in seen.entries.items():
            if entry.generation == generation:
                await self._volumes.leave(workspace_id, kind)
                await self._volumes.remove_home(entry.home.name)
        await self._remove_half_made(workspace_id, seen, generation)

    async def park_volume(self, workspace_id: str, generation: str) -> None:
        async with self._held(workspace_id) as seen:
            entry = seen.volume
            if entry is None or entry.generation != generation:
                return
            await self._require_stopped(workspace_id)
            if seen.stale and seen.stale.generation != generation:
                await self._volumes.leave(workspace_id, PARKED)
            await self._volumes.enter(workspace_id, PARKED, entry)
            await self._volumes.leave(workspace_id, VOLUME)

    async def unpark_volume(self, workspace_id: str, generation: str, made: str) -> None:
        async with self._held(workspace_id) as seen:
            if seen.stale and seen.volume and seen.volume.generation == made:
                await self._volumes.leave(workspace_id, PARKED)
            entry = seen.parked
            if entry is None or entry.generation != generation:
                return
            await self._volumes.enter(workspace_id, VOLUME, Entry(made, entry.home, entry.restored_from))
            await self._volumes.leave(workspace_id, PARKED)

    async def disk_items(self, ids: Collection[str] | None = None) -> Sequence[DiskItem]:
        found = await self._volumes.disk_items(ids)
        known = {item.workspace_id for item in found}
        left = await self._lifecycle.left_over(ids)
        return [*found, *(DiskItem(id_, "", "rest") for id_ in sorted(left - known))]

    async def start(self, workload: Workload) -> Cold | None:
        self._layout.of(workload.workspace_id)
        spec = bodies.spec_of(workload)
        async with self._locks[workload.workspace_id]:
            if await self._lifecycle.runs_already(workload):
                return None
            entry = await self._volumes.require(workload.workspace_id)
            await self._lifecycle.require_space()
            uid = int(spec.user) if spec.user else entry.home.uid
            if uid != entry.home.uid:
                await self._jobs.ask(workload.workspace_id, entry.home.name, "give", uid=uid)
            link = await self._make_link(workload, uid)
            await self._lifecycle.start(workload, entry, uid, link, self._is_still_in_place)
        return None

    async def _make_link(self, workload: Workload, uid: int) -> str | None:
        if not bodies.uses_socket(bodies.spec_of(workload)):
            return None
        return await self._volumes.make_link(workload.workspace_id, uid)

    async def _is_still_in_place(self, workspace_id: str, entry: Entry) -> bool:
        now = (await self._volumes.of(workspace_id)).volume
        return now == entry and await self._volumes.is_still(entry.home)

    async def warm_up(self, template: Template) -> None:
        """A container starts as quickly as its image lets it."""

    async def stop(self, workspace_id: str, grace_seconds: float) -> None:
        self._layout.of(workspace_id)
        async with self._locks[workspace_id]:
            await self._lifecycle.stop(workspace_id, grace_seconds)

    async def last_exit(self, workspace_id: str) -> Exit | None:
        self._layout.of(workspace_id)
        return await self._lifecycle.last_exit(workspace_id)

    async def exec(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_seconds: float = 60.0,
        max_output: int = 1_000_000,
        contained: bool = False,
    ) -> ExecResult:
        found = await self._lifecycle.running(workspace_id)
        running = await asyncio.to_thread(entering.running_of, workspace_id, found)
        bounds = inside.Bounds(timeout_seconds, max_output, contained=contained)
        environment = entering.environment_of(workspace_id, found)
        return await inside.run(running, command, environment, stdin, bounds, ide=running.first.pid)

    async def put(
        self,
        workspace_id: str,
        files: Mapping[str, bytes],
        *,
        delivered: Mapping[str, Collection[str]] | None = None,
        quota: Quota | None = None,
    ) -> Sequence[PutFile]:
        entry = await self._volumes.require(workspace_id)
        if quota:
            await self._require_room(workspace_id, quota, sum(map(len, files.values())))
        header = json.dumps(inside.put_header(job.VOLUME, await self._owner(workspace_id, entry), files, delivered))
        contents = [f"{len(header.encode()):010}".encode(), header.encode(), *files.values()]
        return inside.put_files(files, await self._jobs.ask(workspace_id, entry.home.name, "put", *contents))

    async def _owner(self, workspace_id: str, entry: Entry) -> int:
        """Whose the home is: an image's own user, since it was started as one, or its own."""
        return await self._lifecycle.last_uid(workspace_id) or entry.home.uid

    async def _require_room(self, workspace_id: str, quota: Quota, size: int) -> None:
        try:
            await self._lifecycle.require_space(size)
        except StartFailedError as e:
            raise HomeFullError(e.detail) from e
        used = await self.disk_usage(workspace_id)
        if used + size > quota.bytes:
            raise HomeFullError(limits.full(used, quota.bytes))

    def logs(self, workspace_id: str, *, tail_bytes: int = 65536, follow: bool = False) -> AsyncIterator[bytes]:
        container = self.names.ide(workspace_id)
        return logs.read(self.engine, container, self._clock, tail_bytes, follow=follow)

    async def disk_usage(self, workspace_id: str) -> int:
        entry = await self._volumes.require(workspace_id)
        seconds = self._config.disk_usage_seconds
        return int((await self._jobs.run(workspace_id, entry.home.name, "measure", {}, seconds=seconds)).split()[0])

    def watching(self, _ended: Callable[[], None]) -> contextlib.AbstractAsyncContextManager[None]:
        """What the leader does beside its verbs. Of ends the engine is asked, it does not tell."""
        return self.disk_guard.watching()

    async def close(self) -> None:
        """Nothing is held: containers are the engine's."""
        await self._lifecycle.close()

    @contextlib.asynccontextmanager
    async def _held(self, workspace_id: str) -> AsyncIterator[Seen]:
        """Verbs of one workspace follow each other. Another process's meet at the engine's names."""
        async with self._locks[workspace_id]:
            yield await self._volumes.of(workspace_id)

    async def _require_stopped(self, workspace_id: str) -> None:
        if await self._lifecycle.is_running(workspace_id):
            raise RuntimeFailureError("the workspace is running")

    @contextlib.asynccontextmanager
    async def _or_removed(self, home: Home) -> AsyncIterator[None]:
        try:
            yield
        except BaseException:
            with contextlib.suppress(RuntimeFailureError):  # the garbage collection finds what is left
                await asyncio.shield(self._volumes.remove_home(home.name))
            raise

    async def _make_way(self, workspace_id: str, seen: Seen, generation: str) -> None:
        """For a new home: what an attempt at it left goes, and the entry of one that somebody has removed."""
        seen.require_readable()
        if VOLUME in seen.dead:
            await self._volumes.leave(workspace_id, VOLUME)
        await self._remove_half_made(workspace_id, seen, generation)

    async def _remove_half_made(self, workspace_id: str, seen: Seen, generation: str | None = None) -> None:
        """Homes that no entry names, of restores that were given up: of this generation, or all."""
        for home in seen.unclaimed:
            if generation in {None, home.generation}:
                await self._lifecycle.remove_jobs(workspace_id, home.name)
                await self._volumes.remove_home(home.name)

    async def _new_uid(self) -> int:
        counter = self._layout.root / "counter"
        self._layout.prepare(as_root=True)
        taken = 0 if counter.exists() else await self._volumes.largest_uid()
        return await asyncio.to_thread(uids.allocate, counter, max(self._config.uid_base, taken + 1))
