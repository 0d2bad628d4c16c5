"""Workspaces as pods of a Kubernetes cluster. Made by `wiring`, called by the controller.

A verb here is short: what a pod is told is decided in `bodies` and what its status means in `judging`, homes are in
`volumes`, work on them is done by `jobs`, pods are started and ended in `lifecycle`. All that is known is in the
cluster. Of the running workspaces only the doors of their pods are asked, never the cluster's API.
"""

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence

from codehub import ids as labels
from codehub.archives import process as archives
from codehub.archives.model import Packing, Progress, Quota, no_progress
from codehub.clock import Clock
from codehub.errors import NotFoundError
from codehub.runtimes import inside, limits
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
    Volume,
    Workload,
)
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.containers.homes import PARKED, VOLUME, Entry, Home, Seen, TakenError
from codehub.runtimes.kubernetes import bodies, names
from codehub.runtimes.kubernetes.api import Access, Api
from codehub.runtimes.kubernetes.asking import Asking, understood
from codehub.runtimes.kubernetes.jobs import Jobs
from codehub.runtimes.kubernetes.lifecycle import Lifecycle, ask_address
from codehub.runtimes.kubernetes.names import Names
from codehub.runtimes.kubernetes.volumes import Volumes
from codehub.system.doors import Doors
from codehub.templates.model import StarterFile, Template

SLACK_SECONDS = 30.0  # beyond a command's own time
LOG_SECONDS = 20.0


