"""The use cases of whoever wants to enter a workspace: being let in, waking it, and letting others in.

Called by the API's entry pages and by the proxy. Only here may somebody who is not the owner act on a workspace.
"""

from dataclasses import dataclass
from datetime import datetime

from codehub import ids
from codehub.auth.model import Caller
from codehub.auth.service import People
from codehub.clock import Clock
from codehub.db import Connection, Database, rows
from codehub.errors import NotFoundError
from codehub.workspaces import store
from codehub.workspaces.errors import NotIsolatedError, OwnsItAlreadyError
from codehub.workspaces.model import Desired, Operation, Phase, Workspace
from codehub.workspaces.service import Workspaces
from codehub.workspaces.store import sql


@dataclass(frozen=True)
class Share:
    user_name: str
    created_at: datetime


class Entering:
    def __init__(
        self, database: Database, clock: Clock, workspaces: Workspaces, people: People, *, isolated: bool
    ) -> None:
        self._database = database
        self._clock = clock
        self._workspaces = workspaces
        self._people = people
        self._isolated = isolated

    # --- being let in

    async def visit(self, person: str, id_: str) -> Workspace:
        """The workspace, for somebody who may enter it; for everybody else there is none."""
        async with self._database.connection() as c:
            found = await store.find(c, id_) if ids.is_label(id_) else None
            if found and found.deleted_at is None and await self._is_welcome(c, found, person):
                return found
        raise NotFoundError(f"there is no workspace {id_[:63]}")

    async def _is_welcome(self, c: Connection, w: Workspace, person: str) -> bool:
        if w.owner == person:
            return True
        return self._isolated and bool(await c.fetchval(sql.is_guest, w.id, person))

    async def wake(self, person: str, id_: str) -> Workspace:
        """Ask a sleeping one to run, once: whoever comes while that wish stands only finds it."""
        w = await self.visit(person, id_)
        asleep = w.phase is Phase.STANDBY and w.operation is Operation.NONE and w.desired_state is not Desired.RUNNING
        return await self._workspaces.wake(person, id_) if asleep else w

    async def usual_seconds(self, id_: str) -> float | None:
        """How long its last starts took, in the middle; None: it was never started."""
        async with self._database.connection() as c:
            found = await c.fetchval(sql.usual_start_seconds, id_)
        return None if found is None else float(found)

    # --- letting others in

    async def share(self, caller: Caller, id_: str, user: str) -> None:
        w = await self._workspaces.get(caller, id_)
        if user == w.owner:
            raise OwnsItAlreadyError(f"{user} owns it already")
        if not self._isolated:
            raise NotIsolatedError(
                "workspaces have no origin of their own here, so a guest would run the owner's scripts as themselves: "
                "set CODEHUB_WORKSPACE_DOMAIN"
            )
        if not await self._people.is_active(user):
            raise NotFoundError(f"there is nobody called {user[:63]!r} who could come")
        async with self._database.transaction() as c:
            now = self._clock.now()
            if await c.execute(sql.add_share, id_, user, now) == "INSERT 0 1":
                await store.note(c, id_, now, store.Change(caller.name, "shared", f"with {user}"))

    async def unshare(self, caller: Caller, id_: str, user: str) -> None:
        """Whoever is in is out within seconds. Guests may leave by themselves."""
        if user == caller.name:
            await self.visit(caller.name, id_)
        else:
            await self._workspaces.get(caller, id_)
        async with self._database.transaction() as c:
            now = self._clock.now()
            if await c.execute(sql.remove_share, id_, user) != "DELETE 1":
                raise NotFoundError(f"it is not shared with {user[:63]}")
            await store.note(c, id_, now, store.Change(caller.name, "unshared", f"from {user}"))

    async def shares(self, caller: Caller, id_: str, *, after: str, limit: int) -> list[Share]:
        await self._workspaces.get(caller, id_)
        async with self._database.connection() as c:
            return rows(Share, await c.fetch(sql.page_shares, id_, after, limit))

    async def shared_with(self, caller: Caller, *, after: store.After, limit: int) -> list[Workspace]:
        async with self._database.connection() as c:
            return await store.query(c, sql.page_shared_with, caller.name, *after, limit)
