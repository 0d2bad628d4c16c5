"""Which runtime CODEHUB_RUNTIME means. Nothing of one that was not chosen is loaded."""

import pathlib

from codehub.clock import Clock
from codehub.runtimes.base import Runtime
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.process import ProcessRuntime
from codehub.system.privileges import Account


def open_runtime(data_dir: pathlib.Path, config: RuntimeConfig, account: Account | None, clock: Clock) -> Runtime:
    if config.runtime == "docker":
        from codehub.runtimes.docker.runtime import DockerRuntime  # noqa: PLC0415

        return DockerRuntime(data_dir, config, account, clock)
    return ProcessRuntime(data_dir, config, account, clock)
