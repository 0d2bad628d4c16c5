"""What must hold: in every state, at every step of a timer, and where it comes to rest."""

from dataclasses import dataclass

from codehub.workspaces.model import Health, Observed, Operation, Workspace
from model.machine import Order
from model.world import EMPTY, World

LOST = "lost"  # what was lost, and accepted as lost
P, S, R, D = Observed.PENDING, Observed.STANDBY, Observed.RUNNING, Observed.DELETED
OP = Operation

# The seed's table of states and operations, with the deletions that the specification adds to it.
COMBINATIONS = {
    *((P, Health.OK, op) for op in (OP.NONE, OP.PROVISIONING, OP.RESTORING, OP.DELETING)),
    *((S, Health.OK, op) for op in (OP.NONE, OP.STARTING, OP.ARCHIVING, OP.DELETING)),
    *((R, Health.OK, op) for op in (OP.NONE, OP.STOPPING)),
    (D, Health.OK, OP.NONE),
    *((o, Health.ERROR, op) for o in (P, S, R) for op in (OP.NONE, OP.DELETING)),
    (D, Health.ERROR, OP.NONE),
}


@dataclass(frozen=True)
class Violation:
    problem: str
    trace: list[str]


def is_kept(row: Workspace, there: World, work: str) -> bool:
    """Is the person's work in a volume, also a parked one, or in the verified archive that the row names?"""
    versions = {v.version for v in (there.volume, there.parked) if v} | {there.holds(row.archive_key)}
    return work in versions


def always(row: Workspace, there: World, order: Order | None, work: str) -> str | None:
    if work not in {EMPTY, LOST} and not row.purge and not is_kept(row, there, work):
        return "the person's work is in no volume and in no archive that the row names"
    if there.container and there.volume is None:
        return "a container without its volume"
    combination = (row.observed_status, row.health_status, row.operation)
    if combination not in COMBINATIONS:
        return f"a combination that does not exist: {', '.join(combination)}"
    if row.operation is OP.RESTORING and row.archive_key is None:
        return "RESTORING without an archive"
    if row.operation is OP.PROVISIONING and row.archive_key is not None and not row.volume_parked:
        return "PROVISIONING although there is an archive"
    if order and (row.operation, row.op_id) != (order.operation, order.op_id):
        return "two operations at once: the leader works at one that is no longer the row's"
    return None


def without_faults(row: Workspace) -> str | None:
    """While nothing has gone wrong, nothing is called wrong."""
    return f"an error, although nothing went wrong: {row.error_info}" if row.health_status is Health.ERROR else None


def at_rest(row: Workspace, there: World, work: str) -> str | None:
    """What must be true where nothing more happens by itself."""
    if row.operation is not OP.NONE:
        return "it rests in the middle of something"
    if row.health_status is Health.ERROR and row.observed_status is not D:
        return None  # until somebody recovers it, or deletes it
    ours = there.volume and there.volume.generation == row.volume_generation
    seen = R if there.container else S if ours else P
    if row.deleted_at is not None:
        if row.observed_status is not D or seen is not P:
            return f"deleted, and it rests as {row.observed_status}, with {seen}"
        return None
    if row.observed_status is not seen:
        return f"it rests as {row.observed_status}, and what there is is {seen}"
    if row.observed_status.level != row.desired_state.level:
        return f"it rests as {row.observed_status}, and {row.desired_state} is wanted"
    if work != LOST and seen is not P and there.volume and there.volume.version != work:
        return f"a silent older copy: the home holds {there.volume.version}, the person made {work}"
    in_trash = there.parked if there.parked and row.volume_parked else None
    back = in_trash.version if in_trash else there.holds(row.archive_key)
    if work not in {LOST, EMPTY} and seen is P and back != work:
        return f"a silent older copy: what would come back is {back}, the person made {work}"
    return None


def describe_row(row: Workspace) -> str:
    desired = "purged" if row.purge else "deleted" if row.deleted_at else row.desired_state
    health = f" ERROR {(row.error_info or {}).get('reason')}" if row.health_status is Health.ERROR else ""
    under_way = f" {row.operation} {row.op_id}" if row.operation is not OP.NONE else f" (after {row.op_id})"
    due = "rests" if row.attention_at is None else "waits" if row.attention_at > row.updated_at else "is due"
    parked = " parked" if row.volume_parked else ""
    return (
        f"row: {row.observed_status}{health}{under_way}, wanted {desired} by {row.desired_by}, {due}; "
        f"archive {row.archive_key}, generation {row.volume_generation}{parked}"
    )


def describe_world(there: World, work: str) -> str:
    things = ["a container"] if there.container else []
    for where, volume in (("volume", there.volume), ("parked", there.parked)):
        if volume:
            marker = f" from {volume.restored_from}" if volume.restored_from else ""
            things.append(f"{where} {volume.generation} holds {volume.version}{marker}")
    things += [f"unpacked {directory}: {version}" for directory, version in there.staged]
    things += [f"{a.key}: data {a.data}, meta {a.meta}" for a in there.archives]
    return f"there: {'; '.join(things) or 'nothing'}. The person's work: {work}"
