"""Builds a worker's director from the settings, and keeps it informed for as long as the worker lives."""

import pathlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from urllib.parse import urlsplit

from codehub import ids, peers
from codehub.activity.recorder import Recorder
from codehub.auth.credentials import CHANNEL as PEOPLE_CHANNEL
from codehub.auth.credentials import Credentials
from codehub.auth.revocations import Revocations
from codehub.clock import Clock
from codehub.db import Database, Listener
from codehub.db.redis import open_redis
from codehub.embedded.datadir import DataDir
from codehub.errors import StartError
from codehub.events.model import CHANNEL as EVENTS_CHANNEL
from codehub.gate import hosts, lab_files, origins, passes
from codehub.gate.access import Access
from codehub.gate.director import Activity, WorkspaceDirector
from codehub.gate.principals import Principals
from codehub.gate.routes import Routes
from codehub.invocation import command
from codehub.proxy.model import Address
from codehub.proxy.server import Engine
from codehub.proxy.workers import BuildDirector
from codehub.recurring import Recurring
from codehub.settings import Settings
from codehub.templates.loader import Templates
from codehub.waiting_room import front_door
from codehub.waiting_room.lab import Lab
from codehub.waiting_room.line import Line
from codehub.waiting_room.tokens import Tokens
from codehub.wiring import doors
from codehub.workspaces.service import Workspaces
from codehub.workspaces.ttl_policy import TtlPolicies

CONNECTIONS = 4
LOOK_SECONDS = 5.0


def api_address(settings: Settings, socket: pathlib.Path | None = None) -> Address:
    """Where the API is: elsewhere, as the settings say, or on this machine, at that socket or in the data directory."""
    urls = [urlsplit(url) for url in settings.roles.api_urls]
    if socket or not urls:
        return Address(path=str(socket or DataDir(settings.storage.data_dir).api_socket))
    if not settings.auth.secret_key:
        raise StartError("CODEHUB_API_URL: needs CODEHUB_SECRET_KEY, by which proxy and API know each other")
    (host, port), *others = [(url.hostname or "", url.port or 0) for url in urls]
    return Address(host=host, port=port, tls=peers.of(settings.auth.secret_key).client, others=tuple(others))


def build_director(settings: Settings, clock: Clock, api: Address, activity: Activity | None = None) -> BuildDirector:
    """`activity`: who is told what people do; unless it is given, each worker has a recorder of its own."""

    @asynccontextmanager
    async def directed(engine: Engine) -> AsyncIterator[WorkspaceDirector]:
        storage, key = settings.storage, settings.auth.secret_key
        if not (storage.database_url and storage.redis_url and key):
            raise StartError(
                f"set CODEHUB_DATABASE_URL, CODEHUB_REDIS_URL and CODEHUB_SECRET_KEY, or use `{command('serve')}`"
            )
        database = await Database.open(storage.database_url, size=CONNECTIONS)
        listener = Listener(storage.database_url, clock)
        where = origins.of(settings)
        credentials = Credentials(database, clock, settings.auth, key)
        templates = Templates.load(settings.runtime.templates_dir, storage.data_dir, settings.runtime.runtime)
        workspaces = Workspaces(database, clock, settings.limits, templates, Lab(clock, Tokens(key)))
        signed = passes.Passes(key)
        client = open_redis(storage.redis_url)
        principals = Principals(credentials, settings.session_cookie)
        line = Line(client, clock, settings.queue)
        recorder = Recorder(client, clock, ids.new(16), settings.activity)
        isolated, seconds = where.isolated, settings.auth.session_seconds
        access = Access(database, clock, workspaces, credentials, signed, isolated=isolated, session_seconds=seconds)
        director = WorkspaceDirector(
            engine,
            api,
            clock=clock,
            origins=where,
            hosts=hosts.of_settings(settings),
            passes=signed,
            pass_cookies=(passes.cookie_name(settings, isolated=where.isolated), passes.worker_cookie_name(settings)),
            principals=principals,
            credentials=credentials,
            revocations=Revocations(database, clock),
            access=access,
            templates=templates,
            ttl_policies=TtlPolicies(settings.ttl, settings.activity, templates),
            activity=activity or recorder,
            open_routes=lambda changed: Routes(database, clock, changed),
            handlers={front_door.PATH: front_door.Polls(line, Tokens(key), clock, settings.queue)},
            shared_files=lab_files.of_platform(where),
            doors=doors.of(settings),
        )
        watcher = Recurring("revocations", director.close_revoked, clock, period=LOOK_SECONDS)
        listener.subscribe(PEOPLE_CHANNEL, credentials.forget)
        listener.subscribe(PEOPLE_CHANNEL, principals.forget)
        listener.subscribe(PEOPLE_CHANNEL, watcher.wake)
        listener.subscribe(EVENTS_CHANNEL, director.routes.wake)
        try:
            await director.close_revoked()
            await director.routes.start()
            watcher.start()
            listener.start()
            await listener.connected()  # before anybody is served: what is revoked from now on is heard of
            async with nullcontext() if activity else recorder.run():
                yield director
        finally:
            await line.aclose()
            await listener.stop()
            await watcher.stop()
            await principals.stop()
            await director.routes.stop()
            await client.aclose()
            await database.close()

    return directed
