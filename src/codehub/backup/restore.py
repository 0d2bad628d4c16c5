"""Restoring: check the file, load everything in one transaction, read it back and compare. Called by `cli`."""

import pathlib
from collections.abc import Sequence
from typing import Any

from codehub.backup import archive, homes, rules, store
from codehub.backup.archive import Hashing
from codehub.backup.model import SIGNING_KEY, Manifest, Progress, TableRecord
from codehub.backup.rules import BadBackupError
from codehub.db import migrate
from codehub.errors import StartError


class NotEmptyError(StartError):
    code = "NOT_EMPTY"


def check(file: pathlib.Path, meter: Progress) -> Manifest:
    """Is this a backup that we can restore? Reads all of it and touches nothing."""
    meter.begin("checking", file.stat().st_size if file.is_file() else None)
    try:
        manifest = archive.verify(file, meter.count)
        rules.check_schema(manifest, migrate.available()[-1].version)
    except OSError as e:
        raise StartError(f"cannot read {file}: {e.strerror or e}") from e
    except BadBackupError as e:
        raise BadBackupError(f"{file} cannot be restored: {e.detail}") from None
    return manifest


async def load(
    url: str,
    file: pathlib.Path,
    manifest: Manifest,
    *,
    replace: bool,
    meter: Progress,
    files: homes.Files | None = None,
) -> None:
    """All of it or nothing: until every table is compared and every file is there, the database is as it was."""
    async with store.connect(url) as c:
        await c.execute("SELECT pg_advisory_lock($1)", migrate.LOCK_KEY)
        async with c.transaction():
            await _make_room(c, manifest, replace=replace)
            await migrate.advance(c, up_to=manifest.schema)
            present = await store.tables(c)
            await store.empty(c, present)  # of what the migrations put there
            tables = _matching(manifest, present)
            await _fill(c, file, manifest, tables, meter)
            await _prove(c, manifest, tables, meter)
            if files:
                await homes.bring_back(file, manifest, files, meter, force=replace)
    await migrate.migrate(url)
    async with store.connect(url) as c:
        await c.execute(store.sql.rename_platform)
        await c.execute(store.sql.forget_nodes)


def signing_key(file: pathlib.Path) -> str | None:
    for name, content in archive.members(file):
        if name == SIGNING_KEY:
            return content.read().decode()
    return None


async def _make_room(c: Any, manifest: Manifest, *, replace: bool) -> None:
    if others := await c.fetchval(store.sql.company):
        raise StartError(f"CodeHub is using this database ({others} connections): stop it first, on every machine")
    applied = await migrate.applied_versions(c)
    migrate.pending(migrate.available(), applied, exactly=True)  # refuses a database that is newer than we are
    present = await store.tables(c)
    await store.lock(c, present)
    filled = [name for name in await store.with_rows(c, present) if name not in rules.FILLED_BY_MIGRATIONS]
    if filled and not replace:
        raise NotEmptyError(
            f"the database is not empty: there are rows in {', '.join(filled)}. "
            "Nothing was changed. To lose them for what is in the backup, add --replace"
        )
    if max(applied, default=0) > manifest.schema:
        await store.start_over(c)
    else:
        await store.empty(c, present)


def _matching(manifest: Manifest, present: Sequence[store.Table]) -> dict[str, store.Table]:
    """Member name → where it goes."""
    places = {table.name: table for table in present}
    for record in manifest.tables:
        if record.name not in places or places[record.name].columns != record.columns:
            raise StartError(
                f"the table {record.name} of the backup does not fit schema version {manifest.schema} of this CodeHub"
            )
    return {record.member: places[record.name] for record in manifest.tables}


async def _fill(
    c: Any, file: pathlib.Path, manifest: Manifest, tables: dict[str, store.Table], meter: Progress
) -> None:
    meter.begin("loading", sum(manifest.members[member].bytes for member in tables))
    for name, content in archive.members(file):
        if name in tables:
            await store.load(c, tables[name], Hashing(content, meter.count))
    known = await store.sequences(c)
    for name, following in manifest.sequences.items():
        if name in known:
            await store.set_sequence(c, name, following)


async def _prove(c: Any, manifest: Manifest, tables: dict[str, store.Table], meter: Progress) -> None:
    """Read every table as the backup did: the same rows give the same bytes."""
    meter.begin("comparing", sum(manifest.members[member].bytes for member in tables))
    for record in manifest.tables:
        await _prove_table(c, record, manifest, tables[record.member], meter)


async def _prove_table(c: Any, record: TableRecord, manifest: Manifest, table: store.Table, meter: Progress) -> None:
    hashing = Hashing(_Nowhere(), meter.count)
    rows = await store.dump(c, table, hashing.write)
    if rows != record.rows or hashing.member() != manifest.members[record.member]:
        raise StartError(
            f"{record.name} came back differently: {rows} rows, the backup has {record.rows}. Nothing was changed"
        )


class _Nowhere:
    def read(self, _size: int = -1, /) -> bytes:
        return b""

    def write(self, _data: bytes, /) -> None:
        pass
