"""Can workspaces run as containers here? Asks the Docker engine itself. Loaded only where CODEHUB_RUNTIME=docker."""

import os
from typing import Any

from codehub.doctor.model import Finding, fail, ok, warn
from codehub.runtimes.base import RuntimeFailureError
from codehub.runtimes.docker import networks
from codehub.runtimes.docker.engine import Engine
from codehub.settings import Settings
from codehub.templates.loader import Templates

ENGINE, IMAGES, NETWORK = "docker engine", "images", "network"
# What limits and walls rest on, as the engine says that it has it.
NEEDED = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "cores"}


async def engine(settings: Settings) -> Finding:
    if os.geteuid() != 0:
        return fail(ENGINE, "needs root", "Run codehub as root, which an account that may use Docker is anyway.")
    try:
        info: dict[str, Any] = await Engine(settings.runtime.docker_socket).call("GET", "/info")
    except RuntimeFailureError as e:
        return fail(ENGINE, e.detail, "Install Docker (on Debian: apt install docker.io), or start it.")
    missing = [what for name, what in NEEDED.items() if not info.get(name)]
    if not any("seccomp" in option for option in info.get("SecurityOptions") or []):
        missing.append("system calls (seccomp)")
    detail = f"{info.get('ServerVersion')} on {settings.runtime.docker_socket}, files in {info.get('DockerRootDir')}"
    if missing:
        return warn(ENGINE, f"{detail}; it does not limit {', '.join(missing)}", "Use a kernel that has them.")
    if not info.get("InitBinary"):
        return warn(ENGINE, f"{detail}; it has no docker-init", "Install tini: workspaces do not start without it.")
    return ok(ENGINE, detail)


async def images(settings: Settings) -> Finding:
    """The platform's own has to be there; of the templates', one."""
    asked = Engine(settings.runtime.docker_socket)
    loaded = Templates.load(settings.runtime.templates_dir, settings.storage.data_dir, settings.runtime.runtime)
    wanted = {t.name: t.container.image for t in loaded.all() if t.container}
    own = settings.runtime.platform_image
    try:
        there = {image for image in {own, *wanted.values()} if await _has(asked, image)}
    except RuntimeFailureError as e:
        return fail(IMAGES, e.detail, "See the Docker engine above.")
    if own not in there:
        return fail(IMAGES, f"there is no image {own}", "Build it with `make images`, or set CODEHUB_PLATFORM_IMAGE.")
    missing = [f"{name} ({image})" for name, image in wanted.items() if image not in there]
    if missing:
        return warn(IMAGES, f"not there: {', '.join(missing)}", "Build or pull them: their workspaces do not start.")
    return ok(IMAGES, f"{own}, {', '.join(wanted)}")


async def network(settings: Settings) -> Finding:
    if settings.runtime.network == networks.NONE:
        return ok(NETWORK, "none")
    if settings.runtime.network != "internet":
        advice = "Set CODEHUB_NETWORK to none, or to internet with a CODEHUB_DOCKER_NETWORK."
        return fail(NETWORK, f"containers cannot have {settings.runtime.network}", advice)
    complaint = await networks.trouble_with(settings.runtime, Engine(settings.runtime.docker_socket))
    if complaint:
        return fail(NETWORK, complaint, "Until then only templates with network = none start; see docs/docker.md.")
    return ok(NETWORK, f"internet, by {settings.runtime.docker_network}, with its firewall")


async def _has(asked: Engine, image: str) -> bool:
    return await asked.call("GET", f"/images/{image}/json", missing=True) is not None
