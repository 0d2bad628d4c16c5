"""Workspaces as processes on this machine: the embedded default. Made by `wiring`, called by the controller.

A verb here is short: what a workspace sees is decided in `workload` and `sandbox`, its files are moved in `volumes`, it
is started and ended in `lifecycle`, and what has to live on without us is its shepherd's.
"""

import asyncio
import contextlib
import dataclasses
import os
import pathlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence

from codehub.archives import process as archives
from codehub.archives.model import Packing, Progress, Quota, no_progress
from codehub.clock import Clock
from codehub.runtimes import (
    cgroups,
    connect,
    files,
    inside,
    isolation,
    lifecycle,
    limits,
    logs,
    nodes,
    records,
    sandbox,
    warm,
    workload,
)
from codehub.runtimes.base import (
    Cold,
    Container,
    DiskItem,
    ExecResult,
    Exit,
    Found,
    IsolationUnavailableError,
    PutFile,
    RuntimeFailureError,
    Source,
    StartFailedError,
    Volume,
    Workload,
)
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.isolation import Isolation
from codehub.runtimes.layout import Layout, WorkspacePaths
from codehub.runtimes.network import ways
from codehub.runtimes.records import Running
from codehub.runtimes.sandbox import Machine, SandboxSpec
from codehub.runtimes.shepherd.spec import NAMESPACES, PLAIN, Spec
from codehub.runtimes.threads import DELETE, MOVE, OBSERVE, START, WARM, Threads
from codehub.runtimes.volumes import Meta, Volumes
from codehub.system import arrivals
from codehub.system.privileges import Account
from codehub.templates import programs
from codehub.templates.model import Network, ProcessSpec, StarterFile, Template

ANSWER_SECONDS = 1.0
LISTEN_SECONDS = 0.25  # before it is looked at again whether it is still there
WRITING_SECONDS = 5.0
EXIT_TAIL = 4096
AUTO = "auto"  # of CODEHUB_ISOLATION
ON = "on"  # of CODEHUB_WARM_STARTS


