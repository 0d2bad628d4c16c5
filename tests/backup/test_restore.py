"""What comes back is what was there, to the last byte; and until it is proven, nothing has changed."""

import asyncio
import contextlib
import json
import pathlib
import resource
import signal
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from codehub.backup import archive, restore, store
from codehub.backup.progress import Meter
from codehub.backup.restore import NotEmptyError
from codehub.db import Database, migrate
from codehub.db.migrate import Migration
from codehub.errors import StartError
from tests.backup.conftest import KEY, add_people, back_up, bring_back, people
from tests.platform import CODEHUB, clean_environment

NASTY = ["tab\there", "line\nbreak", "back\\slash \\N \\.", "한국어 ✓ 🙂", "", "'quotes' \"double\"", "\r\n", "{a,b}"]
NEWER = Migration(
    9000,
    "nickname",
    "ALTER TABLE users ADD COLUMN nickname text NOT NULL DEFAULT ''; CREATE TYPE mood AS ENUM ('happy')",
)


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def test_fifty_thousand_rows_with_awkward_text_come_back_as_they_were(
    database_url: str, empty_url: str, file: pathlib.Path
) -> None:
    async with connected(database_url) as c:
        await c.executemany(
            "INSERT INTO audit_log (at, actor, code, subject, data, request_id) VALUES (now(), $1, $2, $3, $4, $5)",
            [
                (NASTY[i % len(NASTY)], "a", str(i), json.dumps({"text": NASTY[i % len(NASTY)], "n": i / 7}), None)
                for i in range(50_000)
            ],
        )
        before = await c.fetch("SELECT * FROM audit_log ORDER BY id")
    made = await back_up(database_url, file)
    assert {table.name: table.rows for table in made.tables}["audit_log"] == 50_000
    await bring_back(empty_url, file)
    async with connected(empty_url) as c:
        assert await c.fetch("SELECT * FROM audit_log ORDER BY id") == before


async def test_numbers_given_out_are_not_given_out_again(database_url: str, empty_url: str, file: pathlib.Path) -> None:
    """Also those of rows that were deleted since, and also when the restored platform is backed up untouched."""
    add = "INSERT INTO audit_log (at, actor, code, subject, data) VALUES (now(), 'a', 'b', 'c', '{}') RETURNING id"
    async with connected(database_url) as c:
        last = [await c.fetchval(add) for _ in range(5)][-1]
        await c.execute("DELETE FROM audit_log WHERE id > 2")
    await back_up(database_url, file)
    await bring_back(empty_url, file)
    again = await back_up(empty_url, file, force=True)
    assert again.sequences["audit_log_id_seq"] == last + 1
    async with connected(empty_url) as c:
        assert await c.fetchval(add) == last + 1


async def test_every_table_is_kept_but_those_that_only_mean_something_here(
    database_url: str, empty_url: str, file: pathlib.Path
) -> None:
    """Also one that nobody told the backup about, in the order that its references ask for."""
    async with connected(database_url) as c:
        await c.execute("CREATE TABLE a_child (id int PRIMARY KEY, user_id text REFERENCES users)")
        in_database = {row["tablename"] for row in await c.fetch("SELECT * FROM pg_tables WHERE schemaname = 'public'")}
    made = await back_up(database_url, file)
    order = [table.name for table in made.tables]
    assert set(order) == in_database - set(store.NOT_KEPT)
    assert order.index("users") < order.index("a_child")
    with pytest.raises(StartError, match="a_child of the backup does not fit schema version"):
        await bring_back(empty_url, file)


async def test_generated_columns_are_computed_again(database_url: str, empty_url: str, file: pathlib.Path) -> None:
    extra = "ALTER TABLE users ADD COLUMN shout text GENERATED ALWAYS AS (upper(name)) STORED"
    await add_people(database_url, "mina")
    for url in (database_url, empty_url):
        await migrate.migrate(url)
        async with connected(url) as c:
            await c.execute(extra)
    made = await back_up(database_url, file)
    assert "shout" not in next(table for table in made.tables if table.name == "users").columns
    await bring_back(empty_url, file)
    async with connected(empty_url) as c:
        assert await c.fetchval("SELECT shout FROM users") == "MINA"


