"""SQL about classes and who is in them; rows become frozen dataclasses here. Called by the services of this folder."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from codehub.classes.model import Came, Invitation, Member, MemberRole, SchoolClass
from codehub.db import Connection, Queries, one, rows

sql = Queries("codehub.classes")
After = tuple[datetime, str]


async def find(c: Connection, id_: str) -> SchoolClass | None:
    return one(SchoolClass, await c.fetchrow(sql.find, id_))


async def lock(c: Connection, id_: str) -> None:
    """What is decided about its members stays true until the transaction ends."""
    await c.execute(sql.lock, id_)


async def role_in(c: Connection, id_: str, user_id: str) -> MemberRole | None:
    found = await c.fetchval(sql.role_in, id_, user_id)
    return MemberRole(found) if found else None


async def page(c: Connection, user_id: str | None, *, archived: bool, after: After, limit: int) -> list[SchoolClass]:
    return rows(SchoolClass, await c.fetch(sql.page, user_id, archived, *after, limit))


async def members(c: Connection, id_: str, *, name: str | None = None, after: str = "", limit: int) -> list[Member]:
    """After this place, which `place_of` tells."""
    found = rows(Member, await c.fetch(sql.members, id_, name, after, limit))
    return [replace(m, role=MemberRole(m.role), came=Came(m.came)) for m in found]


def place_of(member: Member) -> str:
    """Where a member stands in the order of `members`: teachers first, then by name."""
    return ("0" if member.teaches else "1") + member.name


async def add_invitation(c: Connection, *fields: Any) -> Invitation | None:
    """None: the code is another's."""
    return one(Invitation, await c.fetchrow(sql.add_invitation, *fields))


async def page_invitations(c: Connection, id_: str, now: datetime, after: After, limit: int) -> list[Invitation]:
    return rows(Invitation, await c.fetch(sql.page_invitations, id_, now, *after, limit))


async def find_invitation(c: Connection, code: str) -> Invitation | None:
    return one(Invitation, await c.fetchrow(sql.find_invitation, code))
