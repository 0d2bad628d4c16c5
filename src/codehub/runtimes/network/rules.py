"""Who may be reached from inside a workspace. Pure; asked by the egress proxy for every connection it makes.

`firewall` says the same in the firewall's words, from the same lists. Imported by helper processes: only the standard
library.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codehub.allowlist import Address, Entry, Network, normal


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, text.split()))


# Nobody's business from inside, whatever an operator lists: this machine, its link, everybody at once.
NEVER = _networks(
    "0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 224.0.0.0/4 240.0.0.0/4 ::/128 ::1/128 fe80::/10 fec0::/10 ff00::/8"
)
# Closed unless listed: other people's own networks, among them metadata services and what providers use inside.
PRIVATE = _networks(
    "10.0.0.0/8 100.64.0.0/10 172.16.0.0/12 192.0.0.0/24 192.168.0.0/16 198.18.0.0/15 fc00::/7 64:ff9b:1::/48 100::/64"
)
# IPv6 addresses that are IPv4 addresses in disguise, and where in them those begin (in bits from the right).
DISGUISED = tuple(
    (ipaddress.IPv6Network(network), shift)
    for network, shift in (("::ffff:0:0/96", 0), ("::/96", 0), ("64:ff9b::/96", 0), ("2002::/16", 80))
)
TEREDO = ipaddress.IPv6Network("2001::/32")


@dataclass(frozen=True)
class Rules:
    allow: tuple[Entry, ...] | None = None  # None: everything outside
    private: tuple[Network, ...] = ()  # private networks that are open all the same

    def refuses_host(self, host: str, port: int) -> str | None:
        """Why this name or literal may not even be looked up; None when it may."""
        if self.allow is None or any(entry.names(normal(host), port) for entry in self.allow):
            return None
        return "this workspace reaches only the hosts that are listed for it"

    def refuses_address(self, address: Address) -> str | None:
        """Why a connection to it is not made; None when it is. The machine's own addresses are `own`'s business."""
        real = undisguised(address)
        if _within(real, NEVER):
            return "it belongs to this machine or its link"
        listed = (entry.network for entry in self.allow or () if entry.network)
        if _within(real, PRIVATE) and not _within(real, (*self.private, *listed)):
            return "it is in a private network"
        return None


def undisguised(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in TEREDO:
        return ipaddress.IPv4Address(~int(address) & 0xFFFFFFFF)
    for network, shift in DISGUISED:
        if address in network and int(address) > 1:
            return ipaddress.IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    return address


def networks(texts: Sequence[str]) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, texts))


def _within(address: Address, networks_: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks_)