class ProcessRuntime:
    name = "process"

    def __init__(self, data_dir: pathlib.Path, config: RuntimeConfig, account: Account | None, clock: Clock) -> None:
        self._as_root = os.geteuid() == 0
        self._layout = Layout(data_dir)
        self._config = config
        self._account = account
        self._clock = clock
        self._threads = Threads()
        self._node: str | None = None
        self._volumes = Volumes(self._layout, config.uid_base if self._as_root else None)
        self._host: workload.HostContext | None = None
        self._groups: cgroups.Groups | None = None
        self._parents = warm.WarmParents(warm.WarmConfig(config.warm_idle_seconds, config.warm_memory_mb << 20))
        self._loads: set[asyncio.Future[None]] = set()

    @property
    def node(self) -> str:
        """Of this data directory: what lies below another one cannot be seen from here."""
        if self._node is None:
            self._node = nodes.node_of(self._layout.data_dir)
        return self._node

    async def containers(self) -> Found[Container]:
        return await self._threads.run(OBSERVE, records.read_all, self._layout)

    async def container(self, workspace_id: str) -> Container | None:
        running = await self._threads.run(OBSERVE, records.read, self._layout.of(workspace_id))
        if running is None or not running.alive:
            return None
        return dataclasses.replace(running.container(), answers=await _answers(running))

    async def begins_to_listen(self, workspace_id: str, pause: float) -> bool:
        socket = self._layout.of(workspace_id).socket
        if not arrivals.is_there(socket):
            with contextlib.suppress(OSError):  # the kernel has no watch left, or it has ended
                return await arrivals.appears(socket, LISTEN_SECONDS, self._clock)
        await self._clock.sleep(pause)
        return False

    async def first_process(self, workspace_id: str) -> int | None:
        running = await self._threads.run(OBSERVE, records.read, self._layout.of(workspace_id))
        return running.first.pid if running and running.alive else None

    async def volumes(self, ids: Collection[str]) -> Found[Volume]:
        return await self._threads.run(OBSERVE, self._volumes.look, ids)

    async def isolation(self) -> Isolation:
        """How workspaces are kept apart here; for `doctor`, and looked for before each start until there is a way."""
        return (await self._host_context()).isolation

    async def way_out(self) -> ways.Way:
        """How workspaces leave networks of their own here; for `doctor`."""
        return (await self._host_context()).way

    async def limits(self) -> cgroups.Groups:
        """Whether limits can be set here, and if not, why."""
        if self._groups is None:
            self._groups = await asyncio.to_thread(cgroups.find, self._layout.data_dir)
        return self._groups

    async def create_volume(self, workspace_id: str, generation: str, starter: Collection[StarterFile] = ()) -> None:
        await self._in_thread(MOVE, lambda: self._volumes.create(workspace_id, generation, starter))

    @contextlib.asynccontextmanager
    async def pack(
        self, workspace_id: str, generation: str, progress: Progress = no_progress, *, gzip: bool = False
    ) -> AsyncIterator[Packing]:
        home, parked = await self._threads.run(OBSERVE, self._volumes.home, workspace_id, generation)
        async with archives.packing(home, progress, live=not parked, gzip=gzip) as packing:
            yield packing

    async def unpack(
        self, workspace_id: str, generation: str, chunks: AsyncGenerator[bytes | memoryview, None], source: Source
    ) -> None:
        async with contextlib.aclosing(chunks):
            if await self._threads.run(OBSERVE, self._volumes.is_there, workspace_id, generation, source.restored_from):
                return
            staged = await self._threads.run(MOVE, self._stage, workspace_id, generation)
            try:
                await self._unpack_into(staged, chunks, source)
                await self._in_thread(
                    MOVE, lambda: self._volumes.place(workspace_id, generation, staged, source.restored_from)
                )
            except BaseException:
                with contextlib.suppress(RuntimeFailureError):  # the garbage collection finds what is left
                    await asyncio.shield(self._threads.run(DELETE, files.remove_tree, staged))
                raise

    def _stage(self, workspace_id: str, generation: str) -> pathlib.Path:
        self._layout.prepare(as_root=self._as_root)
        return self._volumes.staging(workspace_id, generation)

    async def _unpack_into(
        self, staged: pathlib.Path, chunks: AsyncGenerator[bytes | memoryview, None], source: Source
    ) -> None:
        await self._threads.run(MOVE, limits.require_space, self._config, staged, source.expected_bytes)
        info = await self._threads.run(MOVE, staged.stat)
        owner = (info.st_uid, info.st_gid) if self._as_root else None  # else everything is ours anyway
        unpack = archives.into_folder(staged, owner, source.quota)
        await unpack(chunks, source.expected_bytes, source.progress)

    async def delete_volume(self, workspace_id: str, generation: str) -> None:
        await self._in_thread(DELETE, lambda: self._volumes.delete(workspace_id, generation))

    async def park_volume(self, workspace_id: str, generation: str) -> None:
        await self._in_thread(MOVE, lambda: self._volumes.park(workspace_id, generation))

    async def unpark_volume(self, workspace_id: str, generation: str, made: str) -> None:
        await self._in_thread(MOVE, lambda: self._volumes.unpark(workspace_id, generation, made))

    async def disk_items(self, ids: Collection[str] | None = None) -> Sequence[DiskItem]:
        return await self._threads.run(OBSERVE, self._volumes.disk_items, ids)

    async def start(self, workload_: Workload) -> Cold | None:
        paths = self._layout.of(workload_.workspace_id)
        running = records.read(paths)
        if running and running.alive:
            return None
        if running:
            await self._threads.run(START, lifecycle.clear_up, paths, running)
        host = self._as_far_as_trusted(await self._host_context(), workload_)
        process = workload.process_of(workload_)
        self._check_network(workload_, process)
        meta = await self._threads.run(START, self._volumes.meta, workload_.workspace_id)
        await self._threads.run(START, limits.require_space, self._config, self._layout.homes)
        box = workload.sandbox_of(workload_, process, paths, meta.uid, host)
        spec = workload.spec_of(workload_, paths, box, host)
        await self._in_thread(START, lambda: self._prepare(paths, box, host.machine))
        allowed, found = limits.resolve(workload_.template.limits, self._config), await self.limits()
        groups = found.create(workload_.workspace_id, allowed)
        alone = host.isolation.kind != PLAIN and limits.counts_apart(meta.uid, os.uname().release)
        shares = limits.shares(
            allowed,
            self._config,
            paths.home,
            paths.usage_file,
            grouped=found.controllers,
            alone=alone,
            filter_=limits.filter_of(process, host.isolation.kind),
        )
        try:
            return await self._begin(dataclasses.replace(spec, groups=groups, shares=shares), workload_, host)
        except StartFailedError:
            cgroups.remove(groups)
            raise

    async def _begin(self, spec: Spec, workload_: Workload, host: workload.HostContext) -> Cold | None:
        process = workload.process_of(workload_)
        if not (process.warm and self._config.warm_starts == ON):
            await lifecycle.start(spec, self._threads)
            return None
        kind = workload.warm_kind(process, spec.command, spec.network.kind, host)
        cold = warm.cold_because(spec, kind) if kind else Cold.PROGRAM
        if kind and cold is None:
            cold = await lifecycle.start_warm(spec, kind, self._parents, self._threads)
        if cold:
            await lifecycle.start(spec, self._threads)
        if kind and cold in {Cold.NOT_LOADED, Cold.OUTDATED}:
            self._load(kind)  # after this start, which needs the processor itself
        return cold

    async def warm_up(self, template: Template) -> None:
        process = template.process
        if process is None or not (process.warm and self._config.warm_starts == ON):
            return
        host = await self._host_context()
        words = programs.command(list(process.command), self._layout.data_dir)
        network = workload.network_of(process, host).kind
        kind = workload.warm_kind(process, words, network, host) if words else None
        if kind and host.isolation.kind == NAMESPACES:
            self._load(kind)

    def warm_parents(self) -> list[int]:
        """Their pids."""
        return list(self._parents.pids().values())

    def _load(self, kind: warm.Kind) -> None:
        """In the background: whoever starts meanwhile starts cold."""
        task = asyncio.ensure_future(self._threads.run(WARM, self._parents.warm_up, kind))
        self._loads.add(task)
        task.add_done_callback(self._loads.discard)

    async def stop(self, workspace_id: str, grace_seconds: float) -> None:
        await lifecycle.stop(self._layout.of(workspace_id), grace_seconds, self._threads)

    async def last_exit(self, workspace_id: str) -> Exit | None:
        paths = self._layout.of(workspace_id)
        left = records.read(paths)
        if left and not left.alive:
            await lifecycle.gone(left.shepherd, WRITING_SECONDS)  # it is just writing down how that went
        ended = records.read_exit(paths.exit_file)
        if ended is None and (left is None or left.alive):
            return None
        tail = await self._threads.run(OBSERVE, logs.tail, paths.log, EXIT_TAIL)
        code, at = ended or (None, None)
        return Exit(code, tail.decode(errors="replace"), at)

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
        running = records.read(self._layout.of(workspace_id))
        if running is None or not running.alive:
            raise RuntimeFailureError("the workspace is not running")
        environment = workload.basic_environment(
            workspace_id, running.user, running.directory, self._layout.data_dir, running.network
        )
        bounds = inside.Bounds(timeout_seconds, max_output, contained=contained)
        return await inside.run(running, command, environment, stdin, bounds)

    async def put(
        self,
        workspace_id: str,
        files: Mapping[str, bytes],
        *,
        delivered: Mapping[str, Collection[str]] | None = None,
        quota: Quota | None = None,
    ) -> Sequence[PutFile]:
        meta: Meta = await asyncio.to_thread(self._volumes.meta, workspace_id)
        paths = self._layout.of(workspace_id)
        if quota:
            size = sum(map(len, files.values()))
            await self._threads.run(OBSERVE, limits.require_room, self._config, paths, quota, size, len(files))
        return await inside.put(paths.home, meta, files, delivered)

    async def logs(self, workspace_id: str, *, tail_bytes: int = 65536, follow: bool = False) -> AsyncIterator[bytes]:
        folder = self._layout.of(workspace_id).log
        if not follow:
            yield await asyncio.to_thread(logs.tail, folder, tail_bytes)
            return
        async for piece in logs.follow(folder, self._clock, tail_bytes):
            yield piece

    async def disk_usage(self, workspace_id: str) -> int:
        return await inside.disk_usage(self._layout.of(workspace_id).home, self._config.disk_usage_seconds)

    async def close(self) -> None:
        """What runs has its shepherd; only warm parents and groups without anybody in them are taken away."""
        await asyncio.to_thread(self._parents.close)
        if self._groups:
            self._groups.leave()

    async def _in_thread(self, kind: str, work: Callable[[], None]) -> None:
        def prepared() -> None:
            self._layout.prepare(as_root=self._as_root)
            work()

        try:
            await self._threads.run(kind, prepared)
        except OSError as e:
            raise RuntimeFailureError(f"{e.strerror}: {e.filename}") from e

    async def _host_context(self) -> workload.HostContext:
        if self._host is None or self._host.isolation.kind is None:
            self._host = await self._threads.run(START, self._find_host)
        return self._host

    def _find_host(self) -> workload.HostContext:
        self._layout.prepare(as_root=self._as_root)
        machine = isolation.look(self._layout.data_dir, self._layout.sockets.parent)
        found = isolation.find(self._config, machine)
        way = ways.find(self._config)
        return workload.HostContext(self._layout.data_dir, self._config, self._account, found, machine, way)

    def _as_far_as_trusted(self, host: workload.HostContext, workload_: Workload) -> workload.HostContext:
        """Where nothing keeps workspaces apart an admin may run one: they can read everything anyway. Others may not.

        What an operator insists on (bubblewrap, namespaces) is insisted on for everybody.
        """
        if host.isolation.kind is not None:
            return host
        if workload_.trusted and self._config.isolation == AUTO:
            return dataclasses.replace(host, isolation=Isolation(PLAIN, host.isolation.reason))
        raise IsolationUnavailableError(
            f"nothing can keep workspaces apart here, so only admins may start one ({host.isolation.reason}). "
            "Ask your admin to install bubblewrap, to allow user namespaces, or, where everybody may read everything, "
            "to set CODEHUB_ISOLATION=none"
        )

    def _check_network(self, workload_: Workload, process: ProcessSpec) -> None:
        """The machine's own network is an operator's choice, said twice before it is anybody's but an admin's."""
        wanted = ways.mode_of(process, self._config)
        if wanted is Network.HOST and not workload_.trusted and self._config.network_host_for != "everybody":
            raise IsolationUnavailableError(
                "this kind of workspace runs in the machine's own network (network = host), which only admins may. "
                "Ask your admin for another kind, or to set CODEHUB_NETWORK_HOST_FOR=everybody"
            )

    def _prepare(self, paths: WorkspacePaths, box: SandboxSpec, machine: Machine) -> None:
        """What lies ready before a start, and may be written again at any time."""
        paths.etc.mkdir(mode=0o755, exist_ok=True)
        uid = os.getuid() if box.uid is None else box.uid
        gid = os.getgid() if box.uid is None else box.uid
        hosts = files.text_of("/etc/hosts") or "127.0.0.1 localhost\n::1 localhost"
        folders = programs.folders(self._layout.data_dir)
        for name, text in sandbox.etc_files(
            machine, box, hosts, uid, gid, profile=files.text_of("/etc/profile"), folders=folders
        ).items():
            if not files.says(paths.etc / name, text):  # nearly always it did so at the last start
                files.write_whole(paths.etc / name, text, 0o644)
        paths.log.mkdir(mode=0o700, exist_ok=True)
        if self._account:  # the API shows logs, and is not root
            os.chown(paths.log, 0, self._account.gid)
            paths.log.chmod(0o2750)


async def _answers(running: Running) -> bool:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await connect.status_of(running.address, running.ready) < 500
    except (OSError, ValueError, TimeoutError):
        return False
