"""Where the limits are. Pure: numbers in, level out."""

from collections.abc import Mapping
from typing import Any

from codehub.doctor.model import Level

MIB, GIB = 1024**2, 1024**3
DISK_FAIL_BYTES = 200 * MIB  # a database that cannot write its log stops
DISK_WARN_BYTES = 2 * GIB
DISK_WARN_SHARE = 0.05
OLDEST_POSTGRES = 14
OLDEST_REDIS = (6, 2)


def disk_level(free: int, total: int) -> Level:
    if free < DISK_FAIL_BYTES:
        return Level.FAIL
    if free < DISK_WARN_BYTES or free < total * DISK_WARN_SHARE:
        return Level.WARN
    return Level.OK


def postgres_is_new_enough(version_number: int) -> bool:
    """`server_version_num`: 160004 is 16.4."""
    return version_number // 10000 >= OLDEST_POSTGRES


def redis_is_new_enough(version: str) -> bool:
    """`redis_version`, which Valkey reports too, for compatibility."""
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return parts >= OLDEST_REDIS


def redis_troubles(info: Mapping[str, Any]) -> list[str]:
    """What one server's own `INFO` says that may cost somebody something."""
    found = []
    if info.get("maxmemory") and info.get("maxmemory_policy", "noeviction") != "noeviction":
        found.append(f"maxmemory-policy is {info['maxmemory_policy']}: lines of the waiting room may be thrown away")
    if not int(info.get("aof_enabled", 1)):
        found.append("appendonly is off: a restart forgets the waiting room's lines until people ask again")
    return found


def replica_troubles(replicas: int) -> list[str]:
    return [] if replicas else ["no replica is connected: nothing would take over"]


def standby_trouble(standbys: int, synchronous: int, *, seen: bool) -> str | None:
    """`seen`: our account may read how each is connected."""
    if not standbys:
        return "no standby is connected: nothing would take over"
    if seen and not synchronous:
        return "none is synchronous: a failover may lose what was acknowledged last"
    return None


def size(count: float) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / MIB:.0f} MiB"
