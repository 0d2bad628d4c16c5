"""Why a workspace will sleep, and when; why it does not; why it did: a code with data. Pure.

`service` asks it; the sentence is made for the reader by `i18n.idleness`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from codehub.templates.model import ActivityMode
from codehub.workspaces.history import IdleArchive, IdleSleep
from codehub.workspaces.model import Desired, DesiredBy, HistoryEntry, Operation, Phase, Workspace
from codehub.workspaces.ttl_policy import TtlPolicy


class Code(StrEnum):
    OPERATION = "operation"
    SLEEPS_NOW = "sleeps_now"
    SLEEP_REQUESTED = "sleep_requested"
    NEVER = "never"
    CONNECTED_ONCE = "connected_once"
    CONNECTED = "connected"
    KEPT_AWAKE = "kept_awake"
    ACTIVE = "active"
    RUNNING = "running"
    ASKED_FOR = "asked_for"
    TRASH = "trash"
    ERROR = "error"
    RISING = "rising"
    NEW = "new"
    STOPPED = "stopped"
    SLEPT = "slept"
    STORED = "stored"


@dataclass(frozen=True)
class Reason:
    code: Code
    data: Mapping[str, Any] = field(default_factory=dict)


def reason(
    w: Workspace,
    ttl_policy: TtlPolicy,
    seconds: int,
    connections: int,
    sleeps_at: datetime | None,
    last: HistoryEntry | None,
) -> Reason:
    """`seconds`: after which it sleeps; `last`: the newest line of its history about sleeping."""
    if w.phase is not Phase.RUNNING:
        return _why_not_running(w, last)
    if w.operation is not Operation.NONE:
        return Reason(Code.OPERATION, {"operation": w.operation})
    if w.desired_state is not Desired.RUNNING:
        by_timer = w.desired_by is DesiredBy.TTL
        return Reason(Code.SLEEPS_NOW) if by_timer else Reason(Code.SLEEP_REQUESTED, {"by": w.desired_by})
    if seconds == 0:
        return Reason(Code.NEVER)
    if ttl_policy.mode is ActivityMode.CONNECTIONS and connections:
        return Reason(Code.CONNECTED_ONCE if connections == 1 else Code.CONNECTED, {"connections": connections})
    if w.keep_awake_until and sleeps_at == w.keep_awake_until:
        return Reason(Code.KEPT_AWAKE, {"until": w.keep_awake_until.isoformat(), "purpose": w.keep_awake_reason})
    return Reason(_since(w), {"since": w.idle_since.isoformat(), "after": seconds})


def _since(w: Workspace) -> Code:
    if w.idle_since == w.last_access_at and w.last_access_at > w.created_at:
        return Code.ACTIVE
    return Code.RUNNING if w.idle_since == w.phase_changed_at else Code.ASKED_FOR


def _why_not_running(w: Workspace, last: HistoryEntry | None) -> Reason:
    if w.deleted_at:
        return Reason(Code.TRASH)
    if w.phase is Phase.ERROR:
        return Reason(Code.ERROR, {"reason": (w.error_info or {}).get("reason", "other")})
    if w.desired_state is Desired.RUNNING:
        return Reason(Code.RISING)
    if last is None:
        return Reason(Code.NEW)
    at = last.at.isoformat()
    if last.code == IdleSleep.code:
        return Reason(Code.SLEPT, {"at": at, "since": last.data["idle_since"], "after": last.data["seconds"]})
    if last.code == IdleArchive.code:
        return Reason(Code.STORED, {"at": at, "after": last.data["seconds"]})
    return Reason(Code.STOPPED, {"at": at, "actor": last.actor})
