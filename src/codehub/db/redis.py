"""Opening Redis, the same way everywhere."""

import redis.asyncio

REDIS_SECONDS = 3.0


def open_redis(url: str) -> redis.asyncio.Redis:
    """Nothing waits for Redis for ever. It connects on first use and again after an outage."""
    return redis.asyncio.Redis.from_url(url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS)
