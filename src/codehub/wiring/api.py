"""The API's part of the composition root: connects everything it needs, once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from codehub.activity.service import Activity
from codehub.audit.service import AuditLog
from codehub.auth.credentials import CHANNEL, Credentials
from codehub.auth.service import People
from codehub.auth.streams import OpenStreams
from codehub.clock import Clock
from codehub.courses.service import Courses
from codehub.db import Database, Listener, migrate
from codehub.db.redis import open_redis
from codehub.errors import SettingsError, StartError
from codehub.events.hub import Hub
from codehub.events.model import CHANNEL as EVENTS_CHANNEL
from codehub.events.publisher import Publisher
from codehub.gate import origins
from codehub.gate.access import Access
from codehub.gate.passes import Passes
from codehub.invocation import command
from codehub.rates import Rates
from codehub.runtimes.process import ProcessRuntime
from codehub.sessions.blueprints import Blueprints
from codehub.sessions.practice import Practice
from codehub.sessions.practice_results import PracticeResults
from codehub.sessions.practice_store import DONE_CHANNEL as PRACTICE_CHANNEL
from codehub.sessions.runs import Runs
from codehub.sessions.service import Sessions
from codehub.settings import Settings
from codehub.templates.loader import Templates
from codehub.web.services import Services
from codehub.workspaces import changes, leaving
from codehub.workspaces.service import Workspaces
from codehub.workspaces.sharing import Sharing
from codehub.workspaces.ttl_policy import TtlPolicies


@asynccontextmanager
async def open_services(settings: Settings, clock: Clock) -> AsyncIterator[Services]:
    """Connect everything; `settings` must name both servers and a secret key by now."""
    storage, auth = settings.storage, settings.auth
    if not (storage.database_url and storage.redis_url and auth.secret_key):
        raise StartError(
            f"set CODEHUB_DATABASE_URL, CODEHUB_REDIS_URL and CODEHUB_SECRET_KEY, or use `{command('serve')}`"
        )
    database = await Database.open(storage.database_url, size=storage.database_pool_size)
    client = open_redis(storage.redis_url)
    listener = Listener(storage.database_url, clock)
    open_streams = OpenStreams(database, clock)
    publisher = Publisher(database, clock)
    results = PracticeResults(database, clock)
    try:
        async with database.connection() as c:
            await migrate.require_current(c)
        credentials = Credentials(database, clock, auth, auth.secret_key)
        templates = _templates(settings)
        workspaces = Workspaces(database, clock, settings.limits, templates)
        people = People(database, clock, auth, settings.limits, credentials, leaving.put_away)
        where, passes = origins.of(settings), Passes(auth.secret_key)
        ttl_policies = TtlPolicies(settings.ttl, settings.activity, templates)
        blueprints = Blueprints()
        practice = Practice(database, clock, settings.practice, workspaces, blueprints, results)
        sessions = Sessions(database, clock, settings.sessions, templates, blueprints, publisher.wake)
        hub = Hub(database, clock, changes.kinds(ttl_policies))
        listener.subscribe(CHANNEL, credentials.forget)
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
            credentials=credentials,
            open_streams=open_streams,
            people=people,
            audit=AuditLog(database),
            templates=templates,
            # Only for what needs no rights: showing logs.
            runtime=ProcessRuntime(storage.data_dir, settings.runtime, None, clock),
            workspaces=workspaces,
            hub=hub,
            origins=where,
            passes=passes,
            access=Access(
                *(database, clock, workspaces, credentials, passes),
                isolated=where.isolated,
                session_seconds=auth.session_seconds,
            ),
            sharing=Sharing(database, clock, settings.limits, workspaces, people, isolated=where.isolated),
            ttl_policies=ttl_policies,
            activity=Activity(database, client, ttl_policies, workspaces),
            rates=Rates(client, clock),
            sessions=sessions,
            courses=Courses(database, clock, settings.sessions, sessions),
            runs=Runs(database, clock, settings.sessions, blueprints, practice, publisher.wake),
            practice=practice,
        )
    finally:
        for loop in (listener, results, publisher, open_streams):
            await loop.stop()
        await client.aclose()
        await database.close()


def _templates(settings: Settings) -> Templates:
    templates = Templates.load(settings.runtime.templates_dir, settings.storage.data_dir)
    if templates.find(settings.practice.template) is None:
        known = ", ".join(template.name for template in templates.all())
        raise SettingsError(
            f"CODEHUB_PRACTICE_TEMPLATE={settings.practice.template}: no such template; there are: {known}"
        )
    return templates
