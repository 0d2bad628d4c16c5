"""The API's part of the composition root: connects everything it needs, once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from codehub import peers
from codehub.activity.service import Activity
from codehub.activity.what_if_service import WhatIf
from codehub.assignments import teaching
from codehub.audit.service import AuditLog
from codehub.auth.credentials import CHANNEL
from codehub.auth.streams import OpenStreams
from codehub.backup.requests import Backups
from codehub.classes.overview import Overview
from codehub.clock import Clock
from codehub.coordinator.leader_doors import Doors, LocalDoors, RemoteDoors
from codehub.db import Database, Listener, migrate
from codehub.db.redis import open_redis
from codehub.embedded.datadir import DataDir
from codehub.errors import SettingsError, StartError
from codehub.events.hub import Hub
from codehub.events.model import CHANNEL as EVENTS_CHANNEL
from codehub.events.publisher import Publisher
from codehub.gate import origins
from codehub.gate.access import Access
from codehub.gate.passes import Passes
from codehub.ides.service import Ides
from codehub.invocation import command
from codehub.monitoring.service import Monitoring
from codehub.rates import Rates
from codehub.retention.preview import Previews
from codehub.runtimes import choice
from codehub.runtimes.base import Address, Logs
from codehub.schedules.service import Schedules
from codehub.sessions.places import RunPlaces
from codehub.sessions.practice_results import PracticeResults
from codehub.sessions.practice_store import DONE_CHANNEL as PRACTICE_CHANNEL
from codehub.settings import Settings, sources
from codehub.templates.loader import Templates
from codehub.web.services import Services
from codehub.wiring import learning, people, waiting_room
from codehub.workspaces import changes, routing
from codehub.workspaces.bulk import BulkActions
from codehub.workspaces.finding import AllWorkspaces
from codehub.workspaces.repositories import Repositories
from codehub.workspaces.service import Workspaces
from codehub.workspaces.sharing import Sharing
from codehub.workspaces.ttl_policy import TtlPolicies


@asynccontextmanager
async def open_services(settings: Settings, clock: Clock) -> AsyncIterator[Services]:
    """Connect everything; `settings` must name both servers and a secret key by now."""
    storage, auth = settings.storage, settings.auth
    database_url, redis_url, key = _required(settings)
    database = await Database.open(database_url, size=storage.database_pool_size)
    client = open_redis(redis_url)
    listener = Listener(database_url, clock)
    open_streams = OpenStreams(database, clock)
    publisher = Publisher(database, clock)
    results = PracticeResults(database, clock)
    waiting = waiting_room.build(settings, database, client, clock, key)
    school = people.build(settings, database, client, clock, key)
    try:
        async with database.connection() as c:
            await migrate.require_current(c)
        templates = _templates(settings)
        workspaces = Workspaces(database, clock, settings.limits, templates, waiting.lab)
        where, passes = origins.of(settings), Passes(key)
        doors, logs = _doors(settings, database, clock, key)
        entering = database, clock, workspaces, school.credentials, passes
        ttl_policies = TtlPolicies(settings.ttl, settings.activity, templates)
        about = templates, workspaces, school.classes, results
        learnt = learning.build(settings, database, clock, *about, publisher.wake)
        hub = Hub(database, clock, {**changes.kinds(ttl_policies), **teaching.KINDS})
        listener.subscribe(CHANNEL, school.credentials.forget)
        listener.subscribe(CHANNEL, open_streams.wake)
        listener.subscribe(EVENTS_CHANNEL, hub.wake)
        listener.subscribe(PRACTICE_CHANNEL, results.wake)
        for begins in (listener, results, publisher):
            begins.start()
        yield Services(
            settings=settings,
            clock=clock,
            database=database,
            redis=client,
            listener=listener,
            open_streams=open_streams,
            **vars(school),
            overview=Overview(database, school.classes, workspaces, waiting.room),
            **_for_admins(settings, database, clock, ttl_policies, templates),
            repositories=Repositories(database, clock),
            templates=templates,
            runtime=logs,
            doors=doors,
            workspaces=workspaces,
            hub=hub,
            origins=where,
            passes=passes,
            access=Access(*entering, isolated=where.isolated, session_seconds=auth.session_seconds),
            sharing=Sharing(database, clock, settings.limits, workspaces, school.people, isolated=where.isolated),
            ttl_policies=ttl_policies,
            activity=Activity(database, client, ttl_policies, workspaces),
            rates=Rates(client, clock),
            **vars(learnt),
            schedules=Schedules(database, clock, settings.schedules, school.classes),
            run_places=RunPlaces(database, waiting.lab),
            waiting_room=waiting.room,
            waiting_events=waiting.events,
            waiting_streams=waiting.streams,
        )
    finally:
        for loop in (listener, results, publisher, open_streams):
            await loop.stop()
        for opened in (school.openid, waiting.line, client):
            await opened.aclose()
        await database.close()


def _where(database: Database) -> choice.Where:
    """Where a workspace listens, as its row says."""

    async def where(workspace_id: str) -> Address | None:
        async with database.connection() as c:
            found = await routing.of(c, [workspace_id])
        return Address(**found[0].address) if found and found[0].address else None

    return where


def _for_admins(
    settings: Settings, database: Database, clock: Clock, ttl_policies: TtlPolicies, templates: Templates
) -> dict[str, Any]:
    data = DataDir(settings.storage.data_dir)
    return {
        "backups": Backups(database, clock, None if settings.roles.apart else data.backups),
        "ides": Ides(database, clock, templates),
        "monitoring": Monitoring(database),
        "what_if": WhatIf(database, clock, ttl_policies),
        "audit": AuditLog(database),
        "all_workspaces": AllWorkspaces(database),
        "bulk": BulkActions(database, clock),
        "setting_sources": sources(),
        "previews": Previews(database, clock),
    }


def _doors(settings: Settings, database: Database, clock: Clock, key: str) -> tuple[Doors, Logs]:
    """Where the leader is asked for homes, and where logs come from."""
    data_dir, apart = settings.storage.data_dir, settings.roles.apart
    doors = RemoteDoors(database, peers.of(key)) if apart else LocalDoors(DataDir(data_dir))
    return doors, choice.open_logs(data_dir, settings.runtime, clock, doors, _where(database), key)


def _required(settings: Settings) -> tuple[str, str, str]:
    storage, key = settings.storage, settings.auth.secret_key
    if not (storage.database_url and storage.redis_url and key):
        raise StartError(
            f"set CODEHUB_DATABASE_URL, CODEHUB_REDIS_URL and CODEHUB_SECRET_KEY, or use `{command('serve')}`"
        )
    return storage.database_url, storage.redis_url, key


def _templates(settings: Settings) -> Templates:
    templates = Templates.load(settings.runtime.templates_dir, settings.storage.data_dir, settings.runtime.runtime)
    if templates.find(settings.practice.template) is None:
        known = ", ".join(template.name for template in templates.all())
        raise SettingsError(
            f"CODEHUB_PRACTICE_TEMPLATE={settings.practice.template}: no such template; there are: {known}"
        )
    return templates
