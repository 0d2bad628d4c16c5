"""Which runtime CODEHUB_RUNTIME means. Nothing of one that was not chosen is loaded."""

import pathlib

from codehub.clock import Clock
from codehub.embedded.datadir import DataDir
from codehub.runtimes.base import Logs, Runtime
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.log_server import LogClient
from codehub.runtimes.process import ProcessRuntime
from codehub.system.privileges import Account

PROCESS, DOCKER = "process", "docker"


def open_runtime(data_dir: pathlib.Path, config: RuntimeConfig, account: Account | None, clock: Clock) -> Runtime:
    if config.runtime == DOCKER:
        from codehub.runtimes.docker.runtime import DockerRuntime  # noqa: PLC0415

        return DockerRuntime(data_dir, config, account, clock)
    return ProcessRuntime(data_dir, config, account, clock)


def open_logs(data_dir: pathlib.Path, config: RuntimeConfig, clock: Clock) -> Logs:
    """For the API, which may read files of logs, and has no business with an engine."""
    if config.runtime == DOCKER:
        return LogClient(DataDir(data_dir).logs_socket)
    return ProcessRuntime(data_dir, config, None, clock)
