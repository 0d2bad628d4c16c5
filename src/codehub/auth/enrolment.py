"""Accounts of learners, made in another service's transaction: by an invitation, by a class's teacher, from a list."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain, count

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import store
from codehub.auth.model import Person
from codehub.auth.service import RESERVED
from codehub.auth.signing import fingerprint
from codehub.auth.store import sql
from codehub.db import Connection
from codehub.errors import AccountLimitError, InvalidRequestError, UserExistsError
from codehub.policy import rules as policy
from codehub.policy.model import Kind, Origin, Principal, Role

LONGEST_NAME = 63
LOOKED_AT = 200  # names that are asked for at once


def check_name(name: str) -> None:
    if not ids.is_label(name):
        raise InvalidRequestError("1 to 63 of a–z, 0–9 and -, not at the ends", field="name")


async def check_free(c: Connection, name: str) -> None:
    """Before a person is asked for more: whether it still is free is for `add_learner` to say."""
    if await taken_names(c, [name]):
        raise await _taken(c, name)


async def add_learner(
    c: Connection, now: datetime, by: Origin, name: str, display_name: str, id_: str | None = None
) -> Person:
    """A name that is, or was, another's is refused, and another one offered."""
    check_name(name)
    person = None if name in RESERVED else await store.add_user(c, name, Role.LEARNER, now, display_name, id_)
    if person is None:
        raise await _taken(c, name)
    await audit.record(c, now, by, Code.USER_CREATE, name, role=Role.LEARNER)
    return person


async def check_number(c: Connection, by: Principal, more: int, limit: int) -> None:
    """May this teacher make so many accounts more? `limit`: a learner's, as of everything that people make."""
    most = policy.allowance(by, limit)
    if not more or most is None:
        return
    await c.execute(sql.one_maker_at_a_time, by.id)
    made = await c.fetchval(sql.count_made, by.id)
    if made + more > most:
        raise AccountLimitError(f"you have made {made} accounts and may make {most}: ask an admin for the others")


async def make_learner(c: Connection, now: datetime, by: Principal, name: str, display_name: str) -> Person:
    """By a teacher for a class, who is known as its maker."""
    person = await add_learner(c, now, by.origin, name, display_name)
    if by.kind is Kind.PERSON:
        await c.execute(sql.note_maker, person.id, by.id)
    return person


async def _taken(c: Connection, name: str) -> UserExistsError:
    free = await free_name(c, name)
    return UserExistsError(f"{name} is taken: choose another name, for example {free}", suggestion=free)


async def free_name(c: Connection, wanted: str, given: Collection[str | None] = ()) -> str:
    """The wanted one, or the next one like it, that is nobody's and not just `given`."""
    candidates = chain([wanted], numbered(wanted))
    while True:
        asked = [next(candidates) for _ in range(LOOKED_AT)]
        taken = await taken_names(c, asked) | set(given)
        if found := next((name for name in asked if name not in taken), None):
            return found


def numbered(name: str) -> Iterator[str]:
    """mina2, mina3, …"""
    return (f"{name[: LONGEST_NAME - len(str(n))]}{n}" for n in count(2))


async def taken_names(c: Connection, names: list[str]) -> frozenset[str]:
    """Of these, those that are, or were, a person's, or are kept for the platform."""
    found = await c.fetch(sql.taken_names, names)
    return frozenset(record["name"] for record in found) | (RESERVED & set(names))


async def lock_person(c: Connection, name: str) -> Person | None:
    return await store.lock_user(c, name)


async def find_people(c: Connection, names: list[str]) -> dict[str, Person]:
    """Those who have these names."""
    found = {name: await store.find_user(c, name) for name in names if ids.is_label(name)}
    return {name: person for name, person in found.items() if person}


async def find_by_id(c: Connection, ids_: Mapping[str, str]) -> dict[str, Person]:
    """By whatever key, of a person's id."""
    found = {key: await store.find_person(c, id_) for key, id_ in ids_.items()}
    return {key: person for key, person in found.items() if person and person.removed_at is None}


async def drop_links(c: Connection, user_ids: list[str]) -> None:
    """Of these people, login links that nobody has used yet."""
    await c.execute(sql.drop_links_of_all, user_ids)


async def remember(c: Connection, person: Person, secret: str, now: datetime, seconds: int) -> None:
    """A secret of the browser that sent the form which made this person, for `of_secret`. It works as a login link."""
    await store.replace_link(c, person.id, fingerprint(secret), now, now + timedelta(seconds=seconds))


async def name_of_secret(c: Connection, secret: str, now: datetime) -> str | None:
    return await store.owner_of_link(c, fingerprint(secret), now)


async def of_secret(c: Connection, secret: str, now: datetime) -> Person | None:
    """Whom this browser's form has made already, locked: it was sent twice."""
    name = await store.owner_of_link(c, fingerprint(secret), now)
    person = await store.lock_user(c, name) if name else None
    return person if person and person.active else None
