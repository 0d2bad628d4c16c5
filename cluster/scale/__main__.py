"""`make cluster-scale`: a coordinator with thousands of workspaces on simulated nodes, beside one with a tenth of them.

The API server, etcd, the scheduler and the controllers are real, and so are PostgreSQL, Valkey and the coordinator,
which is the ordinary role in a process of its own with no more rights than the platform is given. Simulated are nodes
and pods (KWOK) and what the relays in the pods answer (`pods`). Servers, addresses and files are the run's own, and go
with it, whatever becomes of it.
"""

import argparse
import asyncio
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable

import asyncpg
from tests.platform import descendants
from tests.roles_apart import Role
from tests.servers import TEMPLATE, Runner, TestServers

from cluster.layout import Place
from cluster.scale import control, report
from cluster.scale.filling import TEMPLATE as SIMULATED
from cluster.scale.filling import TEMPLATE_FILE, Filling
from cluster.scale.measuring import Audit, Figures, Measuring, Processes
from codehub.clock import SystemClock
from codehub.runtimes.base import RuntimeFailureError
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.kubernetes.api import Api
from codehub.runtimes.kubernetes.runtime import KubernetesRuntime
from codehub.system.doors import Doors

NAMESPACE = "labs"
SECRET = "a signing key of this measurement alone"  # noqa: S105 (it opens nothing else)
DATABASE = "scale"
ROLE_MANIFEST = pathlib.Path(__file__).parents[2] / "deploy/kubernetes/coordinator-role.yaml"
READY_SECONDS = 120.0
SETTLE_SECONDS = 20.0
LONGEST_SECONDS = 900


