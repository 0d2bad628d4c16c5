"""What tests about people share: acting as the operator, reading the audit log and whole tables."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from codehub.audit.model import AuditEntry
from codehub.auth.logins import Browser
from codehub.auth.service import NewToken
from codehub.command import operator
from codehub.policy.model import Origin, Principal, Role
from codehub.web.services import Services

BROWSER = Origin("nobody", "request-1", "192.0.2.1")


async def add(services: Services, name: str, role: Role = Role.LEARNER) -> None:
    await services.people.create_user(operator(), name, role)


async def make_link(services: Services, name: str) -> str:
    return (await services.people.make_login_link(operator(), name)).secret


async def log_in(services: Services, name: str) -> str:
    """Returns the cookie."""
    return await services.people.log_in(await make_link(services, name), Browser("a browser", BROWSER))


async def make_token(services: Services, name: str, by: Principal | None = None, **wanted: Any) -> NewToken:
    request = {"label": "", "scopes": None, "days": None, **wanted}
    return await services.people.create_token(by or operator(), name, **request)


async def who(services: Services, cookie: str) -> Principal:
    return (await services.credentials.by_cookie(cookie, BROWSER)).caller


async def deactivate(services: Services, name: str, by: Principal | None = None) -> None:
    await services.people.change_user(by or operator(), name, role=None, active=False)


async def entries(services: Services, code: str) -> list[AuditEntry]:
    """Audit entries of this kind, newest first."""
    found = await services.audit.page(operator(), before=None, actor=None, subject=None, limit=1000)
    return [entry for entry in found if entry.code == code]


async def everything_stored(services: Services) -> str:
    """All rows of all tables, as text."""
    async with services.database.connection() as c:
        tables = await c.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = [await c.fetch(f"SELECT t::text AS row FROM {table['tablename']} t") for table in tables]
    return "\n".join(row["row"] for found in rows for row in found)


async def eventually(holds: Callable[[], Awaitable[Any]], seconds: float) -> None:
    """Within so many real seconds."""
    async with asyncio.timeout(seconds):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.01)
