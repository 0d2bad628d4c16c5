"""The composition root: builds what the API needs, once, and hands it around. The only place that knows everybody."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import redis.asyncio

from codehub.activity.service import Activity
from codehub.audit.service import AuditLog
from codehub.auth.credentials import CHANNEL, Credentials
from codehub.auth.service import People
from codehub.auth.streams import OpenStreams
from codehub.clock import Clock
from codehub.db import Database, Listener, migrate
from codehub.db.redis import open_redis
from codehub.errors import StartError
from codehub.gate import origins
from codehub.gate.origins import Origins
from codehub.gate.passes import Passes
from codehub.rates import Rates
from codehub.runtimes.base import Runtime
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import Settings
from codehub.templates.loader import Templates
from codehub.workspaces import events, leaving
from codehub.workspaces.entering import Entering
from codehub.workspaces.service import Workspaces
from codehub.workspaces.timetable import Timetable

if TYPE_CHECKING:  # commands have services too, and no requests
    from starlette.requests import Request


@dataclass(frozen=True)
class Services:
    settings: Settings
    clock: Clock
    database: Database
    redis: redis.asyncio.Redis
    listener: Listener
    credentials: Credentials
    open_streams: OpenStreams
    people: People
    audit: AuditLog
    templates: Templates
    runtime: Runtime
    workspaces: Workspaces
    relay: events.Relay
    origins: Origins
    passes: Passes
    entering: Entering
    timetable: Timetable
    activity: Activity
    rates: Rates

    def base_url(self, request: "Request") -> str:
        """Where this person reached us, for links we hand out."""
        return (self.settings.server.public_url or str(request.base_url)).rstrip("/")


@asynccontextmanager
async def open_services(settings: Settings, clock: Clock) -> AsyncIterator[Services]:
    """Connect everything; `settings` must name both servers and a secret key by now."""
    storage, auth = settings.storage, settings.auth
    if not (storage.database_url and storage.redis_url and auth.secret_key):
        raise StartError("set CODEHUB_DATABASE_URL, CODEHUB_REDIS_URL and CODEHUB_SECRET_KEY, or use `codehub serve`")
    database = await Database.open(storage.database_url, size=storage.database_pool_size)
    client = open_redis(storage.redis_url)
    listener = Listener(storage.database_url, clock)
    open_streams = OpenStreams(database, clock)
    try:
        async with database.connection() as c:
            await migrate.require_current(c)
        credentials = Credentials(database, clock, auth, auth.secret_key)
        templates = Templates.load(settings.runtime.templates_dir, storage.data_dir)
        workspaces = Workspaces(database, clock, settings.limits, templates)
        people = People(database, clock, auth, settings.limits, credentials, leaving.put_away)
        where = origins.of(settings)
        timetable = Timetable(settings.ttl, settings.activity, templates)
        relay = events.Relay(database, clock, timetable)
        listener.subscribe(CHANNEL, credentials.forget)
        listener.subscribe(CHANNEL, open_streams.wake)
        listener.subscribe(events.CHANNEL, relay.wake)
        listener.start()
        yield Services(
            settings,
            clock,
            database,
            client,
            listener,
            credentials,
            open_streams,
            people,
            AuditLog(database),
            templates,
            # Only for what needs no rights: showing logs.
            ProcessRuntime(storage.data_dir, settings.runtime, None, clock),
            workspaces,
            relay,
            where,
            Passes(auth.secret_key),
            Entering(database, clock, settings.limits, workspaces, people, isolated=where.isolated),
            timetable,
            Activity(database, client, timetable, workspaces),
            Rates(client, clock),
        )
    finally:
        await listener.stop()
        await open_streams.stop()
        await client.aclose()
        await database.close()
