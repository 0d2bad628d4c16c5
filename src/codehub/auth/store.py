"""SQL about people and credentials; rows become frozen dataclasses here. Called by the services of this folder."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from codehub.auth.model import AccessToken, BrowserSession, NewPassword, Password, Person, WaysIn, WorkingWays
from codehub.db import Connection, Queries, one, rows
from codehub.policy.model import Role

sql = Queries("codehub.auth")
# Where a page begins: behind the row with this time and id.
After = tuple[datetime, str]


def _person(record: Any) -> Person | None:
    person = one(Person, record)
    return replace(person, role=Role(person.role)) if person else None


async def find_user(c: Connection, name: str) -> Person | None:
    return _person(await c.fetchrow(sql.find_user, name))


async def find_person(c: Connection, id_: str) -> Person | None:
    return _person(await c.fetchrow(sql.find_person, id_))


async def lock_user(c: Connection, name: str) -> Person | None:
    return _person(await c.fetchrow(sql.lock_user, name))


async def add_user(
    c: Connection, name: str, role: Role, now: datetime, display_name: str = "", id_: str | None = None
) -> Person | None:
    """None when the name is, or was, another person's."""
    await c.execute(sql.one_name_at_a_time)
    return _person(await c.fetchrow(sql.add_user, name, role, now, display_name, id_))


async def page_users(c: Connection, after: str, limit: int, *wanted: object) -> list[Person]:
    """`wanted`: role, a part of a name, and whether they are active; each may be left open."""
    found = await c.fetch(sql.page_users, after, limit, *wanted)
    return [replace(p, role=Role(p.role)) for p in rows(Person, found)]


async def rename_user(c: Connection, id_: str, name: str) -> Person | None:
    """None when the name is, or was, another person's."""
    await c.execute(sql.one_name_at_a_time)
    return _person(await c.fetchrow(sql.rename_user, id_, name))


async def change_user(c: Connection, id_: str, role: Role, deactivated_at: datetime | None) -> Person:
    person = _person(await c.fetchrow(sql.change_user, id_, role, deactivated_at))
    assert person  # noqa: S101 (locked by the caller)
    return person


async def change_profile(c: Connection, person: Person, news: Mapping[str, str | None]) -> Person:
    new = replace(person, **news)  # type: ignore[arg-type]
    await c.execute(sql.change_profile, new.id, new.display_name, new.language, new.time_zone)
    return new


async def taught_by(c: Connection, teacher_id: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names of their learners, and of those among them whose accounts they look after."""
    found = await c.fetch(sql.taught_by, teacher_id)
    return frozenset(r["name"] for r in found), frozenset(r["name"] for r in found if r["managed"])


async def former_names(c: Connection, id_: str) -> list[str]:
    return [record["name"] for record in await c.fetch(sql.former_names, id_)]


async def lock_admins(c: Connection) -> list[str]:
    return [record["id"] for record in await c.fetch(sql.lock_admins)]


async def replace_link(c: Connection, user_id: str, token_hash: bytes, now: datetime, expires_at: datetime) -> None:
    """One unused link a person: asking again makes the earlier one worthless."""
    await c.execute(sql.drop_links, user_id)
    await c.execute(sql.add_link, token_hash, user_id, now, expires_at)


async def drop_links(c: Connection, user_id: str) -> None:
    """Those that were not used."""
    await c.execute(sql.drop_links, user_id)


async def owner_of_link(c: Connection, token_hash: bytes, now: datetime) -> str | None:
    """Whose unused link this is; None when there is no such link, or it was used, or is too old."""
    name: str | None = await c.fetchval(sql.owner_of_link, token_hash, now)
    return name


async def use_link(c: Connection, token_hash: bytes, now: datetime) -> Person | None:
    """Whose it was; None when it is no good any more, or the person is deactivated.

    The person is locked before the link, as everywhere: a log-in and a deactivation at once neither wait for each
    other in a circle nor leave a session behind.
    """
    name = await owner_of_link(c, token_hash, now)
    person = await lock_user(c, name) if name else None
    if person is None or not person.active or changed(await c.execute(sql.use_link, token_hash, now)) == 0:
        return None
    return person


async def ways_in(c: Connection, user_id: str, working: WorkingWays) -> WaysIn:
    found = one(WaysIn, await c.fetchrow(sql.ways_in, user_id, list(working.issuers), working.passkey_name))
    assert found  # noqa: S101 (a row of counts)
    return found


async def password_of(c: Connection, name: str) -> Password | None:
    return one(Password, await c.fetchrow(sql.password_of, name))


async def set_password(c: Connection, user_id: str, new: NewPassword, now: datetime, by: str) -> None:
    await c.execute(sql.set_password, user_id, new.hash, now, by)


async def find_session(c: Connection, session_id: str) -> BrowserSession | None:
    return one(BrowserSession, await c.fetchrow(sql.find_session, session_id))


async def page_sessions(c: Connection, user_id: str, now: datetime, after: After, limit: int) -> list[BrowserSession]:
    return rows(BrowserSession, await c.fetch(sql.page_sessions, user_id, now, *after, limit))


async def add_token(c: Connection, *fields: Any) -> AccessToken:
    token = one(AccessToken, await c.fetchrow(sql.add_token, *fields))
    assert token  # noqa: S101 (an insert that returns)
    return token


async def find_token(c: Connection, token_id: str) -> AccessToken | None:
    return one(AccessToken, await c.fetchrow(sql.find_token, token_id))


async def page_tokens(c: Connection, user_id: str, after: After, limit: int) -> list[AccessToken]:
    return rows(AccessToken, await c.fetch(sql.page_tokens, user_id, *after, limit))


async def standing(c: Connection, ids: Collection[str], now: datetime) -> dict[str, Role]:
    """Which of these sessions and tokens are good now, and what their people are."""
    return {record["id"]: Role(record["role"]) for record in await c.fetch(sql.standing, list(ids), now)}


async def revoke_all(c: Connection, user_id: str, now: datetime) -> None:
    await c.execute(sql.revoke_sessions_of, user_id, now)
    await c.execute(sql.revoke_tokens_of, user_id, now)
    await drop_links(c, user_id)


def changed(status: str) -> int:
    """How many rows a command touched."""
    return int(status.rsplit(" ", 1)[-1])


async def prune(c: Connection, before: datetime, limit: int) -> int:
    """Remove what expired before `before`; revoked things expire too."""
    return sum(
        [changed(await c.execute(q, before, limit)) for q in (sql.prune_links, sql.prune_sessions, sql.prune_tokens)]
    )
