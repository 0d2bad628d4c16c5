"""Runtimes under test, by name, and what a test needs to look at them from outside."""

import asyncio
import contextlib
import dataclasses
import io
import os
import pathlib
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar

from codehub.archives.model import Quota
from codehub.archives.pack import Packer
from codehub.clock import SystemClock
from codehub.runtimes.base import Cold, Container, Runtime, Source, Workload
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.process import ProcessRuntime
from codehub.system.doors import Doors
from codehub.system.privileges import service_account
from codehub.templates.model import Template
from tests import docker_engine, kubernetes_cluster
from tests.archives import trees
from tests.docker_engine import DockerRuntime
from tests.kubernetes_cluster import KubernetesRuntime
from tests.places import a_place

T = TypeVar("T")
# Namespaces are tested everywhere, cold and warm; bubblewrap where it is installed (`make test` says so at its start).
WARM = "warm"
KINDS = ["namespaces", WARM, *(["bubblewrap"] if shutil.which("bwrap") else [])]
DOCKER = docker_engine.KIND  # with a marker of its own: `make docker-test`
KUBERNETES = kubernetes_cluster.KIND  # the same: `make cluster-test`
ENGINES = {DOCKER: docker_engine, KUBERNETES: kubernetes_cluster}
SANDBOXES = [kind for kind in KINDS if kind != WARM]


class WarmRuntime(ProcessRuntime):
    """Whatever Python program it is asked for, it starts as a copy of one that is there."""

    async def start(self, workload_: Workload) -> Cold | None:
        process = workload_.template.process
        if process is None:
            return await super().start(workload_)
        template = dataclasses.replace(workload_.template, process=dataclasses.replace(process, warm=True))
        await self.loaded(template)
        cold = await super().start(dataclasses.replace(workload_, template=template))
        assert cold in {None, Cold.PROGRAM}, cold
        return cold

    async def loaded(self, template: Template) -> None:
        await self.warm_up(template)
        await asyncio.gather(*self._loads)


def open_any(data_dir: pathlib.Path, kind: str) -> Runtime:
    if kind in ENGINES:
        opened: Runtime = ENGINES[kind].open_runtime(data_dir)
        return opened
    return open_runtime(data_dir, kind)


def open_runtime(data_dir: pathlib.Path, kind: str, **changes: object) -> ProcessRuntime:
    # Users of this process's tests alone: what others start under theirs is counted by user as well.
    users = 200_000 + os.getpid() % 30_000 * 1_000
    isolation = "namespaces" if kind == WARM else kind
    config = RuntimeConfig(isolation=isolation, log_max_bytes=1 << 20, uid_base=users, **changes)  # type: ignore[arg-type]
    make = WarmRuntime if kind == WARM else ProcessRuntime
    return make(data_dir, config, service_account(None), SystemClock())


@contextlib.asynccontextmanager
async def fresh_any(kind: str) -> AsyncIterator[tuple[Runtime, pathlib.Path]]:
    """Processes, containers or pods."""
    opened = ENGINES[kind].fresh_runtime() if kind in ENGINES else fresh_runtime(kind)
    async with opened as (runtime, data_dir):
        yield runtime, data_dir


@contextlib.asynccontextmanager
async def fresh_runtime(kind: str, **changes: object) -> AsyncIterator[tuple[ProcessRuntime, pathlib.Path]]:
    """A runtime on an empty data directory; whatever a test leaves running is ended."""
    with a_place(on_disk=True) as folder:
        runtime = open_runtime(folder / "data", kind, **changes)
        try:
            yield runtime, folder / "data"
        finally:
            for record in (folder / "data" / "workspaces" / "running").glob("*.json"):
                await runtime.stop(record.stem, 0)  # also what has ended without being able to clear up
            await runtime.limits()  # so that it knows which groups to take away
            await runtime.close()


