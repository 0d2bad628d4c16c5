"""`codehub gc`: what nobody needs any more, and why; and taking it now instead of in some hours."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

import typer

from codehub.archives import ownership
from codehub.archives.objects import open_store
from codehub.clock import SystemClock
from codehub.command import operator, output
from codehub.command.servers import with_servers
from codehub.coordinator import service
from codehub.coordinator.leader import SESSION_SETTINGS, Leader, Lease
from codehub.db import Database, migrate
from codehub.embedded.servers import Urls
from codehub.errors import CodeHubError
from codehub.i18n import locales
from codehub.policy.model import Principal
from codehub.retention import preview, trash
from codehub.retention.gc import Collector, Finder
from codehub.retention.preview import Thing
from codehub.retention.store import sql
from codehub.runtimes import choice
from codehub.settings import Settings
from codehub.system.privileges import service_account

PATIENCE_SECONDS = 600.0
DRY = Annotated[bool, typer.Option("--dry-run", help="Only say what would go, when and why.")]
TAKE = Annotated[bool, typer.Option("--take-over", help="Collect in an object store that another platform has marked.")]


def collect(dry_run: DRY = False, take_over: TAKE = False) -> None:
    """Remove what nobody needs any more: old archives, half-finished uploads, files of no workspace, expired trash.

    The coordinator does this by itself every few hours. Nothing goes that a workspace could still need, and only what
    has been of no use for CODEHUB_ORPHAN_SECONDS.
    """

    async def work(settings: Settings, urls: Urls) -> None:
        if settings.storage.database_url is None:
            await migrate.migrate(urls.database)
        async with _finder(settings, urls) as finder:
            if take_over:
                await ownership.take_over(finder.objects, await finder.platform())
            if dry_run:
                await _tell(finder, SystemClock().now())
            else:
                _report(await _collect(finder))

    with_servers(work)


@contextlib.asynccontextmanager
async def _finder(settings: Settings, urls: Urls) -> AsyncIterator[Finder]:
    storage = settings.storage
    database = await Database.open(urls.database, size=3, session=SESSION_SETTINGS)
    try:
        runtime = choice.open_runtime(
            storage.data_dir,
            settings.runtime,
            service_account(settings.server.user),
            SystemClock(),
            secret_keys=settings.auth.secret_key,
        )
        objects = open_store(storage.object_store_url)
        yield Finder(database, runtime, objects, settings.archives)
    finally:
        await database.close()


# --- saying


async def _tell(finder: Finder, now: datetime) -> None:
    owner, platform = await ownership.owner(finder.objects), await finder.platform()
    rows = [_row(thing, now) for thing in await preview.look(finder, now)]
    if output.as_json:
        names = ("kind", "name", "size", "goes", "reason")
        output.document(
            {"store_is_ours": owner in {None, platform}, "items": [dict(zip(names, row, strict=True)) for row in rows]}
        )
        return
    if owner not in {None, platform}:
        typer.echo("The object store is marked as another platform's: nothing in it is collected (see --take-over).")
    if rows:
        output.table(("What", "Which", "Size", "Goes", "Why"), rows, None)
    typer.echo(f"{len(rows)} to collect. Nothing was changed.")


def _row(thing: Thing, now: datetime) -> tuple[str, ...]:
    size = output.size(thing.bytes) if thing.bytes else ""
    words = {preview.PURGED: "purged", preview.TRASH: "deleted, in the trash"}
    why = words.get(thing.why) or locales.of_shell(os.environ).say(f"rule_{thing.why}")
    return thing.kind, thing.name, size, _when(thing.goes_at, now), why


def _when(at: datetime, now: datetime) -> str:
    minutes = -(-int((at - now).total_seconds()) // 60)
    if minutes <= 0:
        return "now"
    return f"in {minutes} min" if minutes < 120 else f"in {minutes // 60} h" if minutes < 2880 else f"{at:%Y-%m-%d}"


# --- doing


async def _collect(finder: Finder) -> dict[str, Any]:
    """By whoever leads; when nobody does, because the platform is stopped, by ourselves."""
    who = operator()
    before = await _runs(finder, who)
    if before is None:
        return await _collect_ourselves(finder)
    async with finder.database.connection() as c:
        await c.execute(sql.collect_now)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            after = await _runs(finder, who)
            if after is None:
                raise CodeHubError("the coordinator stopped in the middle: run `codehub gc` again")
            if after["runs"] > before["runs"] and not after["running"]:
                return dict(after["stats"])
            await SystemClock().sleep(0.5)


async def _runs(finder: Finder, who: Principal) -> dict[str, Any] | None:
    """How the leader's loop is doing; None when nobody leads."""
    leadership = await service.leadership(finder.database, who)
    found = [loop for loop in leadership.loops if loop["name"] == "gc"]
    if leadership.leader is None:
        return None
    return found[0] if found else {"runs": -1, "running": True, "stats": {}}


async def _collect_ourselves(finder: Finder) -> dict[str, Any]:
    done: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def work(lease: Lease) -> None:
        try:
            emptied = await trash.Trash(lease, finder, SystemClock()).tick()
            collected = await Collector(lease, finder, SystemClock()).tick()
            done.set_result({**emptied.stats, **collected.stats})
        except CodeHubError as e:
            done.set_exception(e)
        await asyncio.Event().wait()

    leader = asyncio.create_task(Leader(finder.database, SystemClock(), f"gc-{os.getpid()}", work, dict).run())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await done
    finally:
        leader.cancel()
        await asyncio.gather(leader, return_exceptions=True)


def _report(stats: dict[str, Any]) -> None:
    lines = [f"{stats.get('collected', 0)} collected, {stats.get('waiting', 0)} wait for their time."]
    if stats.get("adopted"):
        lines.append(f"{stats['adopted']} archives that the database did not know are restore points now.")
    if stats.get("failed"):
        lines.append(f"{stats['failed']} could not be collected; the log says why.")
    if not stats.get("store_is_ours", True):
        lines.append("The object store is marked as another platform's: nothing in it was collected (see --take-over).")
    output.say("\n".join(lines), stats)
