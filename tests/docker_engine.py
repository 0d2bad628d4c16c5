"""A Docker engine of the tests' own, with the images of our Dockerfile: for `make docker-test`.

Its files are in the user's cache, so that a second run finds its images. Nothing is pulled: the base is made by
debootstrap, packages come by pip as this machine is set up for it.
"""

import asyncio
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from codehub.clock import SystemClock
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.docker import names
from codehub.runtimes.docker.engine import Engine, labelled
from codehub.runtimes.docker.runtime import DockerRuntime
from codehub.system.privileges import service_account
from tests.places import a_place

__all__ = ["DockerRuntime"]
KIND = "docker"
SOCKET = "CODEHUB_TEST_DOCKER"  # in the environment of processes that tests start
SAVED = "CODEHUB_TEST_DOCKER_IMAGES"  # a file with images, for an engine that builds none
ROOT = pathlib.Path(__file__).parents[1]
BASE = "codehub-test/base"
# By the parts of the Dockerfile; what others are made from has a name of the tests'.
IMAGES = {
    "init": "codehub-test/init",
    "platform": "codehub/platform",
    "terminal": "codehub/terminal",
    "jupyterlab": "codehub/jupyterlab",
}
# Takes minutes once: built by the tests that need it.
SLOW_IMAGES = {"vscode": "codehub-test/vscode", "code-server": "codehub/code-server"}
PACKAGES = "python3,python3-venv,ca-certificates,procps"
# As pip is told on this machine.
COPIED = ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")


