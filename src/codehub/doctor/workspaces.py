"""Can workspaces run here, apart from each other, and from which templates? Asks the runtime itself."""

import pathlib
import tempfile

from codehub.clock import SystemClock
from codehub.doctor import machine, rules
from codehub.doctor.model import Finding, fail, ok, warn
from codehub.doctor.threads import in_thread
from codehub.errors import SettingsError
from codehub.runtimes import limits
from codehub.runtimes.base import StartFailedError
from codehub.runtimes.network import ways
from codehub.runtimes.process import ProcessRuntime
from codehub.runtimes.shepherd.spec import RELAY
from codehub.settings import Settings
from codehub.system.privileges import service_account
from codehub.templates.loader import Templates
from codehub.templates.model import Network


async def isolation(settings: Settings) -> Finding:
    account = service_account(settings.server.user)
    with tempfile.TemporaryDirectory(prefix="codehub-doctor-") as nothing:  # to look, and leave no trace
        runtime = ProcessRuntime(pathlib.Path(nothing), settings.runtime, account, SystemClock())
        found = await runtime.isolation()
    if found.kind is None:
        who = "only admins" if settings.runtime.isolation == "auto" else "no user"
        advice = (
            f"Install bubblewrap, or allow user namespaces; until then {who} can start workspaces. "
            "CODEHUB_ISOLATION=none lets every user, and every user can then read everything."
        )
        return fail("isolation", found.reason, advice)
    if settings.runtime.isolation == "none":
        return warn("isolation", "switched off: workspaces can read each other", "Unset CODEHUB_ISOLATION.")
    return ok("isolation", found.reason)


async def network(settings: Settings) -> Finding:
    """How workspaces go out of networks of their own, and what would give them more."""
    if settings.runtime.network == "host":
        whose = "all users'" if settings.runtime.network_host_for == "everybody" else "admins'"
        return warn(
            "network",
            f"CODEHUB_NETWORK=host: {whose} workspaces reach what listens on this machine's loopback, and each other",
            "Unset CODEHUB_NETWORK; where workspaces need hosts of your own network, list it in "
            "CODEHUB_NETWORK_PRIVATE.",
        )
    way = await in_thread(lambda: ways.find(settings.runtime))
    if way.kind != RELAY or settings.runtime.network_via == RELAY or settings.runtime.network in {"allowlist", "none"}:
        return ok("network", f"{settings.runtime.network}, {way.reason}")
    advice = "Install nftables and slirp4netns (or passt) for programs that use no HTTP proxy: ssh, databases."
    return warn("network", f"{settings.runtime.network}, {way.reason}", advice)


def shares(settings: Settings) -> Finding:
    """What a workspace may take, and whether anything may start at all."""
    config, place = settings.runtime, machine.existing(settings.storage.data_dir)
    try:
        limits.require_space(config, place)
    except StartFailedError as e:
        return fail("shares", e.detail, "Until there is room, no workspace starts.")
    if not config.disk_reserve_mb:
        return warn("shares", "no reserve of the disk: workspaces can fill it", "Unset CODEHUB_DISK_RESERVE_MB.")
    kept = limits.reserve(config, place)[0]
    allowed = f"{config.memory_mb} MB of memory, {config.cpus:g} cores, {config.disk_mb} MB of disk (0: any)"
    return ok("shares", f"a workspace may take {allowed}; {rules.size(kept)} of the disk are kept for the platform")


def templates(settings: Settings) -> Finding:
    try:
        loaded = Templates.load(settings.runtime.templates_dir, settings.storage.data_dir, settings.runtime.runtime)
    except SettingsError as e:
        return fail("templates", e.detail, "Correct the file.")
    missing = [f"{t.name} ({reason})" for t in loaded.all() if (reason := loaded.unavailable(t.name))]
    exposed = [t.name for t in loaded.all() if t.process and t.process.network is Network.HOST]
    usable = [t.name for t in loaded.all() if loaded.unavailable(t.name) is None]
    if not usable:
        return fail("templates", f"none can be started: {'; '.join(missing)}", "Install one of them.")
    if exposed:
        return warn(
            "templates",
            f"in this machine's own network: {', '.join(exposed)}",
            "Their workspaces reach what listens on its loopback; take `network` out of the template.",
        )
    left_out = f"; not available: {'; '.join(missing)}" if missing else ""
    return ok("templates", ", ".join(usable) + left_out)
