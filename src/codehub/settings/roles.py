"""How the roles find each other when each is on a machine of its own; unset, they meet in one data directory."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from codehub.settings.fields import at_least, setting

LISTEN = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f:.]+|[0-9A-Za-z._-]+):([0-9]{1,5})")


def _listen(value: str | None) -> str | None:
    found = LISTEN.fullmatch(value) if value else None
    if value is None or (found and int(found[2]) <= 65535):
        return None
    return "must be an address of this machine and a port, as 10.1.2.3:8443 or [fd00::3]:8443"


def _api_urls(values: tuple[str, ...]) -> str | None:
    for value in values:
        try:
            parts = urlsplit(value)
            good = parts.scheme == "https" and parts.hostname and parts.port and parts.path in {"", "/"}
        except ValueError:
            good = False
        if not good:
            return f"{value!r} is not like https://codehub-api:8443"
    return None


@dataclass(frozen=True)
class RolesConfig:
    api_urls: tuple[str, ...] = setting(
        "CODEHUB_API_URL",
        (),
        "Where `codehub proxy` finds APIs on other machines, as https://codehub-api:8443, several separated by commas; "
        "unset: in the data directory.",
        check=_api_urls,
    )
    peer_listen: str | None = setting(
        "CODEHUB_PEER_LISTEN",
        None,
        "Address and port where the API listens for proxies on other machines, and the coordinator for APIs, as "
        "10.1.2.3:8443: the address by which they reach it. Both sides prove that they know CODEHUB_SECRET_KEY.",
        check=_listen,
    )
    health_listen: str | None = setting(
        "CODEHUB_HEALTH_LISTEN",
        None,
        "Address and port where each role that runs alone answers /healthz, /readyz and /metrics about itself, as "
        "0.0.0.0:9090; only for probes.",
        check=_listen,
    )
    proxy_workers: int = setting(
        "CODEHUB_PROXY_WORKERS",
        0,
        "Processes of `codehub proxy`; 0 takes one for each core of the machine, of which a container may have fewer.",
        check=at_least(0),
    )
    leave_seconds: float = setting(
        "CODEHUB_LEAVE_SECONDS",
        0.0,
        "Seconds at a stop in which API and proxy say that they are not ready and still take what comes, until load "
        "balancers have noticed; after that, with more than 0, WebSockets end one by one within CODEHUB_DRAIN_SECONDS.",
        check=at_least(0),
    )

    @property
    def apart(self) -> bool:
        """Is this process of a platform whose roles do not share a data directory?"""
        return self.peer_listen is not None


def address_of(listen: str) -> tuple[str, int]:
    """Of what `_listen` has let through."""
    host, _, port = listen.rpartition(":")
    return host.strip("[]"), int(port)