class Run:
    def __init__(self, given: argparse.Namespace, where: Place, servers: TestServers, folder: pathlib.Path) -> None:
        self._given = given
        self._where = where
        self._servers = servers
        self._folder = folder
        self._coordinator: Role | None = None

    async def sizes(self) -> tuple[Figures, Figures]:
        admin = RuntimeConfig(
            runtime="kubernetes",
            kubernetes_config=str(self._where.kubeconfig),
            kubernetes_namespace=NAMESPACE,
            network="none",
        )
        runtime = KubernetesRuntime(admin, Doors(SECRET), SystemClock())
        try:
            await self._furnish(runtime)
            filling = Filling(runtime, admin, Doors(SECRET), self._servers.database(DATABASE))
            await self._told("nodes", filling.nodes(self._given.nodes))
            found = []
            for part in (10, 1):
                known, running = self._given.known // part, self._given.running // part
                await self._told(
                    f"{known:,} workspaces, {running:,} pods", filling.grow(known, running, self._given.wakes)
                )
                found.append(await self._measure(filling, runtime))
            return found[0], found[1]
        finally:
            await runtime.close()

    async def _told(self, what: str, work: Awaitable[None]) -> None:
        begun = time.monotonic()
        await work
        print(f"{what}: {time.monotonic() - begun:.0f} s", flush=True)

    async def _furnish(self, runtime: KubernetesRuntime) -> None:
        """A namespace as docs/kubernetes.md says, and a database."""
        async with asyncio.timeout(READY_SECONDS):
            while not await _is_there(runtime.api, "/api/v1/namespaces/default"):  # it has just been started
                await asyncio.sleep(0.5)
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        await runtime.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
        for kind, body in control.allow_coordinator(ROLE_MANIFEST):
            where = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/{kind}"
            await runtime.api.call("POST", where, body)
        async with asyncio.timeout(READY_SECONDS):
            while not await _is_there(runtime.api, "serviceaccounts/default"):
                await asyncio.sleep(0.2)
        admin = await asyncpg.connect(self._servers.database("postgres"))
        await admin.execute(f"CREATE DATABASE {DATABASE} TEMPLATE {TEMPLATE}")
        await admin.close()

    async def _measure(self, filling: Filling, runtime: KubernetesRuntime) -> Figures:
        given, audit = self._given, Audit(control.audit_log(self._where))
        database = await asyncpg.connect(self._servers.database(DATABASE))
        measuring = Measuring(database, runtime, audit, self._processes)
        known, running, asleep = len(filling.known), list(filling.running), list(filling.ended)
        try:
            async with self._leading():
                first = await measuring.during(SETTLE_SECONDS)
                memory, idle = measuring.memory(), await measuring.during(given.idle)
                ends = await measuring.ends(running[: given.ends], given.ends / 10)
                await asyncio.sleep(SETTLE_SECONDS)  # they are started again
                wakes = await measuring.wakes(asleep, 60.0)
                to_stop = asleep[: len(asleep) // 4]
                stops = await measuring.stops(to_stop, len(to_stop) / 10)
                filling.running = [*running, *asleep[len(to_stop) :]]
                return Figures(known, len(running), first, idle, ends, wakes, stops, memory)
        finally:
            await database.close()

    @contextlib.asynccontextmanager
    async def _leading(self) -> AsyncIterator[None]:
        """A new process of the role: what it has to read is measured, too."""
        templates = self._folder / "templates"
        templates.mkdir(exist_ok=True)
        (templates / f"{SIMULATED}.toml").write_text(TEMPLATE_FILE)
        self._coordinator = Role(
            "coordinator",
            self._folder / "data",
            {
                "CODEHUB_DATABASE_URL": self._servers.database(DATABASE),
                "CODEHUB_REDIS_URL": self._servers.redis_url,
                "CODEHUB_SECRET_KEY": SECRET,
                "CODEHUB_ARCHIVE_URL": f"file://{self._folder}/archives",
                "CODEHUB_TEMPLATES_DIR": str(templates),
                "CODEHUB_RUNTIME": "kubernetes",
                "CODEHUB_KUBERNETES_CONFIG": str(control.kubeconfig(self._where, control.COORDINATOR)),
                "CODEHUB_KUBERNETES_NAMESPACE": NAMESPACE,
                "CODEHUB_NETWORK": "none",
                "CODEHUB_MAX_CONCURRENT_STARTS": str(self._given.starts),
                "TTL_STANDBY_SECONDS": "0",
                "TTL_ARCHIVE_SECONDS": "0",
            },
        )
        try:
            await self._coordinator.ready()
            yield
        finally:
            self._coordinator.terminate()
            with contextlib.suppress(Exception):
                await self._coordinator.stopped()
            self._coordinator.kill()
            self._coordinator = None

    def _processes(self) -> Processes:
        assert self._coordinator  # noqa: S101 (it is measured while it runs)
        own = self._coordinator.process.pid
        servers = {pid for pid in descendants(os.getpid()) if _program(pid) == "postgres"}
        control_plane = {name: {pid} for name, pid in control.pids(self._where).items()}
        return {report.COORDINATOR: {own, *descendants(own)}, report.DATABASE: servers, **control_plane}


async def _is_there(api: Api, where: str) -> bool:
    try:
        return await api.call("GET", where, missing=True) is not None
    except RuntimeFailureError:
        return False


def _program(pid: int) -> str:
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cluster.scale", description=__doc__)
    parser.add_argument("--known", type=int, default=20_000, help="workspaces; a tenth of them first")
    parser.add_argument("--running", type=int, default=5_000, help="of which so many run; a tenth of them first")
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--wakes", type=int, default=1_000, help="in a minute")
    parser.add_argument("--ends", type=int, default=200, help="IDEs that end by themselves, ten in a second")
    parser.add_argument("--idle", type=float, default=45.0, help="seconds in which nothing changes")
    parser.add_argument("--starts", type=int, default=64, help="CODEHUB_MAX_CONCURRENT_STARTS")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    where, begun = control.place(), time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-scale-"))
    folder.chmod(0o755)
    runner = Runner()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning", flush=True)
    try:
        servers = runner.start()
        with control.running(where, NAMESPACE, SECRET):
            sizes = asyncio.run(_bounded(Run(given, where, servers, folder)))
    finally:
        runner.stop()
        shutil.rmtree(folder, ignore_errors=True)
    for one in sizes:
        print("\n".join(report.asked(one)))
    print("\n".join(report.table(sizes)))
    print(f"{time.monotonic() - begun:.0f} s in all")
    return 1 if any(one.ends.missing or one.wakes.missing or one.stops.missing for one in sizes) else 0


async def _bounded(run: Run) -> tuple[Figures, Figures]:
    async with asyncio.timeout(LONGEST_SECONDS):
        return await run.sizes()


if __name__ == "__main__":
    sys.exit(main())
