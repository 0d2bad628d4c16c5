"""The git repository that a workspace begins with: asked for with a new workspace, and again when it did not work.

`service` adds one in the transaction that makes the workspace, pages and API read it; `fetch_loop` fetches it.
"""

from collections.abc import Collection, Mapping
from datetime import datetime

from codehub import ids
from codehub.clock import Clock
from codehub.db import Connection, Database, Queries, Row
from codehub.errors import InvalidRequestError, NotFoundError
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.workspaces import authorize, git_rules, history, store
from codehub.workspaces.errors import WorkspaceDeletedError
from codehub.workspaces.git_rules import Complaint
from codehub.workspaces.model import FetchCause, FetchStatus, Repository, Workspace
from codehub.workspaces.store import Change

sql = Queries("codehub.workspaces", "repositories.sql")


class GitAddressError(InvalidRequestError):
    def __init__(self, complaint: Complaint) -> None:
        field = "git_branch" if complaint is Complaint.BRANCH else "git_url"
        super().__init__(git_rules.SAID[complaint], field=field)
        self.complaint = complaint


def check(url: str | None, branch: str | None) -> None:
    """Raises what is wrong with them. A branch alone is of no repository."""
    if url is not None and (found := git_rules.complaint(url)):
        raise GitAddressError(found)
    if branch is not None and (url is None or git_rules.branch_complaint(branch)):
        raise GitAddressError(Complaint.BRANCH)


async def add(c: Connection, workspace_id: str, url: str, branch: str | None, actor: str, now: datetime) -> None:
    """Of an address that was checked."""
    await c.execute(sql.add, workspace_id, ids.new(), url, branch, git_rules.folder_of(url), now)
    await store.note(c, workspace_id, now, Change(actor, history.FetchRequested(url, branch)))


def repository(record: Row) -> Repository:
    words = {
        "status": FetchStatus(record["status"]),
        "cause": FetchCause(record["cause"]) if record["cause"] else None,
    }
    return Repository(**{**record, **words})


class Repositories:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, seen: Collection[Workspace]) -> Mapping[str, Repository]:
        """By workspace; of those that the caller was let see."""
        if not seen:
            return {}
        async with self._database.connection() as c:
            return {r["workspace_id"]: repository(r) for r in await c.fetch(sql.of, [w.id for w in seen])}

    async def fetch_again(self, caller: Principal, id_: str) -> Workspace:
        """Asked while it is under way, nothing changes."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            w = await store.lock(c, id_) if ids.is_label(id_) else None
            await authorize.authorize(c, caller, Action.WORKSPACE_FETCH, w, id_)
            assert w  # noqa: S101 (else it was refused)
            if w.deleted_at:
                raise WorkspaceDeletedError("it is in the trash: undelete it first")
            if not await c.fetch(sql.of, [id_]):
                raise NotFoundError("this workspace was made without a git address")
            if asked := await c.fetchrow(sql.ask_again, id_, ids.new(), now):
                await store.note(
                    c, id_, now, Change(caller.name, history.FetchRequested(asked["url"], asked["branch"]))
                )
                await c.execute(store.sql.wake_controller)
        return w
