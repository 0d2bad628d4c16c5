"""Making a backup: one snapshot of the database and the signing key, into one file. Called by `cli` and `maker`."""

import functools
import pathlib
import tempfile
from datetime import datetime

import msgspec

from codehub import __version__
from codehub.backup import archive, homes, store
from codehub.backup.model import SIGNING_KEY, Manifest, Progress, TableRecord, table_member
from codehub.backup.rules import FORMAT
from codehub.db import migrate
from codehub.errors import StartError


async def write(
    url: str,
    target: pathlib.Path,
    *,
    signing_key: str | None,
    now: datetime,
    force: bool,
    meter: Progress,
    files: homes.Files | None = None,
) -> Manifest:
    """Works beside a running platform: the rows are of one moment; people's files are those that the rows speak of."""
    with archive.writing(target, now, force=force) as writer:
        async with store.connect(url) as c, c.transaction(isolation="repeatable_read", readonly=True):
            schema = max(await migrate.applied_versions(c), default=0)
            if schema == 0:
                raise StartError("there is nothing to back up: this database was never used by CodeHub")
            tables = await store.tables(c)
            wanted = await homes.wanted(c) if files and schema >= homes.KEPT_SINCE else homes.Wanted({}, {})
            meter.expect(len(tables) + wanted.things, sum(table.size for table in tables) + wanted.size)
            records = [await _add_table(c, table, writer, target.parent, meter) for table in tables]
            sequences = await store.sequences(c)
        added = homes.Added()
        if files:
            ask_again = functools.partial(_wanted_now, url)
            added = await homes.Adding(files, writer, target.parent, meter, ask_again).all(wanted)
        if signing_key is not None:
            writer.add_bytes(SIGNING_KEY, signing_key.encode())
        manifest = Manifest(
            FORMAT,
            __version__,
            schema,
            now,
            dict(writer.members),
            tuple(records),
            sequences,
            added.homes,
            added.missing_archives,
        )
        writer.add_bytes(archive.MANIFEST, msgspec.json.encode(manifest))
        await writer.to_disk()
    return manifest


async def _wanted_now(url: str) -> homes.Wanted:
    async with store.connect(url) as c:
        return await homes.wanted(c)


async def _add_table(
    c: object, table: store.Table, writer: archive.Writer, folder: pathlib.Path, meter: Progress
) -> TableRecord:
    """By way of a file without a name beside the target: a tar has to know a member's size before its content."""
    meter.begin(table.name, table.size or None)
    with tempfile.TemporaryFile(dir=folder) as spool:

        def keep(data: bytes) -> None:
            spool.write(data)
            meter.count(len(data))

        rows = await store.dump(c, table, keep)
        await writer.adding(table_member(table.name), spool)
    return TableRecord(table.name, table.columns, rows)
