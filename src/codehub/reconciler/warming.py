"""A loop of the coordinator: templates that may be started soon are kept ready, so that the start itself is quick.

It is decided from what is in the database alone, by one query, every half minute and whenever a person logs in. The
runtime does what it can (`warm_up`); whatever becomes of that, a start needs none of it.
"""

from datetime import timedelta

from codehub import logs
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.db import Queries
from codehub.errors import CodeHubError
from codehub.reconciler import warming_rules
from codehub.reconciler.warming_rules import Soon, Why
from codehub.runtimes.base import Runtime
from codehub.settings import ScheduleConfig
from codehub.templates.loader import Templates
from codehub.templates.model import Template

sql = Queries("codehub.reconciler", "warming.sql")
log = logs.get()
NAME = "warming"
CHANNEL = "codehub_warming"  # a person has logged in
PERIOD_SECONDS = 30.0
LESSON_AHEAD = timedelta(minutes=15)  # before the first start for a lesson


class Warming:
    def __init__(
        self, lease: Lease, runtime: Runtime, templates: Templates, clock: Clock, config: ScheduleConfig
    ) -> None:
        self._lease = lease
        self._runtime = runtime
        self._templates = templates
        self._clock = clock
        self._lately = timedelta(seconds=config.warm_seconds)

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, longest_pause=PERIOD_SECONDS)

    async def tick(self) -> Tick:
        if not any(one.process and one.process.warm for one in self._templates.all()):
            return Tick({"wanted": 0, "failed": 0})
        now = self._clock.now()
        async with self._lease.database.connection() as c:
            found = await c.fetch(sql.soon, now - self._lately, now + LESSON_AHEAD)
        soon = [Soon(record["template"], Why(record["why"]), record["starts"]) for record in found]
        wanted = warming_rules.which(soon, self._templates.all())
        failed = [template.name for template in wanted if not await self._warm_up(template)]
        return Tick({"wanted": len(wanted), "failed": len(failed)})

    async def _warm_up(self, template: Template) -> bool:
        """One that fails leaves the others alone, and is asked again at the next tick."""
        try:
            await self._runtime.warm_up(template)
        except (CodeHubError, OSError) as e:
            log.warning("A template could not be made ready", template=template.name, error=str(e))
            return False
        return True
