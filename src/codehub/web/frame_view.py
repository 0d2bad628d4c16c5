"""What the bar above an IDE says, and what lies over the IDE while it does not run. For `frame`."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from starlette.requests import Request

from codehub.gate.access import Visit
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import dashboard_view, presentation
from codehub.workspaces.model import Operation, Phase, Workspace

WARN = timedelta(minutes=2)  # before it sleeps


class Cover(StrEnum):
    """What lies over an IDE that cannot be worked in; a part of the texts' keys."""

    FALLING = "falling"
    ASLEEP = "asleep"
    RISING = "rising"
    STORED = "stored"
    WRONG = "wrong"


def is_open(w: Workspace) -> bool:
    """Can one work in it now?"""
    return w.phase is Phase.RUNNING and w.operation is not Operation.STOPPING


def cover(w: Workspace) -> Cover | None:
    if is_open(w):
        return None
    if w.operation in presentation.FALLING:
        return Cover.FALLING
    if presentation.is_rising(w):
        return Cover.RISING
    if w.phase is Phase.STANDBY:
        return Cover.ASLEEP
    return Cover.WRONG if w.phase is Phase.ERROR else Cover.STORED


def warns(w: Workspace, sleeps_at: datetime | None, now: datetime) -> bool:
    """Is it about to sleep, with nobody having said otherwise?"""
    kept = w.keep_awake_until is not None and w.keep_awake_until > now
    return sleeps_at is not None and not kept and is_open(w) and sleeps_at - now <= WARN


def shown(request: Request, caller: Principal, visit: Visit) -> dict[str, Any]:
    reader, w = dashboard_view.Reader(request, caller), visit.workspace
    sleeps_at = reader.services.ttl_policies.sleeps_at(w)
    return {
        "card": reader.card(w),
        "cover": cover(w),
        "warns": warns(w, sleeps_at, reader.now),
        "keeps_awake": policy.allows(caller, Action.WORKSPACE_KEEP_AWAKE, visit.resource),
        "shares": policy.allows(caller, Action.WORKSPACE_SHARE, visit.resource),
        "details": policy.allows(caller, Action.WORKSPACE_HISTORY, visit.resource),
    }
