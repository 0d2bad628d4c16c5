"""This machine's own IPv4 addresses, without any program: from the kernel's table of routes."""

import pathlib
import socket

TABLE = pathlib.Path("/proc/net/fib_trie")
RTMGRP_IPV4_IFADDR = 0x10


def read() -> list[str]:
    try:
        return parse(TABLE.read_text(encoding="ascii"))
    except OSError:
        return []


def parse(table: str) -> list[str]:
    """An address stands on a line of its own; what it is, on those below it."""
    found: dict[str, None] = {}
    address = ""
    for line in table.splitlines():
        words = line.split()
        if words[:1] == ["|--"]:
            address = words[1]
        elif words[:3] == ["/32", "host", "LOCAL"] and not address.startswith("127."):
            found[address] = None
    return list(found)


def changes() -> socket.socket:
    """Readable whenever an address came or went."""
    told = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 0)
    told.bind((0, RTMGRP_IPV4_IFADDR))
    return told
