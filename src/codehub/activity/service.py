"""Why a workspace sleeps, or does not: what was seen of it, and what follows from that. For the API and the pages."""

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from codehub.activity import keys, rules, scripts
from codehub.activity.model import Kind, Seen
from codehub.activity.reader import moment
from codehub.db import Database
from codehub.db.redis import FAILURES, Client
from codehub.errors import UnavailableError
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.templates.model import ActivityMode
from codehub.workspaces import idle_store
from codehub.workspaces.service import Which, Workspaces
from codehub.workspaces.ttl_policy import TtlPolicies, TtlPolicy


@dataclass(frozen=True)
class Explanation:
    ttl_policy: TtlPolicy
    seen: Seen
    sleeps_at: datetime | None
    reason: rules.Reason


class Activity:
    def __init__(self, database: Database, client: Client, ttl_policies: TtlPolicies, workspaces: Workspaces) -> None:
        self._database = database
        self._client = client
        self._ttl_policies = ttl_policies
        self._workspaces = workspaces

    async def explain(self, caller: Principal, which: Which) -> Explanation:
        w = await self._workspaces.get(caller, which, Action.WORKSPACE_HISTORY)
        seen = await self._seen(w.id)
        async with self._database.connection() as c:
            last = await idle_store.last_sleep(c, w.id)
        ttl_policy, seconds = self._ttl_policies.of_template(w.template), self._ttl_policies.standby_seconds(w)
        sleeps_at = self._ttl_policies.sleeps_at(w)
        if ttl_policy.mode is ActivityMode.CONNECTIONS and seen.open_connections:
            sleeps_at = None  # nothing would, for as long as they are open
        why = rules.reason(w, ttl_policy, seconds, seen.open_connections, sleeps_at, last)
        return Explanation(ttl_policy, seen, sleeps_at, why)

    async def _seen(self, id_: str) -> Seen:
        at = scripts.place(self._client)
        try:
            found = await cast("Awaitable[dict[bytes, bytes]]", self._client.hgetall(at + keys.details(id_)))
            connections: Any = await self._client.get(at + keys.connections(id_))
        except FAILURES as e:
            raise UnavailableError("Redis does not answer: what was seen of it cannot be said now") from e
        values = {name.decode(): int(value) for name, value in found.items()}
        counts = {kind: values[kind.label] for kind in Kind if kind.label in values}
        return Seen(
            moment(values["last_input_at"]) if "last_input_at" in values else None,
            moment(values["last_output_at"]) if "last_output_at" in values else None,
            int(connections or 0),
            {kind.label: count for kind, count in counts.items() if kind.counts},
            {kind.label: count for kind, count in counts.items() if not kind.counts},
        )
