"""This machine's own addresses, without any program: from the kernel's tables of routes."""

import ipaddress
import os
import pathlib
import socket
import struct

TABLE = pathlib.Path("/proc/net/fib_trie")
RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE = 0x10, 0x40
_RTM_NEWROUTE, _RTM_GETROUTE, _NLM_F_REQUEST, _RTA_DST = 24, 26, 1, 1
_RTN_UNICAST = 1


def read() -> list[str]:
    try:
        return parse(TABLE.read_text(encoding="ascii"))
    except OSError:
        return []


def is_own(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Would a packet for it stay on this machine? As the kernel itself says; raises OSError when there is no way to it.

    True also for a second address of an interface, for a network that was made local, and for broadcasts.
    """
    real = getattr(address, "ipv4_mapped", None) or address
    family = socket.AF_INET if real.version == 4 else socket.AF_INET6
    body = struct.pack("=BBBBBBBBI", family, real.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    body += struct.pack("=HH", 4 + len(real.packed), _RTA_DST) + real.packed
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + len(body), _RTM_GETROUTE, _NLM_F_REQUEST, 0, 0) + body)
        answer = kernel.recv(8192)
    if struct.unpack_from("=H", answer, 4)[0] != _RTM_NEWROUTE:
        number = -struct.unpack_from("=i", answer, 16)[0]
        raise OSError(number, os.strerror(number))
    return answer[16 + 7] != _RTN_UNICAST


def parse(table: str) -> list[str]:
    """An address stands on a line of its own; what it is, on those below it. Networks that are local count."""
    found: dict[str, None] = {}
    address = ""
    for line in table.splitlines():
        words = line.split()
        if words[:1] == ["|--"]:
            address = words[1]
        elif words[1:3] == ["host", "LOCAL"] and not address.startswith("127."):
            found[address + words[0].replace("/32", "")] = None
    return list(found)


def changes() -> socket.socket:
    """Readable whenever an address or a route came or went."""
    told = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 0)
    told.bind((0, RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE))
    return told
