"""SQL about passkeys; rows become frozen dataclasses here. Whoever writes has the person's row locked."""

from datetime import datetime

from codehub.db import Connection, Queries, one, rows
from codehub.passkeys.model import NewCredential, Passkey

sql = Queries("codehub.passkeys")
After = tuple[datetime, str]


async def add(
    c: Connection, id_: str, user_id: str, new: NewCredential, label: str, belongs_to: str, now: datetime
) -> Passkey | None:
    """None: it is registered already, for this person or another one."""
    fields = (new.credential_id, new.public_key, new.sign_count, label, new.transports, belongs_to, now)
    return one(Passkey, await c.fetchrow(sql.add, id_, user_id, *fields))


async def of_user(c: Connection, user_id: str) -> list[Passkey]:
    return rows(Passkey, await c.fetch(sql.of_user, user_id))


async def page(c: Connection, user_id: str, after: After, limit: int) -> list[Passkey]:
    return rows(Passkey, await c.fetch(sql.page, user_id, *after, limit))


async def find(c: Connection, id_: str, user_id: str) -> Passkey | None:
    return one(Passkey, await c.fetchrow(sql.find, id_, user_id))


async def find_credential(c: Connection, credential_id: bytes) -> Passkey | None:
    return one(Passkey, await c.fetchrow(sql.find_credential, credential_id))


async def owner_name(c: Connection, passkey: Passkey) -> str:
    name: str = await c.fetchval(sql.owner_name, passkey.user_id)
    return name
