"""The audit log. Other services record inside their own transaction: an act and its entry are kept or lost together."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from codehub.audit.codes import RENAMED, Code
from codehub.audit.model import AuditEntry
from codehub.db import Connection, Database, Queries, rows
from codehub.forgetting import Forgotten
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Origin, Principal

sql = Queries("codehub.audit")
NEWEST = 2**63 - 1


async def record(connection: Connection, now: datetime, origin: Origin, code: Code, subject: str, **data: Any) -> None:
    await connection.execute(sql.add, now, origin.actor, code, subject, data, origin.request_id, origin.address)


async def forget(connection: Connection, person: Forgotten) -> None:
    """A person was removed: what they did, and what was done to them, stays, without their names."""
    await connection.execute(sql.forget_subject, list(person.names), person.id)
    found = await connection.fetch(sql.mentioning, person.id, [f"%{name}%" for name in person.names])
    for entry in found:
        data = person.data(entry["data"], about=entry["about"])
        if data != entry["data"]:
            await connection.execute(sql.replace_data, entry["id"], data)


async def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Remove the oldest entries; called by housekeeping, a bounded number at a time."""
    return int((await connection.execute(sql.prune, before, limit)).split()[-1])


@dataclass(frozen=True)
class AuditSearch:
    person: str | None = None  # who did it, or to whom
    code: str | None = None
    since: datetime | None = None
    until: datetime | None = None  # before this


EVERYTHING = AuditSearch()


class AuditLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        caller: Principal,
        *,
        before: int | None,
        actor: str | None,
        subject: str | None,
        limit: int,
        search: AuditSearch = EVERYTHING,
    ) -> list[AuditEntry]:
        """Newest first."""
        policy_rules.require(caller, Action.AUDIT_READ)
        codes = [search.code, *(old for old, new in RENAMED.items() if new == search.code)] if search.code else None
        wanted = search.person, codes, search.since, search.until
        async with self._database.connection() as connection:
            found = await connection.fetch(
                sql.page, NEWEST if before is None else before, actor, subject, limit, *wanted
            )
        return [replace(entry, code=RENAMED.get(entry.code, entry.code)) for entry in rows(AuditEntry, found)]
