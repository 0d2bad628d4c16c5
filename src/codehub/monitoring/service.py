"""Samples for those who may see them. Called by the API and the operator's page."""

from datetime import datetime

from codehub.db import Database
from codehub.monitoring import store
from codehub.monitoring.model import Resolution, Sample
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Principal


class Monitoring:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def between(
        self, caller: Principal, resolution: Resolution, since: datetime, until: datetime, limit: int
    ) -> list[Sample]:
        """The newest first."""
        policy_rules.require(caller, Action.MONITORING_READ)
        async with self._database.connection() as c:
            return await store.between(c, resolution, since, until, limit)
