"""What the bar above an IDE says, and what lies over the IDE while it does not run. For `frame`."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from codehub.gate.access import Visit
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import dashboard_view, presentation
from codehub.workspaces.model import DesiredBy, Operation, Phase, Workspace

SESSION = re.compile(r"[a-z0-9-]{1,63}")
NUMBER = re.compile(r"[0-9]{1,15}")
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
    """Is it about to sleep? Also where it was kept awake until then."""
    return sleeps_at is not None and is_open(w) and sleeps_at - now <= WARN


def _session(query: Mapping[str, str]) -> dict[str, str]:
    """The run of a session that the workspace was opened for, as its page's address says it."""
    shapes = {"session": SESSION, "run": SESSION, "fence": NUMBER}
    found = {name: query.get(name, "") for name in shapes}
    return found if all(shape.fullmatch(found[name]) for name, shape in shapes.items()) else {}


def panel(query: Mapping[str, str]) -> str:
    """The address of what is shown beside the IDE: a session's page, which says itself who may see it."""
    found = _session(query)
    if not found:
        return ""
    return f"/sessions/{found['session']}?{urlencode({'run': found['run'], 'fence': found['fence']})}"


def kept(query: Mapping[str, str]) -> str:
    """What an address of this page keeps when it is asked for again."""
    found = _session(query)
    return f"?{urlencode(found)}" if found else ""


def shown(request: Request, caller: Principal, visit: Visit) -> dict[str, Any]:
    reader, w = dashboard_view.Reader(request, caller), visit.workspace
    sleeps_at = reader.services.ttl_policies.sleeps_at(w)
    return {
        "card": reader.card(w),
        "cover": cover(w),
        "warns": warns(w, sleeps_at, reader.now),
        "idle": cover(w) is Cover.ASLEEP and w.desired_by is DesiredBy.TTL,
        "keeps_awake": policy.allows(caller, Action.WORKSPACE_KEEP_AWAKE, visit.resource),
        "shares": policy.allows(caller, Action.WORKSPACE_SHARE, visit.resource),
        "details": policy.allows(caller, Action.WORKSPACE_HISTORY, visit.resource),
    }
