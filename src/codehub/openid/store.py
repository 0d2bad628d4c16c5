"""SQL about linked logins; rows become frozen dataclasses here. Called by `service` and `mapping`."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from codehub import ids
from codehub.db import Connection, Queries, one, rows
from codehub.openid.model import Identity, Subject
from codehub.policy.model import Role

sql = Queries("codehub.openid")


def _identity(record: Any) -> Identity | None:
    found = one(Identity, record)
    return replace(found, role_given=Role(found.role_given)) if found and found.role_given else found


async def find(c: Connection, issuer: str, subject: str) -> Identity | None:
    """And nobody else makes or finds it until the transaction ends."""
    await c.execute(sql.one_subject_at_a_time, f"{issuer} {subject}")
    return _identity(await c.fetchrow(sql.find, issuer, subject))


async def of_person(c: Connection, user_id: str) -> list[Identity]:
    return rows(Identity, await c.fetch(sql.of_person, user_id))


async def person_with_email(c: Connection, email: str, issuers: Collection[str]) -> str | None:
    """The id of the only person who has it."""
    found = await c.fetch(sql.people_with_email, email, list(issuers))
    return found[0]["user_id"] if len(found) == 1 else None


async def add(c: Connection, user_id: str, subject: Subject, now: datetime) -> Identity:
    said = subject.provider, subject.issuer, subject.subject, subject.label, subject.email
    made = _identity(await c.fetchrow(sql.add, ids.new(), user_id, *said, now))
    assert made  # noqa: S101 (an insert that returns)
    return made


async def classes_of(c: Connection, identity_id: str) -> frozenset[str]:
    return frozenset(record["class_id"] for record in await c.fetch(sql.classes_of, identity_id))
