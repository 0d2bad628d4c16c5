"""An allowlist: the hosts that workspaces may reach where nothing else is. Pure; only the standard library.

Written by operators in the settings and by authors of templates, asked by the egress proxy.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Entry:
    """One line of an allowlist: a name, a name with everything below it, an address or a network; perhaps a port."""

    name: str = ""
    below: bool = False  # `*.example.org`
    network: Network | None = None
    port: int | None = None

    def names(self, host: str, port: int) -> bool:
        if self.port not in {None, port}:
            return False
        if self.network is not None:
            literal = _literal(host)
            return literal is not None and literal in self.network
        return host.endswith(f".{self.name}") if self.below else host == self.name


def is_host(host: str) -> bool:
    """An address, or a name as the resolver takes it: what is judged must be what is looked up, to the last byte."""
    return _literal(host) is not None or (
        len(host) < 254 and all(_is_label(label) for label in normal(host).split("."))
    )


def normal(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def parse(texts: Iterable[str]) -> tuple[Entry, ...]:
    """Entries of an allowlist; raises ValueError with what is wrong with one."""
    return tuple(_entry(text.strip()) for text in texts if text.strip())


def complaint(texts: Iterable[str]) -> str | None:
    """What is wrong with one of these; None when nothing is."""
    try:
        parse(texts)
    except ValueError as e:
        return str(e)
    return None


def _entry(text: str) -> Entry:
    try:
        return Entry(network=ipaddress.ip_network(text.strip("[]"), strict=False))
    except ValueError:
        pass
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = text, ""
    elif not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text}: what follows the colon is not a port")
    number = int(port) if port else None
    if (literal := _literal(host)) is not None:
        return Entry(network=ipaddress.ip_network(literal), port=number)
    below = host.startswith("*.")
    name = normal(host.removeprefix("*."))
    if not all(_is_label(label) for label in name.split(".")):
        raise ValueError(f"{text}: must be a host name, *.name, an address or a network, perhaps with :port")
    return Entry(name, below, port=number)


def _is_label(label: str) -> bool:
    return 0 < len(label) < 64 and all(c.isascii() and (c.isalnum() or c in "-_") for c in label)


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(normal(host))
    except ValueError:
        return None
