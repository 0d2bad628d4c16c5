"""The use cases about letting others into a workspace, each one transaction. Called by the API and by the pages.

What a guest may then do is in the table of `policy.actions`; how they come in is `gate.access`.
"""

from dataclasses import dataclass
from datetime import datetime

from codehub import ids
from codehub.auth.service import People
from codehub.clock import Clock
from codehub.db import Connection, Database, rows
from codehub.errors import NotFoundError
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.settings import LimitsConfig
from codehub.workspaces import history, store
from codehub.workspaces.errors import NotIsolatedError, OwnsItAlreadyError, ShareLimitError
from codehub.workspaces.model import Workspace
from codehub.workspaces.service import Which, Workspaces
from codehub.workspaces.store import sql


@dataclass(frozen=True)
class Share:
    user_name: str
    created_at: datetime
    opened_at: datetime | None  # when they first came


class Sharing:
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

    async def share(self, caller: Principal, id_: str, user: str) -> None:
        w = await self._workspaces.get(caller, id_, Action.WORKSPACE_SHARE)
        if user == w.owner:
            raise OwnsItAlreadyError(f"{user} owns it already")
        if not self._isolated:
            raise NotIsolatedError(
                "workspaces have no origin of their own here, so a guest would run the owner's scripts as themselves: "
                "set CODEHUB_WORKSPACE_DOMAIN"
            )
        if not await self._may_be_named(caller, user):
            raise NotFoundError(f"there is no active user called {user[:63]!r}")
        async with self._database.transaction() as c:
            now = self._clock.now()
            there = await self._check_shares(c, caller, w, user)
            if not there and await c.execute(sql.add_share, id_, user, now) == "INSERT 0 1":
                await store.note(c, id_, now, store.Change(caller.name, history.Shared(user)))

    async def _may_be_named(self, caller: Principal, user: str) -> bool:
        """Learners are not told who exists. A name that no user has gives no access, and is never opened."""
        if policy_rules.allows(caller, Action.USER_LOOK_UP):
            return await self._people.is_active(user)
        return ids.is_label(user)

    async def _check_shares(self, c: Connection, caller: Principal, w: Workspace, user: str) -> bool:
        """Is it shared with them already? Exact: what one person shares, they share one after the other."""
        of_workspace = policy_rules.allowance(caller, self._limits.max_shares_per_workspace)
        with_one = policy_rules.allowance(caller, self._limits.max_shares_with_one)
        await c.execute(sql.one_at_a_time, w.owner)
        found = await c.fetchrow(sql.count_shares, w.id, w.owner, user)
        assert found  # noqa: S101 (an aggregate always returns a row)
        if found["there"]:
            return True
        if of_workspace is not None and found["of_workspace"] >= of_workspace:
            raise ShareLimitError(f"it is shared with {of_workspace} people, and that is the most: end one share first")
        if with_one is not None and found["with_one"] >= with_one:
            raise ShareLimitError(
                f"{w.owner} shares {with_one} workspaces with {user}, and that is the most: end one share first"
            )
        return False

    async def unshare(self, caller: Principal, id_: str, user: str) -> None:
        """A guest who is in is out within seconds. Guests may leave by themselves."""
        leaves = policy_rules.is_self(caller, user)
        await self._workspaces.get(caller, id_, Action.WORKSPACE_LEAVE if leaves else Action.WORKSPACE_SHARE)
        async with self._database.transaction() as c:
            now = self._clock.now()
            if await c.execute(sql.remove_share, id_, user) != "DELETE 1":
                raise NotFoundError(f"it is not shared with {user[:63]}")
            await store.note(c, id_, now, store.Change(caller.name, history.Unshared(user)))

    async def shares(self, caller: Principal, which: Which, *, after: str, limit: int) -> list[Share]:
        w = await self._workspaces.get(caller, which, Action.WORKSPACE_SHARES)
        async with self._database.connection() as c:
            return rows(Share, await c.fetch(sql.page_shares, w.id, after, limit))

    async def shared_with(self, caller: Principal, *, after: store.After, limit: int) -> list[Workspace]:
        policy_rules.require(caller, Action.WORKSPACE_LIST)
        async with self._database.connection() as c:
            return await store.query(c, sql.page_shared_with, caller.name, *after, limit)
