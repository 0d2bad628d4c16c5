"""Why a workspace sleeps or does not, in words: one row for each answer there is."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from codehub.activity import rules
from codehub.i18n import idleness
from codehub.i18n.locales import of_request
from codehub.templates.model import ActivityMode, ActivityProfile
from codehub.workspaces.model import Desired, DesiredBy, Health, HistoryEntry, Observed, Operation, Workspace
from codehub.workspaces.ttl_policy import TtlPolicy
from tests.workspaces.test_rules import NOW, workspace

HOUR = timedelta(hours=1)
AWAKE = replace(workspace(Observed.RUNNING), last_access_at=NOW + HOUR, idle_since=NOW + HOUR)
ASLEEP = workspace(Observed.STANDBY, desired=Desired.STANDBY)


def why(
    w: Workspace,
    *,
    seconds: int = 1800,
    tabs: int = 0,
    by_tabs: bool = False,
    last: HistoryEntry | None = None,
    **known: Any,
) -> str:
    mode = ActivityMode.CONNECTIONS if by_tabs else ActivityMode.TRAFFIC
    ttl_policy = TtlPolicy(mode, ActivityProfile.PLAIN, seconds, 0)
    found = rules.reason(w, ttl_policy, seconds, tabs, known.get("sleeps_at"), last)
    return idleness.sentence(of_request("en"), found.code, found.data)


def entry(actor: str, code: str, **data: Any) -> HistoryEntry:
    return HistoryEntry(1, "w", NOW + HOUR, actor, code, data, "RUNNING", "STANDBY", None)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (why(AWAKE), "last activity at 2026-03-02 10:00:00 UTC; it sleeps after 30 min without activity"),
        (
            why(workspace(Observed.RUNNING), seconds=5400),
            "no activity yet, running since 2026-03-02 09:00:00 UTC; it sleeps after 1 h 30 min without activity",
        ),
        (why(AWAKE, seconds=0), "it never sleeps by itself: its time is 0"),
        (why(AWAKE, tabs=1, by_tabs=True), "1 tab is open"),
        (why(AWAKE, tabs=3, by_tabs=True), "3 connections are open"),
        (why(AWAKE, tabs=3, seconds=172_805).partition("; ")[2], "it sleeps after 2 d 5 s without activity"),
        (
            why(
                replace(AWAKE, keep_awake_until=NOW + 2 * HOUR, keep_awake_reason="training"), sleeps_at=NOW + 2 * HOUR
            ),
            "kept awake until 2026-03-02 11:00:00 UTC (training)",
        ),
        (why(replace(AWAKE, operation=Operation.STOPPING)), "Stopping is under way"),
        (
            why(replace(AWAKE, desired_state=Desired.STANDBY, desired_by=DesiredBy.TTL)),
            "about to sleep: nobody was at work",
        ),
        (why(replace(AWAKE, desired_state=Desired.STANDBY)), "about to sleep: asked for by user"),
        (why(workspace(Observed.STANDBY)), "it is on its way up"),
        (why(ASLEEP), "it was never started"),
        (why(replace(ASLEEP, deleted_at=NOW)), "it is in the trash"),
        (
            why(replace(workspace(Observed.STANDBY, Health.ERROR), error_info={"reason": "DataLost"})),
            "stopped by an error: Its files have vanished from the disk. CodeHub did not remove them.",
        ),
        (why(ASLEEP, last=entry("mina", "sleep_requested")), "stopped at 2026-03-02 10:00:00 UTC: asked for by mina"),
        (
            why(ASLEEP, last=entry("ttl", "idle_sleep", idle_since=NOW.isoformat(), seconds=60)),
            "put to sleep at 2026-03-02 10:00:00 UTC: no activity since 2026-03-02 09:00:00 UTC, for longer than 1 min",
        ),
        (
            why(ASLEEP, last=entry("ttl", "idle_archive", asleep_since=NOW.isoformat(), seconds=60)),
            "stored away at 2026-03-02 10:00:00 UTC: asleep for longer than 1 min",
        ),
    ],
)
def test_idleness_explains_itself(said: str, expected: str) -> None:
    assert said == expected
