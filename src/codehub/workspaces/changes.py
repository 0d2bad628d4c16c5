"""What a workspace's change says to those who may see it: the kinds of its events, for the hub of an API process.

The rows are written by triggers (migration 0007 and on): `workspace_updated` for the audience of the workspace, and
`workspace_joined` or `workspace_left` for the user who from then on may or may not see it. The first is rendered here,
as the API shows a workspace, when it is sent.
"""

import functools
from collections.abc import Collection, Mapping

from codehub.db import Connection
from codehub.events.hub import Kind
from codehub.workspaces import store
from codehub.workspaces.model import Phase
from codehub.workspaces.store import sql
from codehub.workspaces.ttl_policy import TtlPolicies

CLASS = "workspace"
EVERY_WORKSPACE = f"{CLASS}:*"


def kinds(ttl_policies: TtlPolicies) -> Mapping[str, Kind]:
    return {
        "workspace_updated": Kind(functools.partial(_render, ttl_policies)),
        "workspace_joined": Kind(joins=CLASS),
        "workspace_left": Kind(leaves=CLASS),
    }


async def memberships(c: Connection, person: str) -> list[str]:
    """The audiences of the workspaces that are theirs, or shared with them."""
    return [f"{CLASS}:{record['id']}" for record in await c.fetch(sql.seen_by, person)]


async def _render(ttl_policies: TtlPolicies, c: Connection, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    from codehub.workspaces.view import show  # noqa: PLC0415 (brings pydantic, which no command needs)

    return {
        w.id: (
            "workspace_deleted" if w.phase is Phase.DELETED else "workspace_updated",
            show(w, ttl_policies.sleeps_at(w)).model_dump_json(),
        )
        for w in await store.query(c, sql.find_many, list(ids))
    }