class KubernetesRuntime:
    name = "kubernetes"

    def __init__(self, config: RuntimeConfig, doors: Doors, clock: Clock) -> None:
        self._config = config
        self.api = Api(Access.of(config), clock)
        self.names = Names(config.kubernetes_installation)
        self.node = f"kubernetes-{self.api.namespace}-{self.names.installation}"
        self._clock = clock
        self._asking = Asking(doors, clock)
        self.volumes_ = Volumes(self.api, self.names, config, clock)
        self.lifecycle = Lifecycle(self.api, self.names, config, self._asking, clock)
        self._jobs = Jobs(self.lifecycle, self._asking)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def containers(self) -> Found[Container]:
        return await self.lifecycle.all()

    async def container(self, workspace_id: str) -> Container | None:
        return await self.lifecycle.one(workspace_id)

    async def volumes(self, ids: Collection[str]) -> Found[Volume]:
        return await self.volumes_.look(ids)

    async def create_volume(self, workspace_id: str, generation: str, starter: Collection[StarterFile] = ()) -> None:
        async with self._held(workspace_id) as seen:
            if seen.volume:
                return
            await self._make_way(seen, generation)
            home = await self.volumes_.make_home(workspace_id, generation)
            header = json.dumps([[file.path, len(file.data), file.executable] for file in starter]).encode()
            contents = [f"{len(header):010}".encode(), header, *(file.data for file in starter)]
            async with self._or_removed(home):
                await self._jobs.ask(workspace_id, home, "make", *contents, uid=home.uid)
                with contextlib.suppress(TakenError):
                    await self.volumes_.change(workspace_id, {**seen.entries, VOLUME: Entry(generation, home)})
                    return
            await self.volumes_.remove_home(home.name)

    @contextlib.asynccontextmanager
    async def pack(
        self, workspace_id: str, generation: str, progress: Progress = no_progress, *, gzip: bool = False
    ) -> AsyncIterator[Packing]:
        home, parked = await self.volumes_.generation(workspace_id, generation)
        async with self._jobs.worker(workspace_id, home, "pack", progress, live=not parked, gzip=gzip) as packing:
            yield packing

    async def unpack(
        self, workspace_id: str, generation: str, chunks: AsyncGenerator[bytes | memoryview, None], source: Source
    ) -> None:
        async with contextlib.aclosing(chunks), self._held(workspace_id) as seen:
            if seen.volume:
                if (seen.volume.generation, seen.volume.restored_from) == (generation, source.restored_from):
                    return
                raise RuntimeFailureError(f"there is a volume already, of generation {seen.volume.generation}")
            await self._make_way(seen, generation)
            home = await self.volumes_.make_home(workspace_id, generation)
            async with self._or_removed(home):
                await self._unpack_into(workspace_id, home, chunks, source)
                placed = Entry(generation, home, source.restored_from)
                await self.volumes_.change(workspace_id, {**seen.entries, VOLUME: placed})
            await self._remove_half_made(await self.volumes_.of(workspace_id))

    async def _unpack_into(
        self, workspace_id: str, home: Home, chunks: AsyncGenerator[bytes | memoryview, None], source: Source
    ) -> None:
        quota = {"quota_bytes": source.quota.bytes, "quota_inodes": source.quota.inodes}
        async with self._jobs.worker(
            workspace_id, home, "unpack", source.progress, source.expected_bytes, uid=home.uid, **quota
        ) as worker:
            await archives.feed(worker, chunks)

    async def delete_volume(self, workspace_id: str, generation: str) -> None:
        async with self._held(workspace_id) as seen:
            kinds = {entry.generation for entry in seen.entries.values()} | {home.generation for home in seen.unclaimed}
            kinds |= {""} if seen.unreadable else set()
            if kinds and generation not in kinds:
                return
            await self._require_stopped(workspace_id)
            await self.lifecycle.remove_all(workspace_id)
            await self._destroy(workspace_id, generation, seen)
            rest = await self.volumes_.of(workspace_id)
            if not (rest.entries or rest.unreadable or rest.unclaimed):
                await self.volumes_.remove_entry(workspace_id)

    async def _destroy(self, workspace_id: str, generation: str, seen: Seen) -> None:
        """What names a home first, then the home: what is half destroyed cannot be started."""
        doomed = {kind: entry for kind, entry in seen.entries.items() if entry.generation == generation}
        unreadable = seen.unreadable if not generation else {}
        if doomed or unreadable or seen.dead:
            kept = {kind: entry for kind, entry in seen.entries.items() if kind not in doomed}
            if seen.unreadable and not unreadable:
                raise RuntimeFailureError(next(iter(seen.unreadable.values())))
            await self.volumes_.change(workspace_id, kept)
        for entry in doomed.values():
            await self.volumes_.remove_home(entry.home.name)
        await self._remove_half_made(seen, generation)

    async def park_volume(self, workspace_id: str, generation: str) -> None:
        async with self._held(workspace_id) as seen:
            entry = seen.volume
            if entry is None or entry.generation != generation:
                return
            seen.require_readable()
            await self._require_stopped(workspace_id)
            if seen.parked:
                raise TakenError(f"there is a parked volume already, of generation {seen.parked.generation}")
            await self.volumes_.change(workspace_id, {PARKED: entry})

    async def unpark_volume(self, workspace_id: str, generation: str, made: str) -> None:
        async with self._held(workspace_id) as seen:
            entry = seen.parked
            if entry is None or entry.generation != generation:
                return
            seen.require_readable()
            if seen.volume:
                raise TakenError(f"there is a volume already, of generation {seen.volume.generation}")
            await self.volumes_.change(workspace_id, {VOLUME: Entry(made, entry.home, entry.restored_from)})

    async def disk_items(self, ids: Collection[str] | None = None) -> Sequence[DiskItem]:
        found = await self.volumes_.disk_items(ids)
        known = {item.workspace_id for item in found}
        left = {id_ for id_ in await self.lifecycle.left_over() if ids is None or id_ in ids}
        return [*found, *(DiskItem(id_, "", "rest") for id_ in sorted(left - known))]

    async def start(self, workload: Workload) -> Cold | None:
        id_, spec = workload.workspace_id, bodies.spec_of(workload)
        _require_label(id_)
        async with self._locks[id_]:
            if await self.lifecycle.runs_already(workload):
                return None
            entry = await self.volumes_.require(id_)
            await self.lifecycle.remove(entry.home.name)  # a pod of ours that a killed coordinator left with this home
            uid = int(spec.user) if spec.user else entry.home.uid
            if uid != entry.home.uid:
                raise RuntimeFailureError("a template's own `user` cannot be had on Kubernetes: each home has its own")
            allowed = limits.resolve(workload.template.limits, self._config)
            await self.lifecycle.start(workload, entry, uid, allowed, self._is_still_in_place)
        return None

    async def _is_still_in_place(self, workspace_id: str, entry: Entry) -> bool:
        await self.volumes_.refresh(workspace_id)
        return (await self.volumes_.of(workspace_id)).volume == entry

    async def warm_up(self, template: Template) -> None:
        """A pod starts as quickly as its image lets it."""

    async def stop(self, workspace_id: str, grace_seconds: float) -> None:
        _require_label(workspace_id)
        async with self._locks[workspace_id]:
            await self.lifecycle.stop(workspace_id, grace_seconds)

    async def last_exit(self, workspace_id: str) -> Exit | None:
        _require_label(workspace_id)
        return await self.lifecycle.last_exit(workspace_id)

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
        pod = await self.lifecycle.running(workspace_id)
        user = pod["metadata"]["annotations"][names.USER]
        wanted = {
            "words": list(command),
            "environment": bodies.basic_environment(workspace_id, user),
            "directory": f"/home/{user}",
            "seconds": timeout_seconds,
            "output": max_output,
            "contained": contained,
        }
        output, said = await self._asking.ask(
            ask_address(pod), {"do": "exec", "command": wanted}, [stdin], seconds=timeout_seconds + SLACK_SECONDS
        )
        with understood():
            return ExecResult(int(said["code"]), output, int(said["left_out"]), bool(said["timed_out"]))

    async def put(
        self,
        workspace_id: str,
        files: Mapping[str, bytes],
        *,
        delivered: Mapping[str, Collection[str]] | None = None,
        quota: Quota | None = None,
    ) -> Sequence[PutFile]:
        header = json.dumps(inside.put_header(bodies.FILES, None, files, delivered)).encode()
        contents = [f"{len(header):010}".encode(), header, *files.values()]
        entry = await self.volumes_.require(workspace_id)
        if quota:
            used, size = await self.disk_usage(workspace_id), sum(map(len, files.values()))
            if used + size > quota.bytes:
                raise HomeFullError(limits.full(used, quota.bytes))
        async with self._locks[workspace_id]:
            said = await self._jobs.ask(workspace_id, entry.home, "put", *contents)
        with understood():
            return inside.put_files(files, said)

    async def logs(self, workspace_id: str, *, tail_bytes: int = 65536, follow: bool = False) -> AsyncIterator[bytes]:
        """Of one that has ended, its last words. What follows is followed through the next start."""
        while True:
            with contextlib.suppress(RuntimeFailureError):
                pod = await self.lifecycle.running(workspace_id)
                request = {"do": "logs", "tail_bytes": tail_bytes, "follow": follow}
                async with self._asking.under_way(ask_address(pod), request, seconds=LOG_SECONDS) as asked:
                    async for content in asked.pieces():
                        yield bytes(content)
                    await asked.wait()
                if not follow:
                    return
            if not follow:
                ended = await self.lifecycle.last_exit(workspace_id)
                yield ended.log_tail.encode()[-tail_bytes:] if ended else b""
                return
            await self._clock.sleep(1)

    async def disk_usage(self, workspace_id: str) -> int:
        async with self._locks[workspace_id]:
            entry = await self.volumes_.require(workspace_id)
            seconds = self._config.disk_usage_seconds
            measured = await self._jobs.run(workspace_id, entry.home, "measure", {}, seconds=seconds)
        with understood():
            return int(measured.split()[0])

    @contextlib.asynccontextmanager
    async def watching(self, ended: Callable[[], None]) -> AsyncIterator[None]:
        """The leader sees what is there before it is asked, and hears at once of an IDE that has ended."""
        await asyncio.gather(self.volumes_.ready(), self.lifecycle.pods.ready(), return_exceptions=True)
        self.lifecycle.ended = ended
        try:
            yield
        finally:
            self.lifecycle.ended = lambda: None

    async def close(self) -> None:
        """Nothing is held: pods are the cluster's."""
        await self.volumes_.close()
        await self.lifecycle.close()
        await self.api.close()

    @contextlib.asynccontextmanager
    async def _held(self, workspace_id: str) -> AsyncIterator[Seen]:
        """Verbs of one workspace follow each other. Another process's meet at the cluster's versions and names."""
        _require_label(workspace_id)
        async with self._locks[workspace_id]:
            await self.volumes_.refresh(workspace_id)
            yield await self.volumes_.of(workspace_id)

    async def _require_stopped(self, workspace_id: str) -> None:
        if await self.lifecycle.there(workspace_id):
            raise RuntimeFailureError("the workspace is running")

    @contextlib.asynccontextmanager
    async def _or_removed(self, home: Home) -> AsyncIterator[None]:
        try:
            yield
        except BaseException:
            with contextlib.suppress(RuntimeFailureError):  # the garbage collection finds what is left
                await asyncio.shield(self.volumes_.remove_home(home.name))
            raise

    async def _make_way(self, seen: Seen, generation: str) -> None:
        """For a new home: what an attempt at it left goes."""
        seen.require_readable()
        await self._remove_half_made(seen, generation)

    async def _remove_half_made(self, seen: Seen, generation: str | None = None) -> None:
        """Homes that no entry names, of restores that were given up: of this generation, or all."""
        for home in seen.unclaimed:
            if generation in {None, home.generation}:
                await self.lifecycle.remove(home.name)
                await self.volumes_.remove_home(home.name)


def _require_label(workspace_id: str) -> None:
    if not labels.is_label(workspace_id):
        raise NotFoundError("there is no such workspace")
