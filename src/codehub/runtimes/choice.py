"""Which runtime CODEHUB_RUNTIME means. Nothing of one that was not chosen is loaded."""

import os
import pathlib
import socket
from collections.abc import Awaitable, Callable

from codehub.clock import Clock
from codehub.coordinator.leader_doors import Doors, LocalDoors
from codehub.errors import StartError
from codehub.runtimes.base import Address, Logs, Runtime, RuntimeFailureError
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.log_server import LogClient
from codehub.runtimes.process import ProcessRuntime
from codehub.system.privileges import Account

PROCESS, DOCKER, KUBERNETES = "process", "docker", "kubernetes"
ENGINE_SECONDS = 2.0
Where = Callable[[str], Awaitable[Address | None]]  # does a workspace listen
NEEDS_ROOT = "CODEHUB_RUNTIME=docker: needs root, which an account that may use Docker is anyway"


NEEDS_KEY = "CODEHUB_RUNTIME=kubernetes: needs CODEHUB_SECRET_KEY, the same for every process of the platform"


def open_runtime(
    data_dir: pathlib.Path,
    config: RuntimeConfig,
    account: Account | None,
    clock: Clock,
    *,
    secret_keys: str | None = None,
) -> Runtime:
    """`secret_keys`: the platform's, by which it enters pods."""
    if config.runtime == DOCKER:
        if os.geteuid() != 0:
            raise StartError(NEEDS_ROOT)
        from codehub.runtimes.docker.runtime import DockerRuntime  # noqa: PLC0415

        return DockerRuntime(data_dir, config, account, clock)
    if config.runtime == KUBERNETES:
        if not secret_keys:
            raise StartError(NEEDS_KEY)
        from codehub.runtimes.kubernetes.runtime import KubernetesRuntime  # noqa: PLC0415
        from codehub.system.doors import Doors as RelayDoors  # noqa: PLC0415

        return KubernetesRuntime(config, RelayDoors(secret_keys), clock)
    return ProcessRuntime(data_dir, config, account, clock)


def require(config: RuntimeConfig) -> None:
    """What a start would only find out with its first workspace."""
    if config.runtime == KUBERNETES:
        from codehub.runtimes.kubernetes.api import Access  # noqa: PLC0415

        try:
            Access.of(config)
        except RuntimeFailureError as e:
            raise StartError(f"CODEHUB_RUNTIME=kubernetes: {e.detail}") from e
    if config.runtime != DOCKER:
        return
    if os.geteuid() != 0:
        raise StartError(NEEDS_ROOT)
    with socket.socket(socket.AF_UNIX) as engine:
        engine.settimeout(ENGINE_SECONDS)
        try:
            engine.connect(config.docker_socket)
        except OSError as e:
            raise StartError(
                f"CODEHUB_RUNTIME=docker: no Docker engine answers on {config.docker_socket} ({e.strerror or e}). "
                "Install it (on Debian: apt install docker.io), start it, or set CODEHUB_DOCKER_SOCKET"
            ) from e


def open_logs(
    data_dir: pathlib.Path,
    config: RuntimeConfig,
    clock: Clock,
    doors: Doors,
    where: Where,
    secret_keys: str,
) -> Logs:
    """For the API, which may read files of logs, and has no business with an engine."""
    if config.runtime == KUBERNETES:
        from codehub.runtimes.kubernetes.relay_logs import RelayLogs  # noqa: PLC0415
        from codehub.system.doors import Doors as RelayDoors  # noqa: PLC0415

        return RelayLogs(RelayDoors(secret_keys), where)
    if config.runtime == DOCKER or not isinstance(doors, LocalDoors):
        return LogClient(doors)
    return ProcessRuntime(data_dir, config, None, clock)
