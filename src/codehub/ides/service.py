"""What admins ask for about IDEs: to install one, to end that, and how far it is. Each is one transaction.

The API runs without rights: it writes a row, on which the coordinator's loop (`loop`) acts.
"""

from dataclasses import dataclass

from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.clock import Clock
from codehub.db import Database
from codehub.errors import NotFoundError
from codehub.ides import store
from codehub.ides.model import Installation
from codehub.ides.store import sql
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.runtimes.ide_install import NAME
from codehub.templates.loader import Templates

INSTALLABLE = (NAME,)


@dataclass(frozen=True)
class Ide:
    name: str
    installed: bool
    installation: Installation | None  # None: never asked for here


class Ides:
    def __init__(self, database: Database, clock: Clock, templates: Templates) -> None:
        self._database = database
        self._clock = clock
        self._templates = templates

    async def all(self, caller: Principal) -> list[Ide]:
        policy.require(caller, Action.SETTINGS_READ)
        async with self._database.connection() as c:
            known = await store.all_of(c)
        return [Ide(name, self._templates.has_program(name), known.get(name)) for name in INSTALLABLE]

    async def get(self, caller: Principal, name: str) -> Ide:
        found = {ide.name: ide for ide in await self.all(caller)}
        return found.get(name) or _missing(name)

    async def install(self, caller: Principal, name: str) -> Ide:
        """Asked by two at once, it is done once."""
        policy.require(caller, Action.IDE_INSTALL)
        if name not in INSTALLABLE:
            _missing(name)
        now = self._clock.now()
        async with self._database.transaction() as c:
            if await c.fetchval(sql.ask, name, caller.name, now):
                await audit.record(c, now, caller.origin, Code.IDE_INSTALL, name)
                await c.execute(sql.wake_coordinator)
        return await self.get(caller, name)

    async def cancel(self, caller: Principal, name: str) -> Ide:
        """What is over stays as it ended."""
        policy.require(caller, Action.IDE_INSTALL)
        now = self._clock.now()
        async with self._database.transaction() as c:
            if await c.fetchval(sql.cancel, name, now):
                await audit.record(c, now, caller.origin, Code.IDE_CANCEL, name)
                await c.execute(sql.wake_coordinator)
        return await self.get(caller, name)


def _missing(name: str) -> Ide:
    raise NotFoundError(f"there is no IDE {name[:63]} that can be installed; there is: {', '.join(INSTALLABLE)}")
