"""The cluster's network: a bridge in `control` between the nodes, and one interface with one route on this host.

Namespaces belong to the machines' first processes and have no names; what is in one goes with it. Every step looks
first at what is there, so that it can be done again after any interruption.
"""

import ipaddress
import subprocess

from cluster.layout import CONTROL, NODES, Place

BRIDGE = "nodes"
UPLINK = "host"
LINK = "eth0"
PODS = "pods"  # the bridge of a node's pods: made before the first two of them make it at once
SYSCTLS = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.disable_ipv6=1", "net.bridge.bridge-nf-call-iptables=1")
Pids = dict[str, int]  # of the machines' first processes, as this host sees them


def up(place: Place, pids: Pids) -> None:
    for pid in pids.values():
        _in(pid, "ip", "link", "set", "lo", "up")
        _in(pid, "sysctl", "-e", "-q", "-w", *SYSCTLS)
    control = pids[CONTROL]
    if not _exists(control, BRIDGE):
        _in(control, "ip", "link", "add", BRIDGE, "type", "bridge")
    _address(control, BRIDGE, f"{place.address(CONTROL)}/24")
    for node in NODES:
        if node in pids:
            _node(place, node, pids)
    _host(place, control)


def own(pid: int, addresses: str) -> None:
    """Whoever listens on all addresses of that machine listens on these, too."""
    _in(pid, "ip", "route", "replace", "local", addresses, "dev", "lo")


def down(place: Place) -> None:
    """The rest went with the machines."""
    _run("ip", "link", "del", place.interface, check=False)


def cut(pids: Pids, node: str, *, off: bool) -> None:
    """Pull the node's cable, or put it in again: at the other end, as at a switch."""
    _in(pids[CONTROL], "ip", "link", "set", node, "down" if off else "up", check=not off)


def is_cut(pids: Pids, node: str) -> bool:
    seen = _in(pids[CONTROL], "ip", "-o", "link", "show", node, check=False)
    return seen.returncode != 0 or ",UP" not in seen.stdout


def taken_by_others(place: Place) -> str | None:
    """A route of this host into our addresses that is not ours."""
    ours = ipaddress.ip_network(place.all_addresses)
    for line in _run("ip", "-4", "route", "show").stdout.splitlines():
        words = line.split()
        if words[0] == "default" or place.interface in words:
            continue
        if ipaddress.ip_network(words[0], strict=False).overlaps(ours):
            return line
    return None


def _node(place: Place, node: str, pids: Pids) -> None:
    """One way out: also to pods of other nodes it goes by `control`, which knows where they are."""
    control, own = pids[CONTROL], pids[node]
    if not _exists(own, LINK):
        _in(control, "ip", "link", "del", node, check=False)
        _in(control, "ip", "link", "add", node, "type", "veth", "peer", "name", LINK, "netns", str(own))
        _in(control, "ip", "link", "set", node, "master", BRIDGE, "up")
    _in(control, "ip", "route", "replace", place.pods_of(node), "via", place.address(node))
    _address(own, LINK, f"{place.address(node)}/24")
    if not _exists(own, PODS):
        _in(own, "ip", "link", "add", PODS, "type", "bridge")
    _address(own, PODS, place.pods_gateway(node))
    _in(own, "ip", "route", "replace", "default", "via", place.address(CONTROL))


def _host(place: Place, control: int) -> None:
    if not _exists(control, UPLINK):
        down(place)
        _run("ip", "link", "add", place.interface, "type", "veth", "peer", "name", UPLINK, "netns", str(control))
    _address(control, UPLINK, f"{place.uplink_address}/30")
    if f"{place.host_address}/" not in _run("ip", "-4", "addr", "show", "dev", place.interface).stdout:
        _run("ip", "addr", "add", f"{place.host_address}/30", "dev", place.interface)
    _run("ip", "link", "set", place.interface, "up")
    _run("ip", "route", "replace", place.all_addresses, "via", place.uplink_address)


def _exists(pid: int, interface: str) -> bool:
    return _in(pid, "ip", "link", "show", interface, check=False).returncode == 0


def _address(pid: int, interface: str, address: str) -> None:
    if address not in _in(pid, "ip", "-4", "addr", "show", "dev", interface).stdout:
        _in(pid, "ip", "addr", "add", address, "dev", interface)
    _in(pid, "ip", "link", "set", interface, "up")


def _in(pid: int, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return _run("nsenter", f"--net=/proc/{pid}/ns/net", "--", *words, check=check)


def _run(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done
