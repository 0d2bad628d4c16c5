"""What a teacher sees of their learners at a glance: last seen, workspaces, session and step, whether they wait.

Called by the class's page (`web.classes`). Who may see it is asked by the services that it is made of.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from codehub.classes.model import Member
from codehub.classes.service import Classes
from codehub.db import Database
from codehub.errors import UnavailableError
from codehub.http import paging
from codehub.policy.model import Principal
from codehub.sessions import service as sessions
from codehub.sessions.service import AtWork
from codehub.waiting_room.model import LAB
from codehub.waiting_room.service import WaitingRoom
from codehub.workspaces.model import Workspace
from codehub.workspaces.service import Filters, Workspaces

MOST = 1000  # people of a class that are shown on one page
MOST_WORKSPACES = 5000


@dataclass(frozen=True)
class Glance:
    """One learner."""

    member: Member
    workspaces: Sequence[Workspace]
    at_work: AtWork | None
    waits: bool


class Overview:
    def __init__(self, database: Database, classes: Classes, workspaces: Workspaces, waiting_room: WaitingRoom) -> None:
        self._database = database
        self._classes = classes
        self._workspaces = workspaces
        self._waiting_room = waiting_room

    async def of(self, caller: Principal, class_id: str) -> tuple[list[Member], list[Glance]]:
        """The teachers, and the learners in order of their names."""
        members = await self._classes.members(caller, class_id, after="", limit=MOST)
        learners = [member for member in members if not member.teaches]
        found = await self._workspaces.page(
            caller, Filters(class_id=class_id), after=paging.place(None), limit=MOST_WORKSPACES
        )
        theirs: defaultdict[str, list[Workspace]] = defaultdict(list)
        for w in found:
            theirs[w.owner].append(w)
        ids = [member.user_id for member in learners]
        async with self._database.connection() as c:
            at_work = await sessions.at_work(c, ids)
        waiting = await self._waiting(ids)
        glances = [
            Glance(member, theirs[member.name], at_work.get(member.user_id), member.user_id in waiting)
            for member in learners
        ]
        return [member for member in members if member.teaches], glances

    async def _waiting(self, ids: Sequence[str]) -> frozenset[str]:
        """Without Redis nothing is known of the line; all else is."""
        try:
            return await self._waiting_room.waiting(LAB, ids)
        except UnavailableError:
            return frozenset()