def why_not() -> str | None:
    if os.geteuid() != 0:
        return "a Docker engine of the tests' own needs root"
    for program in ("dockerd", "docker", "debootstrap"):
        if shutil.which(program) is None:
            return f"{program} is not installed (on Debian: apt install docker.io debootstrap)"
    return None


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Its socket. One at a time uses the cache: others wait."""
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with engine(folder, "--iptables=false", "--ip6tables=false", "--bridge=none") as socket:
            _build(folder, socket)
            os.environ[SOCKET] = socket
            try:
                yield socket
            finally:
                os.environ.pop(SOCKET, None)


def cache() -> pathlib.Path:
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path("~/.cache").expanduser(), "codehub-docker")


@contextlib.contextmanager
def engine(folder: pathlib.Path, *options: str) -> Iterator[str]:
    """One that runs until the block ends; what it has is in the folder, for the next time."""
    folder.mkdir(parents=True, exist_ok=True)
    socket, log = str(folder / "docker.sock"), folder / "dockerd.log"
    with log.open("wb") as output:
        daemon = subprocess.Popen(_command(folder, socket, *options), stdout=output, stderr=output)
        try:
            _wait_for(socket, daemon, log)
            yield socket
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(60)


def _command(cache: pathlib.Path, socket: str, *options: str) -> list[str]:
    folders = ["--data-root", str(cache / "engine"), "--exec-root", str(cache / "exec")]
    files = ["--pidfile", str(cache / "docker.pid"), "-H", f"unix://{socket}"]
    # Mounts of its own: a sandbox that is made on this machine meanwhile would keep copies of the engine's, and an
    # overlay that is mounted twice loses files.
    apart = ["unshare", "--mount", "--propagation", "private", "--"]
    return [*apart, "dockerd", *folders, *files, *options]


def _wait_for(socket: str, daemon: subprocess.Popen[bytes], log: pathlib.Path) -> None:
    for _ in range(600):
        if daemon.poll() is not None:
            pytest.fail(f"dockerd does not run: {log.read_text(errors='replace')[-2000:]}")
        if docker(socket, "version", check=False).returncode == 0:
            return
        time.sleep(0.1)
    pytest.fail("dockerd does not answer")


def docker(socket: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DOCKER_HOST": f"unix://{socket}", "DOCKER_BUILDKIT": "0"}
    done = subprocess.run(["docker", *words], check=False, capture_output=True, text=True, env=environment)
    if check and done.returncode:
        pytest.fail(f"docker {words[0]}: {(done.stdout + done.stderr)[-3000:]}")
    return done


def _build(cache: pathlib.Path, socket: str) -> None:
    if docker(socket, "image", "inspect", BASE, check=False).returncode:
        _import_base(cache, socket)
    for target in IMAGES:
        build(socket, target)
    docker(socket, "image", "prune", "-f")


def build(socket: str, target: str) -> str:
    """The image of this part of the Dockerfile. Named, it outlives the pruning: what it took is not done again."""
    image = {**IMAGES, **SLOW_IMAGES}[target]
    words = ["build", "--network", "host", "--build-arg", f"BASE={BASE}", "--target", target, "-t", image]
    docker(socket, *words, str(ROOT))
    return image


def _import_base(cache: pathlib.Path, socket: str) -> None:
    tree = cache / "base"
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(tree)],
        check=True,
        capture_output=True,
    )
    for file in map(pathlib.Path, COPIED):
        if file.is_file():
            shutil.copyfile(file, tree / file.relative_to("/"))
    packed = cache / "base.tar"
    subprocess.run(["tar", "-C", str(tree), "-cf", str(packed), "."], check=True)
    docker(socket, "import", str(packed), BASE)
    shutil.rmtree(tree)
    packed.unlink()


@contextlib.asynccontextmanager
async def fresh_runtime(**changes: object) -> AsyncIterator[tuple[DockerRuntime, pathlib.Path]]:
    with a_place(on_disk=True) as folder:
        runtime = open_runtime(folder / "data", **changes)
        try:
            yield runtime, folder / "data"
        finally:
            await clear(runtime)


def open_runtime(data_dir: pathlib.Path, **changes: object) -> DockerRuntime:
    users = 200_000 + os.getpid() % 30_000 * 1_000
    chosen = {
        "uid_base": users,
        "runtime": KIND,
        "network": "none",
        "log_max_bytes": 1 << 20,
        "docker_socket": os.environ[SOCKET],
    }
    config = RuntimeConfig(**{**chosen, **changes})  # type: ignore[arg-type]
    return DockerRuntime(data_dir, config, service_account(None), SystemClock())


async def clear(runtime: DockerRuntime) -> None:
    """Take away all that a test left on the engine."""
    await runtime.close()
    for one in await containers(runtime.engine, runtime.names.ours):
        with contextlib.suppress(Exception):
            await runtime.engine.call("DELETE", f"/containers/{one}", missing=True, force="1", v="1")
    for one in await volumes(runtime.engine, runtime.names.ours):
        await runtime.engine.call("DELETE", f"/volumes/{one}", missing=True, force="1")


async def containers(engine: Engine, label: str) -> list[str]:
    return [one["Id"] for one in await engine.call("GET", "/containers/json", all="1", filters=labelled(label))]


async def volumes(engine: Engine, label: str) -> list[str]:
    return [one["Name"] for one in (await engine.call("GET", "/volumes", filters=labelled(label)))["Volumes"] or []]


async def left(runtime: DockerRuntime) -> list[str]:
    ours = runtime.names.ours
    return [*await containers(runtime.engine, ours), *await volumes(runtime.engine, ours)]


async def home(runtime: DockerRuntime, workspace_id: str) -> pathlib.Path:
    seen = await runtime._volumes.of(workspace_id)
    entry = seen.volume or seen.parked
    assert entry
    return pathlib.Path((await runtime.engine.call("GET", f"/volumes/{entry.home.name}"))["Mountpoint"])


async def log_files(runtime: DockerRuntime, workspace_id: str) -> list[pathlib.Path]:
    info = await runtime.engine.call("GET", f"/containers/{runtime.names.ide(workspace_id)}/json")
    folder = pathlib.Path(info["LogPath"]).parent
    return await asyncio.to_thread(lambda: list(folder.glob("*-json.log*")))


async def roles(runtime: DockerRuntime) -> list[str]:
    """Of all containers that are there, running or not."""
    listed = await runtime.engine.call("GET", "/containers/json", all="1", filters=labelled(runtime.names.ours))
    return sorted(one["Labels"][names.ROLE] for one in listed)


async def described(runtime: DockerRuntime, workspace_id: str) -> str:
    """For a test that fails: what the engine knows of the two containers, and what the relay says."""
    said = []
    for name in (runtime.names.ide(workspace_id), runtime.names.relay(workspace_id)):
        info = await runtime.engine.call("GET", f"/containers/{name}/json", missing=True) or {}
        printed = await asyncio.to_thread(docker, runtime.engine.socket, "logs", name, check=False)
        seen = f"ls -la /proc/{info.get('State', {}).get('Pid')}/root/run/*"
        folders = await asyncio.to_thread(subprocess.run, ["sh", "-c", seen], check=False, capture_output=True)
        said.append(
            f"{info.get('State')} {info.get('RestartCount')} {printed.stderr[-1000:]} {folders.stdout.decode()}"
        )
    return "\n".join(said)
