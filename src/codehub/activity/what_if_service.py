"""What another time to sleep would have done, from history. For the API and the operator's page.

It reads at most `MOST_LINES` of history and says since when; reckoning is done in a thread, beside the requests.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.activity import what_if, what_if_past
from codehub.activity.what_if import Figures
from codehub.activity.what_if_past import Window
from codehub.clock import Clock
from codehub.db import Database
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.workspaces import idle_history
from codehub.workspaces.ttl_policy import TtlPolicies

MOST_LINES = 200_000
MOST_DAYS = 14  # idle periods are kept for a little longer
MOST_SECONDS = 30 * 86400


@dataclass(frozen=True)
class Answer:
    standby_seconds: int
    archive_seconds: int
    since: datetime
    until: datetime
    cut: bool  # more happened than is read
    known_since: datetime  # from when on idle periods are known
    workspaces: int  # that live by the platform's times
    others: int  # that have times of their own, or live by connections
    did: Figures
    would: Figures

    @property
    def is_exact(self) -> bool:
        return all(between.low == between.high for between in vars(self.would).values())


class WhatIf:
    def __init__(self, database: Database, clock: Clock, ttl_policies: TtlPolicies) -> None:
        self._database = database
        self._clock = clock
        self._ttl_policies = ttl_policies

    async def ask(self, caller: Principal, standby: int, archive: int | None, days: int) -> Answer:
        """Seconds, 0 = never; no `archive`: as it is set now."""
        policy_rules.require(caller, Action.TTL_WHAT_IF)
        now = self._clock.now()
        since = now - timedelta(days=days)
        async with self._database.connection() as c:
            lines = await idle_history.lines(c, since, MOST_LINES)
            periods = await idle_history.periods(c, since, MOST_LINES)
            found = await idle_history.facts(c, list({line.workspace_id for line in lines}))
            known_since = await idle_history.known_since(c)
        cut = len(lines) == MOST_LINES
        if cut:
            since = lines[-1].at
        if len(periods) == MOST_LINES:
            known_since = max(known_since, periods[-1].ended_at)
        ours = [w for w in found if self._ttl_policies.lives_by_platform(w.template, w.standby_ttl_seconds)]
        window = Window(since, now, known_since)
        wanted = self._ttl_policies.platform.archive_seconds if archive is None else archive

        def reckon() -> tuple[Figures, Figures]:
            seconds = dict.fromkeys((w.id for w in ours), self._ttl_policies.platform.standby_seconds)
            archives = {w.id: self._ttl_policies.own_archive(w.template, w.archive_ttl_seconds) for w in ours}
            pasts = what_if_past.pasts(lines, periods, ours, seconds, archives, window)
            return what_if.did(pasts, now), what_if.would(pasts, standby, wanted, now)

        did, would = await asyncio.to_thread(reckon)
        others = len(found) - len(ours)
        return Answer(standby, wanted, since, now, cut, known_since, len(ours), others, did, would)
