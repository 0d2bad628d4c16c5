"""PostgreSQL and Redis: the given ones answer and are new enough; the embedded ones could be started."""

import asyncio
from typing import Any

import asyncpg

from codehub.db import migrate
from codehub.db.connecting import connect
from codehub.doctor import account, reasons, redis, rules
from codehub.doctor.model import Finding, fail, ok, warn
from codehub.doctor.threads import in_thread
from codehub.embedded import postgres, postgres_leftovers
from codehub.embedded import redis as embedded_redis
from codehub.embedded.datadir import DataDir
from codehub.errors import StartError
from codehub.invocation import command
from codehub.settings import Settings

STANDBYS = """
SELECT host(inet_server_addr()) AS address, inet_server_port() AS port, count(*) AS standbys,
    count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS synchronous, count(*) = count(state) AS seen
FROM pg_stat_replication
"""


async def database(settings: Settings) -> Finding:
    url = settings.storage.database_url
    if url is None:
        return await _embedded_database(settings)
    return await _given_database(url, "CODEHUB_DATABASE_URL")


async def _given_database(url: str, name: str) -> Finding:
    advice = f"Correct {name}, or start that server. Unset it to use the embedded PostgreSQL."
    if reasons.is_garbled(url):
        return fail("database", f"{name} {reasons.BAD_URL}", advice)
    try:
        async with asyncio.timeout(reasons.ANSWER_SECONDS):
            connection = await connect(url, timeout=reasons.ANSWER_SECONDS)
            try:
                return await _judge_database(connection, reasons.where(url), several="," in reasons.where(url))
            finally:
                connection.terminate()
    except StartError as e:
        return fail("database", e.detail, "Install a CodeHub at least as new as the one that used this database.")
    except ValueError:  # says what it could not parse, which may be a part of the password
        return fail("database", f"{name} {reasons.BAD_URL}", advice)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as e:
        return fail("database", f"{name}: {reasons.reason(e)} at {reasons.where(url)}", advice)


async def _judge_database(connection: Any, where: str, *, several: bool) -> Finding:
    number = int(await connection.fetchval("SHOW server_version_num"))
    version = f"PostgreSQL {number // 10000}.{number % 10000}"
    if not rules.postgres_is_new_enough(number):
        advice = f"Use PostgreSQL {rules.OLDEST_POSTGRES} or newer."
        return fail("database", f"{version} at {where} is too old", advice)
    if todo := migrate.pending(migrate.available(), await migrate.applied_versions(connection)):
        return fail("database", f"{version} at {where} lacks {len(todo)} migration(s)", f"Run: {command('migrate')}")
    if not several:
        return ok("database", f"{version} at {where}, up to date")
    return await _judge_standbys(connection, f"{version} at {where}, up to date")


async def _judge_standbys(connection: Any, detail: str) -> Finding:
    """Of a database with several hosts: who is primary, and would a failover lose what was acknowledged?"""
    row = await connection.fetchrow(STANDBYS)
    address = f"{row['address']}:{row['port']}" if row["address"] else "a local socket"
    detail = f"{detail} (primary {address}, {row['standbys']} standby(s), {row['synchronous']} of them synchronous)"
    if trouble := rules.standby_trouble(row["standbys"], row["synchronous"], seen=row["seen"]):
        return warn("database", f"{detail}; {trouble}", "docs/servers.md says how to set synchronous_standby_names.")
    return ok("database", detail)


async def _embedded_database(settings: Settings) -> Finding:
    try:
        program = postgres.binaries() / "postgres"
        who, view = account.account_and_view(settings)
    except StartError as e:
        return fail("database", e.detail, "Set CODEHUB_DATABASE_URL, or correct this.")
    result = await account.run_as(who, view, str(program), "--version")
    if result.code != 0:
        reason = f"the embedded PostgreSQL cannot be run{f' by {who.name}' if who else ''}: {result.last_line}"
        return fail("database", reason, "Set CODEHUB_DATABASE_URL, or install CodeHub where every account can read it.")
    return await _cluster(DataDir(settings.storage.data_dir), result.output.strip().rpartition(" ")[2])


async def _cluster(data: DataDir, version: str) -> Finding:
    """The cluster is not started for this; a running one is asked."""
    try:
        made_by = await in_thread((data.root / "postgres" / "PG_VERSION").read_text)
    except FileNotFoundError:
        return ok("database", f"embedded PostgreSQL {version}, set up at the first start")
    except OSError as e:
        reason = f"the cluster below {data.root}: {e.strerror}"
        return fail("database", reason, "Run this as the user that runs CodeHub.")
    if made_by.strip() != version.partition(".")[0]:
        return fail(
            "database",
            f"the cluster was made by PostgreSQL {made_by.strip()}, this CodeHub brings {version}",
            "Make a backup with the CodeHub that made it, and restore it with this one.",
        )
    if not await _runs(data):
        return ok("database", f"embedded PostgreSQL {version}, not running now")
    return await _given_database(data.database_url, "the embedded PostgreSQL")


async def _runs(data: DataDir) -> bool:
    return await in_thread(
        lambda: postgres_leftovers.postmaster(data) is not None and (data.secrets / "postgres").exists()
    )


async def database_to_ask(settings: Settings) -> str | None:
    """Where the rows are, for checks that read some; None while the embedded server does not run."""
    if settings.storage.database_url is not None:
        return settings.storage.database_url
    data = DataDir(settings.storage.data_dir)
    return data.database_url if await _runs(data) else None


async def redis_server(settings: Settings) -> Finding:
    url = settings.storage.redis_url
    return await _embedded_redis(settings) if url is None else await redis.check(url)


async def _embedded_redis(settings: Settings) -> Finding:
    try:
        program = embedded_redis.binary()
        who, view = account.account_and_view(settings)
    except StartError as e:
        return fail("redis", e.detail, "Set CODEHUB_REDIS_URL, or correct this.")
    result = await account.run_as(who, view, str(program), "--version")
    if result.code != 0:
        reason = f"the embedded Redis cannot be run{f' by {who.name}' if who else ''}: {result.last_line}"
        return fail("redis", reason, "Set CODEHUB_REDIS_URL, or install CodeHub where every account can read it.")
    return ok("redis", f"embedded: {result.output.strip().split(' sha=')[0]}")
