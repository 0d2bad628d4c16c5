"""Which runtime CODEHUB_RUNTIME means. Nothing of one that was not chosen is loaded."""

import os
import pathlib
import socket

from codehub.clock import Clock
from codehub.coordinator.leader_doors import LocalDoors
from codehub.embedded.datadir import DataDir
from codehub.errors import StartError
from codehub.runtimes.base import Logs, Runtime
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.log_server import LogClient
from codehub.runtimes.process import ProcessRuntime
from codehub.system.privileges import Account

PROCESS, DOCKER = "process", "docker"
ENGINE_SECONDS = 2.0
NEEDS_ROOT = "CODEHUB_RUNTIME=docker: needs root, which an account that may use Docker is anyway"


def open_runtime(data_dir: pathlib.Path, config: RuntimeConfig, account: Account | None, clock: Clock) -> Runtime:
    if config.runtime == DOCKER:
        if os.geteuid() != 0:
            raise StartError(NEEDS_ROOT)
        from codehub.runtimes.docker.runtime import DockerRuntime  # noqa: PLC0415

        return DockerRuntime(data_dir, config, account, clock)
    return ProcessRuntime(data_dir, config, account, clock)


def require(config: RuntimeConfig) -> None:
    """What a start would only find out with its first workspace."""
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


def open_logs(data_dir: pathlib.Path, config: RuntimeConfig, clock: Clock) -> Logs:
    """For the API, which may read files of logs, and has no business with an engine."""
    if config.runtime == DOCKER:
        return LogClient(LocalDoors(DataDir(data_dir)))
    return ProcessRuntime(data_dir, config, None, clock)
