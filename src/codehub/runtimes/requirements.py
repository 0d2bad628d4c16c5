"""What the runtime that CODEHUB_RUNTIME means needs of this machine. Asked by `serve` before anything is loaded."""

import os
import socket

from codehub.errors import StartError
from codehub.runtimes.config import RuntimeConfig

PROCESS, DOCKER, KUBERNETES = "process", "docker", "kubernetes"
ENGINE_SECONDS = 2.0
NEEDS_ROOT = "CODEHUB_RUNTIME=docker: needs root, which an account that may use Docker is anyway"


def require(config: RuntimeConfig) -> None:
    """What a start would only find out with its first workspace."""
    if config.runtime == KUBERNETES:
        from codehub.runtimes.base import RuntimeFailureError  # noqa: PLC0415
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
