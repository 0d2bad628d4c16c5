"""Which way out of their own networks workspaces have here, found out by making one. For starts and `doctor`.

Best first: user-mode networking (slirp4netns, pasta), an interface with address translation (veth, as root), and what
is always there: our own HTTP proxy. All but the last carry any protocol over IPv4.
"""

import dataclasses
import ipaddress
import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from codehub import allowlist
from codehub.runtimes import launch
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.network import firewall
from codehub.runtimes.shepherd import own_addresses
from codehub.runtimes.shepherd.spec import (
    HOST_NETWORK,
    NO_NETWORK,
    PASTA,
    RELAY,
    RELAY_PORT,
    SLIRP4NETNS,
    USER_MODE_RESOLVER,
    VETH,
    NetworkSpec,
)
from codehub.templates.model import Network, ProcessSpec

# systemd's own answers on a loopback address; those it asks are in the second file.
RESOLV_CONF = ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")
PROBE_SECONDS = 15
SEARCH = os.defpath + ":/usr/local/bin:/usr/sbin:/sbin:/usr/local/sbin"
PROXY = f"http://127.0.0.1:{RELAY_PORT}"


@dataclass(frozen=True)
class Way:
    kind: str
    reason: str  # what is said of it, and of those that were not to be had
    programs: dict[str, str] = field(default_factory=dict)
    resolvers: tuple[str, ...] = ()


class _Missing(Exception):  # noqa: N818 (never leaves this module)
    """Says why a way is not to be had."""


def find(config: RuntimeConfig) -> Way:
    """The best that works, or the one that is insisted on. Blocks for a moment: it is tried."""
    tries: dict[str, Callable[[], Way]] = {
        SLIRP4NETNS: lambda: _user_mode(SLIRP4NETNS),
        PASTA: lambda: _user_mode(PASTA),
        VETH: _veth,
    }
    reasons = []
    for kind, attempt in tries.items():
        if config.network_via in {"auto", kind}:
            try:
                return attempt()
            except _Missing as e:
                reasons.append(f"{kind}: {e}")
    return Way(RELAY, "; ".join(["through an HTTP proxy", *reasons]))


def of(process: ProcessSpec, config: RuntimeConfig, way: Way) -> NetworkSpec:
    """What this workspace's shepherd is told."""
    mode = mode_of(process, config)
    private = [str(network) for network in config.network_private]
    if mode is Network.HOST:
        return NetworkSpec(HOST_NETWORK)
    if mode is Network.NONE:
        return NetworkSpec(NO_NETWORK)
    if mode is Network.ALLOWLIST:  # by name, which only a proxy sees
        return NetworkSpec(RELAY, allow=[*config.network_allow, *process.allow], private=private)
    if way.kind == RELAY:
        return NetworkSpec(RELAY, private=private)
    return _with_firewall(way, config.network_private)


def mode_of(process: ProcessSpec, config: RuntimeConfig) -> Network:
    return process.network or Network(config.network)


def environment(kind: str) -> dict[str, str]:
    """What programs inside have to know to find their way; curl, pip, npm, git, Node and most others ask for these."""
    if kind != RELAY:
        return {}
    names = ("http_proxy", "https_proxy", "all_proxy")
    proxies = {spelled: PROXY for name in names for spelled in (name, name.upper())}
    local = "localhost,127.0.0.1,::1"
    return {**proxies, "no_proxy": local, "NO_PROXY": local, "NODE_USE_ENV_PROXY": "1"}


def resolv_conf(kind: str, way: Way) -> str | None:
    """Whom programs inside ask for names; None: whom this machine asks."""
    if kind == HOST_NETWORK:
        return None
    if kind == RELAY:
        return "# Names are looked up by the HTTP proxy in $https_proxy.\n"
    return "".join(f"nameserver {resolver}\n" for resolver in way.resolvers) if kind == way.kind else ""


def _with_firewall(way: Way, private: tuple[allowlist.Network, ...] = ()) -> NetworkSpec:
    own = own_addresses.read()
    return NetworkSpec(
        way.kind,
        firewall=firewall.inside(private, way.resolvers, own),
        firewall_outside=firewall.outside() if way.kind == VETH else "",
        own=own,
        programs=way.programs,
    )


def _user_mode(kind: str) -> Way:
    programs = _programs(kind, "nft")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise _Missing("/dev/net/tun cannot be opened")
    return _tried(Way(kind, f"through {kind}", programs, (USER_MODE_RESOLVER,)))


def _veth() -> Way:
    if os.geteuid() != 0:
        raise _Missing("needs root")
    programs = _programs("ip", "nft")
    if pathlib.Path("/proc/sys/net/ipv4/ip_forward").read_text().strip() != "1":
        raise _Missing("this machine forwards nothing (sysctl net.ipv4.ip_forward)")
    rulesets = subprocess.run([programs["nft"], "list", "chains"], capture_output=True, text=True, check=False).stdout
    if forwards_nothing(rulesets):
        raise _Missing("another firewall of this machine drops what is forwarded")
    resolvers = _resolvers()
    if not resolvers:
        raise _Missing("no name server that can be reached from another network")
    return _tried(Way(VETH, "through interfaces with address translation", programs, resolvers))


def forwards_nothing(chains: str) -> bool:
    """Does somebody else's chain drop what it does not know? Docker's does. As `nft list chains` tells it."""
    return any("hook forward" in line and "policy drop" in line for line in chains.splitlines())


def _programs(*names: str) -> dict[str, str]:
    found = {name: shutil.which(name, path=SEARCH) for name in names}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise _Missing(f"{' and '.join(missing)} not installed")
    return {name: path for name, path in found.items() if path}


def _resolvers() -> tuple[str, ...]:
    for name in RESOLV_CONF:
        try:
            lines = pathlib.Path(name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        given = [line.split()[1] for line in lines if line.startswith("nameserver ")]
        usable = tuple(address for address in given if _is_elsewhere(address))
        if usable:
            return usable
    return ()


def _is_elsewhere(text: str) -> bool:
    try:
        return not ipaddress.IPv4Address(text).is_loopback and text not in own_addresses.read()
    except ValueError:
        return False


def _tried(way: Way) -> Way:
    spec = json.dumps(dataclasses.asdict(_with_firewall(way))).encode()
    try:
        done = subprocess.run(
            launch.helper("network"), input=spec, capture_output=True, env={}, timeout=PROBE_SECONDS, cwd="/",
            start_new_session=True, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as e:
        raise _Missing(str(e)) from None
    if done.returncode:
        raise _Missing(done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or "does not work here")
    return way
