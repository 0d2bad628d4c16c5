"""What the command-line parts of all capabilities share: settings, logs, and a way to reach the servers."""

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from codehub.clock import SystemClock
from codehub.db import migrate
from codehub.embedded.datadir import DataDir
from codehub.embedded.servers import Urls, reachable
from codehub.policy.model import ALL_SCOPES, Kind, Principal, Role
from codehub.settings import Settings
from codehub.startup import load_settings

if TYPE_CHECKING:
    from codehub.web.services import Services


def operator() -> Principal:
    """Whoever may run commands on this machine may do everything; the audit log says who it was."""
    return Principal(f"cli:{getpass.getuser()}", Role.ADMIN, ALL_SCOPES, kind=Kind.OPERATOR)


def resolve(settings: Settings, urls: Urls) -> Settings:
    """The settings with everything that embedded use leaves open filled in."""
    key = settings.auth.secret_key or DataDir(settings.storage.data_dir).secret("signing-key")
    storage = replace(settings.storage, database_url=urls.database, redis_url=urls.redis)
    return replace(settings, storage=storage, auth=replace(settings.auth, secret_key=key))


def reached_at(settings: Settings) -> str:
    """The address for links: the public one, else that of the instance that runs or ran last, else the settings'."""
    server = settings.server
    noted = DataDir(settings.storage.data_dir).noted_url()
    return (server.public_url or noted or f"http://{server.host}:{server.port}").rstrip("/")


def with_servers(work: Callable[[Settings, Urls], Awaitable[None]]) -> None:
    """For commands that need the database: of the running instance, or started for as long as they take."""
    settings = load_settings("cli")

    async def run() -> None:
        async with reachable(settings) as urls:
            await work(settings, urls)

    asyncio.run(run())


def with_services(work: "Callable[[Services], Awaitable[None]]") -> None:
    from codehub.wiring.api import open_services  # noqa: PLC0415 (who only moves data need not load all)

    async def run(settings: Settings, urls: Urls) -> None:
        if settings.storage.database_url is None:
            await migrate.migrate(urls.database)
        async with open_services(resolve(settings, urls), SystemClock()) as services:
            await work(services)

    with_servers(run)
