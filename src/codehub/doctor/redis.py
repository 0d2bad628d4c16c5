"""The given Redis: what kind it is, who is primary now, what stands behind it, and what a failover would lose."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster

from codehub.db.redis import FAILURES, Client, Watched, open_redis, require_writes
from codehub.doctor import reasons, rules
from codehub.doctor.model import Finding, fail, ok, warn

NAME = "redis"
ADVICE = "Correct CODEHUB_REDIS_URL, or start that server. Unset it to use the embedded Redis."
Info = Mapping[str, Any]


async def check(url: str) -> Finding:
    if reasons.is_garbled(url):
        return fail(NAME, f"CODEHUB_REDIS_URL {reasons.BAD_URL}", ADVICE)
    try:
        async with asyncio.timeout(reasons.ANSWER_SECONDS), _opened(url) as client:
            return await _judge(client, reasons.where(url))
    except ValueError:
        return fail(NAME, f"CODEHUB_REDIS_URL {reasons.BAD_URL}", ADVICE)
    except FAILURES as e:
        return fail(NAME, f"CODEHUB_REDIS_URL: {reasons.reason(e)} at {reasons.where(url)}", ADVICE)


@contextlib.asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Client]:
    client = open_redis(url)
    try:
        yield client
    finally:
        await client.aclose()


async def _judge(client: Client, where: str) -> Finding:
    if isinstance(client, RedisCluster):
        infos, kind, trouble = await _cluster(client)
    elif isinstance(client, Watched):
        infos, kind, trouble = await _watched(client)
    else:
        infos, kind, trouble = await _one(client), "", []
    version = str(infos[0]["redis_version"])
    shown = f"Valkey {infos[0]['valkey_version']}" if "valkey_version" in infos[0] else f"Redis {version}"
    detail = f"{shown} at {where}{kind}"
    if not all(rules.redis_is_new_enough(str(info["redis_version"])) for info in infos):
        return fail(NAME, f"{detail} is too old", "Use Redis 6.2 or newer, or Valkey.")
    if infos[0].get("role") != "master":
        return fail(NAME, f"{detail} is a replica: it takes no writes", ADVICE)
    await require_writes(client)
    trouble += list(dict.fromkeys(each for info in infos for each in rules.redis_troubles(info)))
    if trouble:
        return warn(NAME, f"{detail}; {'; '.join(trouble)}", "docs/servers.md says what each setting is for.")
    return ok(NAME, detail)


async def _one(client: Redis) -> list[Info]:
    return [cast("Info", await client.info())]


async def _watched(client: Watched) -> tuple[list[Info], str, list[str]]:
    info = (await _one(client))[0]
    seen = await client.ask_sentinels()
    silent = sum(1 for state in seen if state is None)
    known = [state for state in seen if state]
    replicas, quorum = int(info.get("connected_slaves", 0)), max(int(state["quorum"]) for state in known)
    primary = f"{known[0]['ip']}:{known[0]['port']}"
    kind = f" (primary {primary}, {replicas} replica(s), {len(seen)} Sentinel(s), quorum {quorum})"
    trouble = [f"{silent} of {len(seen)} Sentinels do not answer"] if silent else []
    if len({(state["ip"], state["port"]) for state in known}) > 1:
        trouble.append("the Sentinels do not agree who is primary")
    return [info], kind, trouble + rules.replica_troubles(replicas)


async def _cluster(client: RedisCluster) -> tuple[list[Info], str, list[str]]:
    await client.initialize()
    state = cast("Info", await client.cluster_info(target_nodes=client.get_default_node()))
    infos, trouble = list[Info](), list[str]()
    for node in client.get_primaries():
        info = cast("Info", await client.info(target_nodes=node))
        infos.append(info)
        without = rules.replica_troubles(int(info.get("connected_slaves", 0)))
        trouble += [f"{node.name}: {line}" for line in without]
    if state["cluster_state"] != "ok":
        trouble.insert(0, f"the cluster's state is {state['cluster_state']}")
    names = ", ".join(sorted(node.name for node in client.get_primaries()))
    return infos, f" (cluster of {state['cluster_known_nodes']} nodes, primaries {names})", trouble
