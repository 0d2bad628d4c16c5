"""What nobody needs any more, and why. Pure; `gc` asks for everything it finds, once coarsely and once under the lock.

The rule is turned around on purpose: whatever is not certainly useless is kept, with the reason for keeping it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from codehub import ids
from codehub.archives.model import DATA_NAME, META_SUFFIX
from codehub.runtimes.base import DiskItem
from codehub.workspaces.model import Health, Observed, Operation
from codehub.workspaces.rules import made_by


@dataclass(frozen=True)
class Facts:
    """Of a workspace, as far as it matters here."""

    id: str
    archive_key: str | None
    restore_from: str | None
    volume_generation: str | None
    op_id: str | None
    operation: Operation
    health_status: Health
    observed_status: Observed
    deleted_at: datetime | None
    purge: bool

    @property
    def destroyed(self) -> bool:
        """Purged, and the controller is done with it."""
        settled = self.observed_status is Observed.DELETED and self.operation is Operation.NONE
        return self.purge and self.deleted_at is not None and settled


@dataclass(frozen=True)
class Points:
    """A workspace's restore points: key → place (1 is the newest), and the operations that made them."""

    places: Mapping[str, int] = field(default_factory=dict)
    operations: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Stored:
    """What lies below one base in the object store: an archive, or what was to become one."""

    base: str
    names: frozenset[str]
    bytes: int

    @property
    def workspace_id(self) -> str:
        return self.base.split("/")[0]

    @property
    def op_id(self) -> str:
        return self.base.split("/")[1]

    @property
    def key(self) -> str:
        return f"{self.base}/{DATA_NAME}"

    @property
    def committed(self) -> bool:
        return {DATA_NAME, DATA_NAME + META_SUFFIX} <= self.names


class Rule(StrEnum):
    """Why something is kept or goes; sentences are in `i18n`."""

    NO_WORKSPACE = "no_workspace"
    WORKSPACE_PURGED = "workspace_purged"
    WORKSPACE_DELETED = "workspace_deleted"
    UNFINISHED = "unfinished"
    DUPLICATE = "duplicate"
    NEWER_POINTS = "newer_points"
    RESTORE_GIVEN_UP = "restore_given_up"
    LATE_LEADER = "late_leader"
    IN_USE = "in_use"
    LAST_OPERATION = "last_operation"
    IN_ERROR = "in_error"
    UNLISTED_POINT = "unlisted_point"
    RECENT_POINT = "recent_point"
    HOME = "home"
    CONTROLLED = "controlled"


@dataclass(frozen=True)
class Verdict:
    """An orphan goes, after its time; anything else stays. `adopt`: it should be among the restore points."""

    orphan: bool
    rule: Rule
    adopt: bool = False


def keep(rule: Rule) -> Verdict:
    return Verdict(False, rule)


def orphan(rule: Rule) -> Verdict:
    return Verdict(True, rule)


def base_of(key: str) -> tuple[str, str] | None:
    """(base, name) of an object of ours; None for what somebody else has put there, which is none of our business."""
    parts = key.split("/")
    ours = len(parts) == 4 and ids.is_label(parts[0]) and ids.is_label(parts[1]) and parts[2].isdigit()
    return ("/".join(parts[:3]), parts[3]) if ours and parts[3].startswith(DATA_NAME) else None


def judge_archive(stored: Stored, w: Facts | None, points: Points, keep_points: int) -> Verdict:
    if w is None:
        return orphan(Rule.NO_WORKSPACE)
    if w.destroyed:
        return orphan(Rule.WORKSPACE_PURGED)
    if stored.key in {w.archive_key, w.restore_from}:
        return keep(Rule.IN_USE)
    if stored.op_id == w.op_id:
        return keep(Rule.LAST_OPERATION)
    if w.health_status is Health.ERROR:
        return keep(Rule.IN_ERROR)
    if not stored.committed:
        return orphan(Rule.UNFINISHED)
    place = points.places.get(stored.key)
    if place is None and stored.op_id in points.operations:
        return orphan(Rule.DUPLICATE)
    if place is None:
        return Verdict(False, Rule.UNLISTED_POINT, adopt=True)
    if place <= keep_points:
        return keep(Rule.RECENT_POINT)
    return orphan(Rule.NEWER_POINTS)


def judge_disk_item(item: DiskItem, w: Facts | None) -> Verdict:
    if w is None:
        return orphan(Rule.NO_WORKSPACE)
    if w.destroyed:
        return orphan(Rule.WORKSPACE_PURGED)
    if item.generation in {w.volume_generation, ""}:
        return keep(Rule.HOME)
    if w.operation is not Operation.NONE or w.health_status is Health.ERROR or made_by(w.op_id, item.generation):
        return keep(Rule.LAST_OPERATION)
    if item.kind == "unpacked":
        return orphan(Rule.RESTORE_GIVEN_UP)
    return orphan(Rule.LATE_LEADER)


def judge_container(w: Facts | None) -> Verdict:
    if w is None:
        return orphan(Rule.NO_WORKSPACE)
    if w.observed_status is Observed.DELETED and w.deleted_at is not None and w.operation is Operation.NONE:
        return orphan(Rule.WORKSPACE_DELETED)
    return keep(Rule.CONTROLLED)
