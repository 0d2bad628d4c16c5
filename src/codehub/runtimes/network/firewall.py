"""The rules as text for `nft`, loaded inside a workspace's network before it has a way out. Pure.

Nothing inside has the rights to change it: the network belongs to a user namespace that the workspace is not root of.
Only IPv4 goes out by these ways; a machine's own IPv6 addresses change too often to be kept out by a list.
"""

from collections.abc import Iterable

from codehub.allowlist import Network
from codehub.runtimes.network import rules

TABLE = "codehub"
OWN = "own"  # the set that holds this machine's own addresses
VETH = "codehub"  # what our interfaces' names begin with, on the machine's side
POOL = "100.127.0.0/16"  # where the two ends of our interfaces get their addresses from


def inside(private: Iterable[Network], resolvers: Iterable[str], own: Iterable[str]) -> str:
    """For a workspace's own network: first what is open, then what is closed, then the rest of the world."""
    opened = [str(network) for network in private if network.version == 4]
    closed = [str(network) for network in rules.PRIVATE if network.version == 4]
    never = [str(network) for network in rules.NEVER if network.version == 4]
    servers = list(resolvers)
    lines = [
        'oifname "lo" accept',
        "meta nfproto ipv6 reject with icmpx admin-prohibited",
        *(f"ip daddr {{ {', '.join(servers)} }} {kind} dport 53 accept" for kind in ("udp", "tcp") if servers),
        f"ip daddr {{ {', '.join(never)} }} reject with icmpx admin-prohibited",
        f"ip daddr @{OWN} reject with icmpx admin-prohibited",
        *([f"ip daddr {{ {', '.join(opened)} }} accept"] if opened else []),
        f"ip daddr {{ {', '.join(closed)} }} reject with icmpx admin-prohibited",
    ]
    rows = "\n    ".join(lines)
    return (
        f"table inet {TABLE} {{\n"
        f"  set {OWN} {{ type ipv4_addr\n    flags interval\n    auto-merge\n{_elements(own)}  }}\n"
        f"  chain output {{\n    type filter hook output priority 0; policy accept;\n    {rows}\n  }}\n"
        "  chain input {\n    type filter hook input priority 0; policy drop;\n"
        '    iifname "lo" accept\n    ct state established,related accept\n  }\n'
        "}\n"
    )


def more_own(own: Iterable[str]) -> str:
    """This machine got another address while the workspace runs."""
    return "".join(f"add element inet {TABLE} {OWN} {{ {address} }}\n" for address in own)


def outside() -> str:
    """For the machine itself, when workspaces go out by interfaces: none reaches it or another, none is reached.

    Only packets of our own interfaces are judged; the machine's own rules stay as they are.
    """
    return (
        f"table inet {TABLE}\ndelete table inet {TABLE}\n"
        f"table inet {TABLE} {{\n"
        f'  chain input {{\n    type filter hook input priority -10;\n    iifname "{VETH}*" drop\n  }}\n'
        "  chain forward {\n    type filter hook forward priority -10;\n"
        f'    iifname "{VETH}*" oifname "{VETH}*" drop\n'
        f'    iifname "{VETH}*" meta nfproto ipv6 drop\n'
        f'    iifname "{VETH}*" ip saddr != {POOL} drop\n'
        f'    oifname "{VETH}*" ct state established,related accept\n'
        f'    oifname "{VETH}*" drop\n  }}\n'
        "  chain postrouting {\n    type nat hook postrouting priority 100;\n"
        f'    ip saddr {POOL} oifname != "{VETH}*" masquerade\n  }}\n'
        "}\n"
    )


def _elements(own: Iterable[str]) -> str:
    found = ", ".join(dict.fromkeys(own))
    return f"    elements = {{ {found} }}\n" if found else ""
