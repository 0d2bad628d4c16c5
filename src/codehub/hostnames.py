"""Names of hosts as browsers send them. Used by the gate, which is in every proxy worker, and by the HTTP layer."""

from functools import lru_cache
from ipaddress import ip_address

LOCALHOST = "localhost"


@lru_cache(maxsize=4096)
def split(host: str) -> tuple[str, str]:
    """(`name` in lower case without the dot at its end, `:port` or nothing)"""
    bare, colon, port = host.rpartition(":")
    if not colon or "]" in port:
        bare, port = host, ""
    return bare.lower().rstrip("."), f":{port}" if port else ""


def is_loopback(name: str) -> bool:
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == LOCALHOST
