"""Idleness in words: why a workspace will sleep, and when; why it does not; why it did. Pure."""

from datetime import datetime

from codehub.templates.model import ActivityMode
from codehub.workspaces.history import IdleArchive, IdleSleep
from codehub.workspaces.model import Desired, DesiredBy, HistoryEntry, Operation, Phase, Workspace
from codehub.workspaces.ttl_policy import Terms


def reason(
    w: Workspace, terms: Terms, seconds: int, connections: int, sleeps_at: datetime | None, last: HistoryEntry | None
) -> str:
    """`seconds`: after which it sleeps; `last`: the newest line of its history about sleeping."""
    if w.phase is not Phase.RUNNING:
        return _why_not_running(w, last)
    if w.operation is not Operation.NONE:
        return f"{w.operation.lower()} is under way"
    if w.desired_state is not Desired.RUNNING:
        who = "nobody was at work" if w.desired_by is DesiredBy.TTL else f"asked for by {w.desired_by}"
        return f"about to sleep: {who}"
    if seconds == 0:
        return "it never sleeps by itself: its time is 0"
    if terms.mode is ActivityMode.CONNECTIONS and connections:
        return f"{connections} {'tab is' if connections == 1 else 'connections are'} open"
    if w.keep_awake_until and sleeps_at == w.keep_awake_until:
        why = f" ({w.keep_awake_reason})" if w.keep_awake_reason else ""
        return f"kept awake until {_time(w.keep_awake_until)}{why}"
    return f"{_since(w)}; it sleeps after {_length(seconds)} without activity"


def _since(w: Workspace) -> str:
    if w.idle_since == w.last_access_at and w.last_access_at > w.created_at:
        return f"last activity at {_time(w.last_access_at)}"
    what = "running" if w.idle_since == w.phase_changed_at else "asked for"
    return f"no activity yet, {what} since {_time(w.idle_since)}"


def _why_not_running(w: Workspace, last: HistoryEntry | None) -> str:
    if w.deleted_at:
        return "it is in the trash"
    if w.phase is Phase.ERROR:
        return f"stopped by an error: {(w.error_info or {}).get('reason', 'unknown')}"
    if w.desired_state is Desired.RUNNING:
        return "it is on its way up"
    if last is None:
        return "it was never started"
    at = _time(last.at)
    if last.code not in {IdleSleep.code, IdleArchive.code}:
        return f"stopped at {at}: asked for by {last.actor}"
    length = _length(last.data["seconds"])
    if last.code == IdleSleep.code:
        idle = _time(datetime.fromisoformat(last.data["idle_since"]))
        return f"put to sleep at {at}: no activity since {idle}, for longer than {length}"
    return f"stored away at {at}: asleep for longer than {length}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _length(seconds: int) -> str:
    """As people say it: 45 s, 30 min, 1 h 30 min, 2 days."""
    minutes, s = divmod(seconds, 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    parts = ((days, "day" if days == 1 else "days"), (h, "h"), (m, "min"), (s, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"
