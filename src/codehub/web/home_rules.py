"""What the start page puts first: the one thing that this person most likely came for. Pure; asked by `dashboard`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from codehub.workspaces.model import Workspace


class First(StrEnum):
    SESSION = "session"  # to go on with, or to begin
    LINE = "line"  # in which they wait for a place
    WORKSPACE = "workspace"  # that they used last
    NOTHING = "nothing"


@dataclass(frozen=True)
class Choice:
    first: First
    workspace_id: str | None = None


def carry_on(*, begun: bool, planned: bool, waits: bool, mine: Sequence[Workspace]) -> Choice:
    """`begun`, `planned`: is there a session they stopped in, or one that is next? `mine`: their workspaces."""
    if begun:
        return Choice(First.SESSION)
    if waits:
        return Choice(First.LINE)
    if planned:
        return Choice(First.SESSION)
    kept = [w for w in mine if w.deleted_at is None]
    if not kept:
        return Choice(First.NOTHING)
    return Choice(First.WORKSPACE, max(kept, key=lambda w: (w.last_access_at, w.id)).id)