async def test_a_backup_is_of_one_moment(database_url: str, file: pathlib.Path) -> None:
    """Writers go on meanwhile; a person and what refers to them are in it together or not at all."""
    begun, done = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        async with connected(database_url) as c:
            for number in range(100_000):
                if done.is_set():
                    return
                async with c.transaction():
                    name = f"person-{number}"
                    add = "INSERT INTO users (name, role, created_at) VALUES ($1, 'learner', now()) RETURNING id"
                    id_ = await c.fetchval(add, name)
                    await c.execute("DELETE FROM login_links")
                    await c.execute(
                        "INSERT INTO login_links (token_hash, user_id, created_at, expires_at) "
                        "VALUES (sha256($1::bytea), $2, now(), now())",
                        *(name.encode(), id_),
                    )
                begun.set()

    writer = asyncio.create_task(write())
    await asyncio.wait_for(begun.wait(), 60)
    for _ in range(5):
        await back_up(database_url, file, force=True)
        await asyncio.sleep(0.05)
        counts = {table.name: table.rows for table in restore.check(file, Meter()).tables}
        assert counts["users"] > 0
        assert counts["login_links"] == 1
        content = {name: stream.read() for name, stream in archive.members(file)}
        newest = content["tables/login_links.copy"].split(b"\t")[-1].strip()
        assert newest in content["tables/users.copy"]
    done.set()
    await writer


async def test_a_database_with_rows_is_refused_and_keeps_them(database_url: str, file: pathlib.Path) -> None:
    await add_people(database_url, "mina")
    await back_up(database_url, file)
    await add_people(database_url, "late")
    with pytest.raises(NotEmptyError, match=r"users.*--replace"):
        await bring_back(database_url, file)
    assert await people(database_url) == ["late", "mina"]


async def test_replace_puts_the_backup_in_the_place_of_what_was_there(database_url: str, file: pathlib.Path) -> None:
    await add_people(database_url, "mina", "joon")
    await back_up(database_url, file)
    await add_people(database_url, "late")
    await bring_back(database_url, file, replace=True)
    assert await people(database_url) == ["joon", "mina"]


async def test_a_database_that_codehub_uses_is_refused(
    database_url: str, database: Database, file: pathlib.Path
) -> None:
    await back_up(database_url, file)
    with pytest.raises(StartError, match="stop it first"):
        await bring_back(database_url, file, replace=True)


async def test_rows_that_come_back_differently_undo_the_restore(database_url: str, file: pathlib.Path) -> None:
    await add_people(database_url, "mina")
    await back_up(database_url, file)
    await add_people(database_url, "late")
    async with connected(database_url) as c:  # a table that rounds what it is given
        await c.execute("ALTER TABLE users ALTER COLUMN created_at TYPE timestamptz(0)")
    with pytest.raises(StartError, match=r"users came back differently.*Nothing was changed"):
        await bring_back(database_url, file, replace=True)
    assert await people(database_url) == ["late", "mina"]


async def test_triggers_do_not_take_restored_rows_for_news(database_url: str, file: pathlib.Path) -> None:
    async with connected(database_url) as c:
        await c.execute("CREATE TABLE news (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)")
        await c.execute(
            "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN INSERT INTO news (name) VALUES (new.name); RETURN NULL; END $$"
        )
        await c.execute("CREATE TRIGGER tell AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION tell()")
    await add_people(database_url, "mina")
    await back_up(database_url, file)
    await bring_back(database_url, file, replace=True)
    await add_people(database_url, "late")
    async with connected(database_url) as c:
        assert await c.fetch("SELECT id, name FROM news ORDER BY id") == [(1, "mina"), (2, "late")]


async def test_a_restore_killed_before_its_end_has_changed_nothing(database_url: str, file: pathlib.Path) -> None:
    await add_people(database_url, "mina")
    await back_up(database_url, file)
    await add_people(database_url, "late")
    async with connected(database_url) as c:
        holding = c.transaction()
        await holding.start()
        # Holds the sequence: the restore has emptied and loaded every table when it comes to wait here.
        await c.execute("SELECT nextval('audit_log_id_seq')")
        process = start("restore", "--replace", str(file), CODEHUB_DATABASE_URL=database_url)
        await until_it_waits(database_url)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        await holding.rollback()
    assert await people(database_url) == ["late", "mina"]


@pytest.mark.parametrize("interrupts", [signal.SIG_DFL, signal.SIG_IGN], ids=["alone", "in a script's background"])
async def test_a_backup_told_to_stop_leaves_nothing_behind(
    database_url: str, file: pathlib.Path, interrupts: signal.Handlers
) -> None:
    """Shells let programs in the background of a script ignore Ctrl-C, which is the terminal's and not theirs."""
    async with connected(database_url) as c, c.transaction():
        await c.execute("LOCK TABLE users")
        before = signal.signal(signal.SIGINT, interrupts)
        try:
            process = start("backup", str(file), CODEHUB_DATABASE_URL=database_url)
        finally:
            signal.signal(signal.SIGINT, before)
        await until_it_waits(database_url)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "")
    assert list(file.parent.iterdir()) == []


