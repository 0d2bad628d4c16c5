"""What makes a backup acceptable, in which order tables go, and what one needs and how long it takes. Pure.

The answers to "why was it refused?" are here.
"""

import graphlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from codehub.backup.model import Kept, Manifest, Member, State
from codehub.errors import StartError

FORMAT = 2  # since 2 with people's files
# A database that was just migrated holds rows of these, and is empty all the same: they give way to the backup's.
FILLED_BY_MIGRATIONS = frozenset({"platform", "waiting_events"})

# Left on the disk for the platform itself, whose database lies there too.
RESERVE_BYTES = 512 * 1024 * 1024
SURE = 0.02  # of the work: before, nobody can say how long the rest takes
SURE_SECONDS = 3.0


class BadBackupError(StartError):
    """The file is not what it should be. Nothing was changed."""

    code = "BAD_BACKUP"


class _Head(msgspec.Struct):
    format: int


def parents_first(tables: Iterable[str], references: Iterable[tuple[str, str]]) -> list[str]:
    """Tables in an order that satisfies foreign keys; `references` are (child, parent)."""
    parents: dict[str, set[str]] = {name: set() for name in sorted(tables)}
    for child, parent in references:
        if child != parent and child in parents and parent in parents:
            parents[child].add(parent)
    sorter = graphlib.TopologicalSorter({name: sorted(above) for name, above in parents.items()})
    try:
        return list(sorter.static_order())
    except graphlib.CycleError as e:
        ring = " → ".join(e.args[1])
        raise StartError(f"these tables refer to each other in a ring, so none can be loaded first: {ring}") from None


def read_manifest(content: bytes | None) -> Manifest:
    """The manifest, once it is clear that this CodeHub understands its format."""
    if content is None:
        raise BadBackupError("it has no manifest: this is not a CodeHub backup")
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format > FORMAT:
            raise BadBackupError(
                f"it has backup format {head.format}, this CodeHub knows {FORMAT}: install a newer CodeHub"
            )
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError as e:
        raise BadBackupError(f"its manifest cannot be understood: {e}") from None


def check_members(manifest: Manifest, found: Mapping[str, Member]) -> None:
    """What is in the file is what the manifest says, no more and no less."""
    for name in sorted({*manifest.members, *found}):
        if name not in found:
            raise BadBackupError(f"{name} is missing from it")
        if manifest.members.get(name) != found[name]:
            raise BadBackupError(f"it is damaged: {name} is not what the manifest says")
    for table in manifest.tables:
        if table.member not in found:
            raise BadBackupError(f"{table.member} is missing from it")


def check_schema(manifest: Manifest, newest: int) -> None:
    if manifest.schema > newest:
        raise BadBackupError(
            f"it was made by CodeHub {manifest.codehub} with schema version {manifest.schema}, "
            f"this one knows {newest}: install a newer CodeHub"
        )


def stays_logged_in(backup_keys: str, our_keys: str) -> bool:
    """Do we accept every signature that was good where the backup was made? Keys are separated by commas."""
    theirs, ours = ({key.strip() for key in keys.split(",")} for keys in (backup_keys, our_keys))
    return theirs <= ours


# --- of a backup that a page asked for --------------------------------------------------------------------------------


def needed(database: int, files: int, largest: int) -> int:
    """Bytes on disk, at most: everything, the largest thing once more while it is on its way, and what stays free.

    It is mostly less, since homes are packed; but a full disk would stop the platform, and a refusal does not.
    """
    return database + files + max(largest, database) + RESERVE_BYTES


def part_done(kept: Kept) -> float | None:
    """None: not known yet. By bytes, where anything large is there; else by things."""
    if kept.bytes > 0:
        return min(1.0, kept.bytes_done / kept.bytes)
    return min(1.0, kept.things_done / kept.things) if kept.things else None


def seconds_left(kept: Kept, now: datetime) -> float | None:
    """About, by how long it took so far. None: too early to say."""
    part = part_done(kept)
    if part is None or part < SURE or kept.begun_at is None:
        return None
    taken = (now - kept.begun_at).total_seconds()
    return None if taken < SURE_SECONDS else taken * (1 - part) / part


def too_many(all_of: Sequence[Kept], keep: int) -> list[Kept]:
    """Those that go, the oldest: each is as large as everything."""
    done = sorted((kept for kept in all_of if kept.state is State.DONE), key=lambda kept: kept.asked_at, reverse=True)
    return done[keep:]
