"""Which runtime, and the settings of those that run images: a part of `RuntimeConfig`."""

from dataclasses import dataclass

from codehub.settings.fields import one_of, setting


def _absolute(path: str) -> str | None:
    return None if path.startswith("/") else "must be the path of a Unix socket, as /var/run/docker.sock"


@dataclass(frozen=True)
class ContainerConfig:
    runtime: str = setting(
        "CODEHUB_RUNTIME",
        "process",
        "What runs workspaces: process (on this machine), docker (containers of this machine's Docker engine), "
        "kubernetes (pods of a cluster).",
        check=one_of("process", "docker", "kubernetes"),
    )
    docker_socket: str = setting(
        "CODEHUB_DOCKER_SOCKET",
        "/var/run/docker.sock",
        "The Docker engine of this machine, for CODEHUB_RUNTIME=docker.",
        check=_absolute,
    )
    docker_network: str = setting(
        "CODEHUB_DOCKER_NETWORK",
        "",
        "The engine's network for workspaces with `network = internet`; they are refused without one. Its containers "
        "must not reach each other (enable_icc=false), and keeping them from this machine is its firewall's part.",
    )
    platform_image: str = setting(
        "CODEHUB_PLATFORM_IMAGE",
        "codehub/platform",
        "The image of this platform, made by `make images`: from it run the relay beside each workspace and what packs "
        "and unpacks homes.",
    )