async def test_a_backup_that_outgrows_its_bounds_is_one_line_and_leaves_nothing(
    database_url: str, file: pathlib.Path
) -> None:
    """A limit on the size of files stands for the end of the disk: the write fails at the same place."""
    async with connected(database_url) as c:
        await c.execute(
            "INSERT INTO audit_log (at, actor, code, subject, data) "
            "SELECT now(), 'a', 'b', repeat('c', 100), '{}' FROM generate_series(1, 20000)"
        )
    process = start("backup", str(file), limit=1_000_000, CODEHUB_DATABASE_URL=database_url)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors == f"codehub: cannot write {file}: File too large\n"
    assert list(file.parent.iterdir()) == []


def start(*arguments: str, limit: int = resource.RLIM_INFINITY, **env: str) -> "subprocess.Popen[str]":
    """With a Redis that is named but not needed, so that no server is started. `limit` bounds the files it writes."""
    environment = clean_environment(CODEHUB_REDIS_URL="redis://127.0.0.1:1", CODEHUB_SECRET_KEY=KEY, **env)
    process = subprocess.Popen(
        [*CODEHUB, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
    return process


async def until_it_waits(url: str) -> None:
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE application_name = 'codehub-backup' AND wait_event_type = 'Lock' AND datname = current_database()"
    )
    async with asyncio.timeout(30), connected(url) as c:
        while not await c.fetchval(waiting):
            await asyncio.sleep(0.02)


@pytest.fixture
def upgraded(monkeypatch: pytest.MonkeyPatch) -> list[Migration]:
    """A CodeHub with one more migration than the one that made the backup."""
    known = [*migrate.available(), NEWER]
    monkeypatch.setattr(migrate, "available", lambda: known)
    return known


@pytest.mark.parametrize("used_before", [False, True])
async def test_a_backup_of_an_older_schema_is_brought_up_to_date(
    database_url: str,
    empty_url: str,
    file: pathlib.Path,
    used_before: bool,
    request: pytest.FixtureRequest,
) -> None:
    """Into a new database, and into one that the newer CodeHub has already set up and used."""
    await add_people(database_url, "mina")
    made = await back_up(database_url, file)
    known = request.getfixturevalue("upgraded")
    if used_before:
        await migrate.migrate(empty_url)
        await add_people(empty_url, "late")
    await bring_back(empty_url, file, replace=used_before)
    async with connected(empty_url) as c:
        assert await c.fetch("SELECT name, nickname FROM users") == [("mina", "")]
        assert sorted(await migrate.applied_versions(c)) == [m.version for m in known]
    assert made.schema < NEWER.version


async def test_a_backup_of_the_first_schema_there_was_still_comes_back(
    database_url: str, empty_url: str, file: pathlib.Path
) -> None:
    await migrate.migrate(empty_url, up_to=1)
    await add_people(empty_url, "mina")
    assert (await back_up(empty_url, file)).schema == 1
    await bring_back(database_url, file)
    assert await people(database_url) == ["mina"]
    async with connected(database_url) as c:
        await migrate.require_current(c)


async def test_a_newer_database_is_as_it_was_when_restoring_an_older_backup_fails(
    database_url: str, empty_url: str, file: pathlib.Path, request: pytest.FixtureRequest
) -> None:
    async with connected(database_url) as c:
        await c.execute("CREATE TABLE unknown (id int PRIMARY KEY)")
    await back_up(database_url, file)
    request.getfixturevalue("upgraded")
    await migrate.migrate(empty_url)
    await add_people(empty_url, "late")
    with pytest.raises(StartError, match="unknown of the backup does not fit"):
        await bring_back(empty_url, file, replace=True)
    assert await people(empty_url) == ["late"]


async def test_a_database_that_codehub_never_used_has_nothing_to_back_up(empty_url: str, file: pathlib.Path) -> None:
    with pytest.raises(StartError, match="nothing to back up"):
        await back_up(empty_url, file)
    assert list(file.parent.iterdir()) == []


async def test_a_ring_of_references_is_refused_when_the_backup_is_made(database_url: str, file: pathlib.Path) -> None:
    async with connected(database_url) as c:
        await c.execute("CREATE TABLE hen (id int PRIMARY KEY, egg int)")
        await c.execute("CREATE TABLE egg (id int PRIMARY KEY, hen int REFERENCES hen)")
        await c.execute("ALTER TABLE hen ADD FOREIGN KEY (egg) REFERENCES egg")
    with pytest.raises(StartError, match="ring"):
        await back_up(database_url, file)
