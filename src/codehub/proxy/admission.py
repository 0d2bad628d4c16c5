"""How much of the front door one of many may have: connections, and places at the upstreams. Pure.

A holder is a person who is logged in, or an address (`@192.0.2.1`) from which strangers come. No holder has a fixed
share: one may have one more as long as it has less than is still free. So the first gets half of all at most, and
there is room for those who come after it. `crowd` and `upstream` ask.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from codehub.proxy.model import Failure

HEALTH = 16  # places at the API that only health checks get
OURS = 128  # open files that are neither clients nor upstreams: database, Redis, logs
LEAST = 32
BACKLOG = 2048
IPV6_SITE = 64  # bits that a provider gives to one customer


@dataclass(frozen=True)
class Capacity:
    """Of one worker."""

    clients: int  # connections
    upstreams: int  # connections, those that no request uses right now among them
    backlog: int  # not accepted yet; as many may be accepted before we can close one


def capacity(open_files: int) -> Capacity:
    """From the limit of open files: half of them are clients'; an eighth is for what is about to be closed."""
    backlog = max(LEAST, min(BACKLOG, open_files // 8))
    room = max(open_files - OURS - backlog, 2 * LEAST)
    return Capacity(room // 2, room * 3 // 8, backlog)


def holder(address: str) -> str:
    """Of connections from there, as long as no user has logged in on them."""
    if ":" in address:
        site = int(IPv6Address(address.partition("%")[0])) >> IPV6_SITE << IPV6_SITE
        address = str(ip_address(site))
    return f"@{address}"


def is_stranger(who: str) -> bool:
    return who.startswith("@")


def few(most: int) -> int:
    """As long as no more places are taken, no holder can have too many of them, and we need not count."""
    return most // 4


def place_refusal(who: str, held: int, strangers: int, busy: int, most: int) -> Failure | None:
    """May this holder have one more of the places at an upstream? `strangers`: how many they have in all."""
    free = most - busy
    if free <= 0:
        return Failure.FULL
    if is_stranger(who):
        free = min(free, most // 2 - strangers)
        if free <= 0:
            return Failure.FULL
    return None if held < free else Failure.SHARE


def place_refusal_of_worker(held: int, pool: int, busy: int, most: int) -> Failure | None:
    """The same for a worker's upstreams together: neither one of them (`pool` places) nor one holder has them all."""
    free = most - busy
    if free <= 0 or pool >= free:
        return Failure.FULL
    return None if held < free else Failure.SHARE


def slowest(waiting: Sequence[tuple[str, float]], count: int) -> list[int]:
    """Which of these (holder, since when nothing was achieved) make room: of those who have many, the slowest first.

    Every holder's are numbered, the youngest first, which of two at the same moment is the later one; the highest
    numbers go. So the holder that has most loses first, and a newcomer goes last.
    """
    order = sorted(range(len(waiting)), key=lambda n: (waiting[n][1], n), reverse=True)
    seen: dict[str, int] = {}
    ranks = [0] * len(waiting)
    for n in order:
        who = waiting[n][0]
        ranks[n] = seen[who] = seen.get(who, 0) + 1
    return sorted(order, key=lambda n: (-ranks[n], waiting[n][1], n))[:count]
