"""Opening Redis, the same way everywhere: one server, the one that Sentinels watch, or a Cluster; and its scripts.

On a Cluster the keys that one script or transaction uses must be on one node: `place` gives them what they begin with.
A server that was a primary and is none any more refuses writes (`READONLY`): that connection ends, and the next one
goes to where the primary is now.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import redis.asyncio
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, ReadOnlyError, RedisClusterException, RedisError

from codehub.settings import server_urls
from codehub.settings.server_urls import Kind, RedisUrl

REDIS_SECONDS = 3.0
CONNECT_SECONDS = 1.0  # to one of several: then another one is asked
CLUSTER_TRIES = 2  # more, each after the nodes were asked anew which of them has the key
Client = redis.asyncio.Redis | RedisCluster
# What says "Redis is away". A client for clusters has exceptions of its own beside those of the library.
FAILURES = (RedisError, RedisClusterException, OSError)


class Watched(redis.asyncio.Redis):
    """The primary that Sentinels name. Ends the connections to them with its own."""

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        await super().aclose(close_connection_pool)
        await self._pool.sentinel_manager.aclose()

    async def ask_sentinels(self) -> list[Mapping[str, Any] | None]:
        """What each says of the primary; None: it does not answer, or knows of none by that name."""
        asked = (sentinel.sentinel_masters() for sentinel in self._pool.sentinel_manager.sentinels)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        return [None if isinstance(a, BaseException) else a.get(self._pool.service_name) for a in answers]

    @property
    def _pool(self) -> SentinelConnectionPool:
        return cast("SentinelConnectionPool", self.connection_pool)


def open_redis(url: str) -> Client:
    """Nothing waits for Redis for ever. It connects on first use, and again after an outage or to another primary.

    Raises `ValueError`, with a line that repeats nothing of the URL, where that is wrong.
    """
    found = server_urls.redis(url)
    if found.kind is Kind.SERVER:
        bounds: dict[str, Any] = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS}
        again = Retry(NoBackoff(), 1, (ReadOnlyError,))  # by a new connection: the name may lead elsewhere by now
        return redis.asyncio.Redis.from_url(found.url, **bounds, retry=again)
    told: dict[str, Any] = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": CONNECT_SECONDS}
    told |= parse_url(found.url)
    told["ssl"] = told.pop("connection_class", None) is SSLConnection
    del told["host"], told["port"]
    return _watched(found, told) if found.kind is Kind.SENTINEL else _cluster(found, told)


def _watched(found: RedisUrl, told: dict[str, Any]) -> Client:
    asked = {name: value for name, value in told.items() if name.startswith("ssl")}
    asked |= {"socket_timeout": CONNECT_SECONDS, "socket_connect_timeout": CONNECT_SECONDS}
    asked |= {"username": found.sentinel_username, "password": found.sentinel_password}
    # None is asked twice: the next one knows as well.
    sentinels: Any = Sentinel(  # type: ignore[no-untyped-call]
        found.hosts, sentinel_kwargs={**asked, "retry": Retry(NoBackoff(), 0)}
    )
    client: Watched = sentinels.master_for(found.primary, redis_class=Watched, **told)
    return client


def _cluster(found: RedisUrl, told: dict[str, Any]) -> Client:
    nodes = [ClusterNode(host, port) for host, port in found.hosts]
    told.pop("db", None)
    return RedisCluster(startup_nodes=nodes, retry=Retry(NoBackoff(), CLUSTER_TRIES), **told)


async def require_writes(client: Client) -> None:
    """Raises unless it answers, and takes writes: a replica, or a primary without enough of them, only answers."""
    await client.set(f"{place(client, 'activity')}codehub:checked", "1", ex=60)


def place(client: Client, name: str) -> str:
    """What the keys begin with that are used together; nothing, unless it is a Cluster."""
    return f"{{codehub:{name}}}" if isinstance(client, RedisCluster) else ""


class Script:
    """One atomic step, run by its digest; a Redis that does not know it, or has forgotten it, is sent the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, client: Client, keys: Sequence[str], arguments: Sequence[str | bytes | int]) -> Any:
        words: Any = (len(keys), *keys, *arguments)
        try:
            return await client.evalsha(self._digest, *words)
        except NoScriptError:
            return await client.eval(self._text, *words)
