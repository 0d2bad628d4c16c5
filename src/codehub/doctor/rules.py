"""Where the limits are. Pure: numbers in, level out."""

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


def size(count: float) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / MIB:.0f} MiB"
