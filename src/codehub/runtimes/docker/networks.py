"""Which of the engine's networks a workspace gets. What cannot be kept is refused at the start, not found out later."""

import asyncio
from asyncio.subprocess import DEVNULL

from codehub.runtimes.base import IsolationUnavailableError, Workload
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.docker import bodies
from codehub.runtimes.docker.engine import Engine, path
from codehub.templates.model import Network

NONE = "none"
BETWEEN_CONTAINERS = "com.docker.network.bridge.enable_icc"
BRIDGE = "com.docker.network.bridge.name"
SCRIPT = "scripts/docker-network"


async def of(workload: Workload, config: RuntimeConfig, engine: Engine) -> str:
    wanted = bodies.spec_of(workload).network or Network(config.network)
    if wanted is Network.NONE:
        return NONE
    if wanted is not Network.INTERNET:
        raise IsolationUnavailableError(
            f"a container cannot have network = {wanted.value}: ask your admin to set CODEHUB_NETWORK, or `network` in "
            "the template's [container], to none or internet"
        )
    if complaint := await trouble_with(config, engine):
        raise IsolationUnavailableError(f"{complaint}. Ask your admin")
    return config.docker_network


async def trouble_with(config: RuntimeConfig, engine: Engine) -> str | None:
    """Why workspaces cannot have `network = internet` here; also for `doctor`."""
    if not config.docker_network:
        return (
            "network = internet needs a network of the Docker engine for workspaces (CODEHUB_DOCKER_NETWORK); without "
            "one, only network = none can be kept"
        )
    found = await engine.call("GET", path("networks", config.docker_network), missing=True)
    if found is None:
        return f"the Docker engine has no network {config.docker_network} (CODEHUB_DOCKER_NETWORK)"
    if found.get("Driver") != "bridge" or found.get("Name") in {"bridge", "host", NONE}:
        return f"{config.docker_network} is not a bridge network that was made for workspaces (CODEHUB_DOCKER_NETWORK)"
    if (found.get("Options") or {}).get(BETWEEN_CONTAINERS) != "false":
        return f"containers in {config.docker_network} reach each other: make it with -o {BETWEEN_CONTAINERS}=false"
    bridge = found["Options"].get(BRIDGE) or f"br-{found['Id'][:12]}"
    if not await _is_closed(bridge):
        return f"there is no firewall around {config.docker_network}: {SCRIPT}, run as root, makes it (docs/docker.md)"
    return None


def firewall(bridge: str) -> list[list[str]]:
    """Of the rules that the script makes, the doors. They are gone when the machine has started anew; networks stay."""
    return [
        ["INPUT", "-i", bridge, "-j", "DROP"],
        ["DOCKER-USER", "-i", bridge, "-j", "CODEHUB"],
        ["CODEHUB", "-d", "169.254.0.0/16", "-j", "DROP"],
    ]


async def _is_closed(bridge: str) -> bool:
    for rule in firewall(bridge):
        try:
            asked = await asyncio.create_subprocess_exec(
                "iptables", "--wait", "-C", *rule, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
            )
        except OSError:
            return False
        if await asked.wait():
            return False
    return True
