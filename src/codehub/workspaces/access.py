"""The use cases of whoever wants to enter a workspace: being let in, waking it, and letting others in.

Called by the API's entry pages and by the proxy. Only here may somebody who is not the owner act on a workspace.
"""

from dataclasses import dataclass
from datetime import datetime

from codehub import ids
from codehub.auth.service import People
from codehub.clock import Clock
from codehub.db import Connection, Database, rows
from codehub.errors import NotFoundError
from codehub.policy import rules as policy_rules
from codehub.policy.model import Principal, Role
from codehub.settings import LimitsConfig
from codehub.workspaces import history, store
from codehub.workspaces.admission import Refused
from codehub.workspaces.errors import NotIsolatedError, OwnsItAlreadyError, ShareLimitError
from codehub.workspaces.model import Desired, Operation, Phase, Workspace
from codehub.workspaces.service import Workspaces
from codehub.workspaces.store import sql


@dataclass(frozen=True)
class Share:
    user_name: str
    created_at: datetime
    opened_at: datetime | None  # when they first came


class Entering:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        limits: LimitsConfig,
        workspaces: Workspaces,
        people: People,
        *,
        isolated: bool,
    ) -> None:
        self._database = database
        self._clock = clock
        self._limits = limits
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

    async def arrive(self, person: str, id_: str) -> Workspace:
        """As `visit`, for somebody whom a browser brings; their host learns that they came."""
        w = await self.visit(person, id_)
        if w.owner != person:
            async with self._database.connection() as c:
                await c.execute(sql.note_opened, id_, person, self._clock.now())
        return w

    async def _is_welcome(self, c: Connection, w: Workspace, person: str) -> bool:
        if w.owner == person:
            return True
        return self._isolated and bool(await c.fetchval(sql.is_guest, w.id, person))

    async def wake(self, person: str, id_: str) -> Workspace | Refused:
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

    async def share(self, caller: Principal, id_: str, user: str) -> None:
        w = await self._workspaces.get(caller, id_)
        if user == w.owner:
            raise OwnsItAlreadyError(f"{user} owns it already")
        if not self._isolated:
            raise NotIsolatedError(
                "workspaces have no origin of their own here, so a guest would run the owner's scripts as themselves: "
                "set CODEHUB_WORKSPACE_DOMAIN"
            )
        if not await self._may_be_named(caller, user):
            raise NotFoundError(f"there is nobody called {user[:63]!r} who could come")
        async with self._database.transaction() as c:
            now = self._clock.now()
            await self._check_shares(c, caller, w, user)
            if await c.execute(sql.add_share, id_, user, now) == "INSERT 0 1":
                await store.note(c, id_, now, store.Change(caller.name, history.Shared(user)))

    async def _may_be_named(self, caller: Principal, user: str) -> bool:
        """Learners are not told who exists. A name that nobody has lets nobody in, and is never opened."""
        if caller.role in {Role.ADMIN, Role.TEACHER}:
            return await self._people.is_active(user)
        return ids.is_label(user)

    async def _check_shares(self, c: Connection, caller: Principal, w: Workspace, user: str) -> None:
        """Exact: what one person shares, they share one after the other."""
        of_workspace = policy_rules.allowance(caller, self._limits.max_shares_per_workspace)
        with_one = policy_rules.allowance(caller, self._limits.max_shares_with_one)
        await c.execute(sql.one_at_a_time, w.owner)
        found = await c.fetchrow(sql.count_shares, w.id, w.owner, user)
        assert found  # noqa: S101 (an aggregate always returns a row)
        if await c.fetchval(sql.is_guest, w.id, user):
            return
        if of_workspace is not None and found["of_workspace"] >= of_workspace:
            raise ShareLimitError(f"it is shared with {of_workspace} people, and that is the most: end one share first")
        if with_one is not None and found["with_one"] >= with_one:
            raise ShareLimitError(
                f"{w.owner} shares {with_one} workspaces with {user}, and that is the most: end one share first"
            )

    async def unshare(self, caller: Principal, id_: str, user: str) -> None:
        """Whoever is in is out within seconds. Guests may leave by themselves."""
        if user == caller.name:
            await self.visit(caller.name, id_)
        else:
            await self._workspaces.get(caller, id_)
        async with self._database.transaction() as c:
            now = self._clock.now()
            if await c.execute(sql.remove_share, id_, user) != "DELETE 1":
                raise NotFoundError(f"it is not shared with {user[:63]}")
            await store.note(c, id_, now, store.Change(caller.name, history.Unshared(user)))

    async def shares(self, caller: Principal, id_: str, *, after: str, limit: int) -> list[Share]:
        await self._workspaces.get(caller, id_)
        async with self._database.connection() as c:
            return rows(Share, await c.fetch(sql.page_shares, id_, after, limit))

    async def shared_with(self, caller: Principal, *, after: store.After, limit: int) -> list[Workspace]:
        async with self._database.connection() as c:
            return await store.query(c, sql.page_shared_with, caller.name, *after, limit)
