"""Which runtime CODEHUB_RUNTIME means. Nothing of one that was not chosen is loaded."""

import os
import pathlib
from collections.abc import Awaitable, Callable

from codehub.clock import Clock
from codehub.coordinator.leader_doors import Doors, LocalDoors
from codehub.errors import StartError
from codehub.runtimes.base import Address, Logs, Runtime
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.log_server import LogClient
from codehub.runtimes.process import ProcessRuntime
from codehub.runtimes.requirements import DOCKER, KUBERNETES, NEEDS_ROOT
from codehub.system.privileges import Account

Where = Callable[[str], Awaitable[Address | None]]  # does a workspace listen
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

        return RelayLogs(RelayDoors(secret_keys), where, clock)
    if config.runtime == DOCKER or not isinstance(doors, LocalDoors):
        return LogClient(doors)
    return ProcessRuntime(data_dir, config, None, clock)