async def until(look: Callable[[], Awaitable[T]], seconds: float = 90.0) -> T:
    """Ask again until the answer is true; how long that takes is nobody's business."""
    async with asyncio.timeout(seconds):
        while not (found := await look()):
            await asyncio.sleep(0.02)
        return found


async def archive_of(files: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
    """A home with these files, as a runtime unpacks it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        tar = io.BytesIO()
        Packer(tar.write).run(os.open(folder, trees.DIRECTORY))
    yield trees.squeeze(tar.getvalue())


def source(key: str = "key") -> Source:
    return Source(key, Quota(2**40, 2**30))


async def home(runtime: Runtime, workspace_id: str = "w1") -> pathlib.Path:
    """Its files, in place or parked, as root of this machine sees them."""
    if isinstance(runtime, DockerRuntime):
        return await docker_engine.home(runtime, workspace_id)
    if isinstance(runtime, KubernetesRuntime):
        return await kubernetes_cluster.home(runtime, workspace_id)
    assert isinstance(runtime, ProcessRuntime)
    paths = runtime._layout.of(workspace_id)
    return paths.home if paths.volume.exists() else paths.parked / "home"


async def log_files(runtime: Runtime, folder: pathlib.Path, workspace_id: str = "w1") -> list[pathlib.Path]:
    if isinstance(runtime, DockerRuntime):
        return await docker_engine.log_files(runtime, workspace_id)
    if isinstance(runtime, KubernetesRuntime):
        return await kubernetes_cluster.log_files(runtime, workspace_id)
    return list(folder.glob(f"workspaces/homes/{workspace_id}/log/*"))


async def left(runtime: Runtime, folder: pathlib.Path, workspace_id: str = "w1") -> list[str]:
    """Whatever has its name, on disk and on an engine."""
    on_disk = [str(path) for path in folder.rglob("*") if workspace_id in path.name]
    if isinstance(runtime, KubernetesRuntime):
        return [*on_disk, *await kubernetes_cluster.left(runtime)]
    return [*on_disk, *(await docker_engine.left(runtime) if isinstance(runtime, DockerRuntime) else [])]


async def running(runtime: Runtime, workload: Workload) -> Container:
    """Start it, with a volume, and wait until it answers."""
    await runtime.create_volume(workload.workspace_id, "g1")
    await runtime.start(workload)
    return await answering(runtime, workload.workspace_id)


async def answering(runtime: Runtime, workspace_id: str) -> Container:
    async def look() -> Container | None:
        container = await runtime.container(workspace_id)
        return container if container and container.answers else None

    try:
        found = await until(look)
    except TimeoutError:
        log = b"".join([piece async for piece in runtime.logs(workspace_id)])
        seen = await runtime.container(workspace_id), await runtime.last_exit(workspace_id)
        more = await described(runtime, workspace_id)
        raise AssertionError(f"{workspace_id} does not answer: {seen}, {log[-2000:]!r} {more}") from None
    assert found
    return found


async def described(runtime: Runtime, workspace_id: str) -> str:
    """What an engine knows of it."""
    if isinstance(runtime, KubernetesRuntime):
        return await kubernetes_cluster.described(runtime, workspace_id)
    return await docker_engine.described(runtime, workspace_id) if isinstance(runtime, DockerRuntime) else ""


def doors_of(runtime: Runtime) -> Doors | None:
    """The keys of its relays, where it has any."""
    return runtime.lifecycle._asking.doors if isinstance(runtime, KubernetesRuntime) else None


async def ended(runtime: Runtime, workspace_id: str) -> None:
    async def look() -> bool:
        return workspace_id not in await runtime.containers() and await runtime.last_exit(workspace_id) is not None

    await until(look)


async def log_has(runtime: Runtime, workspace_id: str, text: bytes) -> bytes:
    async def look() -> bytes:
        found = b"".join([piece async for piece in runtime.logs(workspace_id)])
        return found if text in found else b""

    return await until(look)


def processes_of(uid_or_marker: str) -> list[int]:
    """Processes anywhere on this machine whose environment names the marker."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if uid_or_marker.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found
