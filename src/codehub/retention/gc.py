"""The garbage collection: finds what nobody needs, waits, looks again under the lock, and only then destroys it.

A loop of the coordinator (`loop`), and `codehub gc`. Finding is cheap and coarse, a batch at a time; what is found is
noted in the database with the time, and goes when it has been of no use for `CODEHUB_ORPHAN_SECONDS`. Before anything
goes, the workspace's row is locked and the same rule is asked again. Condemned is for ever: whoever comes late, even a
leader that was stopped for a week, destroys only what nobody could take up again.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from codehub import logs
from codehub.archives import ownership
from codehub.archives import service as archives
from codehub.archives.model import ArchiveError
from codehub.archives.objects import ObjectStore
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.coordinator.setbacks import Setbacks
from codehub.db import Database
from codehub.errors import LeaseLostError, UnavailableError
from codehub.policy.model import Origin
from codehub.retention import rules, store
from codehub.retention.rules import Facts, Points, Rule, Stored, Verdict
from codehub.retention.store import Orphan, sql
from codehub.runtimes.base import DiskItem, Runtime
from codehub.settings import ArchiveConfig
from codehub.workspaces import history
from codehub.workspaces import store as workspaces

log = logs.get()
ACTOR = "gc"
BATCH = 500
COLLECTED = {"archive": history.ArchiveCollected, "volume": history.VolumeCollected}
AUDITED = {"archive": Code.ARCHIVE_COLLECT, "volume": Code.VOLUME_COLLECT}
AT_ONCE = 1_000
TIMEOUT_SECONDS = 3600.0


@dataclass(frozen=True)
class Finding:
    """Something that lies around, and what the rule says of it."""

    kind: str  # `archive`, `volume`, `container`
    name: str
    workspace_id: str
    bytes: int
    verdict: Verdict
    thing: Any
    seen_at: datetime | None = None  # since when it is an orphan; None: since now


class Finder:
    """Looks around and changes nothing: for `codehub gc --dry-run`, and the first half of a collection."""

    def __init__(self, database: Database, runtime: Runtime, objects: ObjectStore, config: ArchiveConfig) -> None:
        self.database = database
        self.runtime = runtime
        self.objects = objects
        self.config = config

    async def platform(self) -> str:
        async with self.database.connection() as c:
            return str(await c.fetchval(sql.platform))

    async def find(self, *, with_archives: bool = True) -> AsyncIterator[list[Finding]]:
        """Everything there is, in batches: archives, what lies on disk, containers."""
        if with_archives:
            async for batch in self._stored():
                yield await self._judge_archives(batch)
        for items in _batches(list(await self.runtime.disk_items())):
            known = await self._facts({item.workspace_id for item in items})
            yield [_of_disk_item(p, rules.judge_disk_item(p, known.get(p.workspace_id))) for p in items]
        containers = await self.runtime.containers()
        known = await self._facts(set(containers))
        yield [Finding("container", id_, id_, 0, rules.judge_container(known.get(id_)), id_) for id_ in containers]

    async def since(self, findings: list[Finding]) -> list[Finding]:
        """The same, with the time since when each is known to be an orphan."""
        async with self.database.connection() as c:
            found = await c.fetch(sql.orphans_seen, [finding.name for finding in findings])
        seen = {(record["kind"], record["name"]): record["seen_at"] for record in found}
        return [replace(f, seen_at=seen.get((f.kind, f.name))) for f in findings]

    async def _facts(self, ids: set[str]) -> dict[str, Facts]:
        async with self.database.connection() as c:
            return await store.facts(c, ids)

    async def _stored(self) -> AsyncIterator[list[Stored]]:
        """Objects by base. What a store lists in pieces is put together again when it matters: under the lock."""
        batch: dict[str, Stored] = {}
        async for item in self.objects.list(""):
            ours = rules.base_of(item.key)
            if ours is None:
                continue
            base, name = ours
            if base not in batch and len(batch) >= BATCH:
                yield list(batch.values())
                batch = {}
            before = batch.get(base, Stored(base, frozenset(), 0))
            batch[base] = Stored(base, before.names | {name}, before.bytes + item.size)
        if batch:
            yield list(batch.values())

    async def look(self, base: str) -> Stored:
        """One base, completely."""
        names, size = set(), 0
        async for item in self.objects.list(base):
            names.add(item.key.rsplit("/", 1)[1])
            size += item.size
        return Stored(base, frozenset(names), size)

    async def _judge_archives(self, batch: list[Stored]) -> list[Finding]:
        ids = {stored.workspace_id for stored in batch}
        async with self.database.connection() as c:
            known, points = await store.facts(c, ids), await store.points(c, ids)
        return [_of_archive(s, self.judge(s, known.get(s.workspace_id), points.get(s.workspace_id))) for s in batch]

    def judge(self, stored: Stored, w: Facts | None, points: Points | None) -> Verdict:
        return rules.judge_archive(stored, w, points or Points(), self.config.restore_points)


def _of_archive(stored: Stored, verdict: Verdict) -> Finding:
    return Finding("archive", stored.base, stored.workspace_id, stored.bytes, verdict, stored)


def _of_disk_item(item: DiskItem, verdict: Verdict) -> Finding:
    return Finding("volume", f"{item.workspace_id}/{item.generation}", item.workspace_id, 0, verdict, item)


def _batches(items: list[DiskItem]) -> list[list[DiskItem]]:
    return [items[first : first + BATCH] for first in range(0, len(items), BATCH)]


class Collector:
    """One leader's garbage collection."""

    def __init__(self, lease: Lease, finder: Finder, clock: Clock) -> None:
        self._lease = lease
        self._finder = finder
        self._clock = clock
        self._setbacks = {kind: Setbacks(lease, clock, kind) for kind in ("archive", "volume")}
        self._more = False  # the last tick left some that are due: no need to look around again

    async def tick(self) -> Tick:
        platform = await self._finder.platform()
        ours = await ownership.claim(self._finder.objects, platform) == platform
        stats = {"noted": 0, "adopted": 0, "stopped": 0, "collected": 0, "failed": 0}
        if not ours:
            log.warning("The object store belongs to another platform: nothing in it is collected")
        if not self._more:
            async for batch in self._finder.find(with_archives=ours):
                await self._note(batch, stats)
        await self._collect(stats, with_archives=ours)
        async with self._lease.database.connection() as c:
            waiting = await c.fetchval(sql.waiting)
        return Tick({**stats, "waiting": waiting, "store_is_ours": ours}, 1.0 if self._more else None)

    # --- find

    async def _note(self, batch: list[Finding], stats: dict[str, int]) -> None:
        for kind in ("archive", "volume"):
            some = [f for f in batch if f.kind == kind]
            orphans = [f for f in some if f.verdict.orphan]
            columns = ([f.name for f in orphans], [f.workspace_id for f in orphans])
            more = ([f.verdict.rule for f in orphans], [f.bytes for f in orphans])
            if some:
                async with self._lease.transaction() as c:
                    await c.execute(sql.forget_orphans, kind, [f.name for f in some if not f.verdict.orphan])
                    await c.execute(sql.note_orphans, kind, *columns, *more, self._clock.now())
            stats["noted"] += len(orphans)
        for finding in batch:
            if finding.verdict.adopt:
                stats["adopted"] += await self._adopt(finding.thing)
            if finding.kind == "container" and finding.verdict.orphan:
                log.warning("Stopping a container", workspace=finding.name, rule=finding.verdict.rule)
                await self._finder.runtime.stop(finding.name, grace_seconds=1.0)
                stats["stopped"] += 1

    async def _adopt(self, stored: Stored) -> bool:
        """A verified archive that the database does not know, after it was restored from a backup: list it."""
        try:
            meta = await archives.read_meta(self._finder.objects, stored.key)
        except ArchiveError as e:
            log.warning("An archive cannot be used", archive=stored.key, error=e.detail)
            return False
        async with self._lease.transaction() as c:
            if await c.fetch(sql.condemned, [stored.base]):
                return False
            figures = (meta.created_at, meta.size, meta.content_bytes, meta.files)
            added = await c.fetchval(
                workspaces.points.adopt_point, stored.key, stored.workspace_id, stored.op_id, *figures
            )
        return added is not None

    # --- collect

    async def _collect(self, stats: dict[str, int], *, with_archives: bool) -> None:
        before = self._clock.now() - timedelta(seconds=self._finder.config.orphan_seconds)
        async with self._lease.database.connection() as c:
            for setbacks in self._setbacks.values():
                await setbacks.load(c)
            waiting = {kind: setbacks.waiting() for kind, setbacks in self._setbacks.items()}
            due = await store.due(c, before, waiting, ["archive", "volume"] if with_archives else ["volume"], AT_ONCE)
        self._more = len(due) == AT_ONCE
        for orphan in due:
            try:
                stats["collected"] += await self._take(orphan)
                await self._setbacks[orphan.kind].clear(orphan.name)
            except (LeaseLostError, UnavailableError):
                raise
            except Exception as e:  # noqa: BLE001 (whatever is wrong with this one, the others are collected)
                stats["failed"] += 1
                await self._setbacks[orphan.kind].note(orphan.name, e)

    async def _take(self, orphan: Orphan) -> bool:
        verdict = await (self._condemn_archive if orphan.kind == "archive" else self._condemn_volume)(orphan)
        if verdict is None:
            return False
        if orphan.kind == "archive":
            await archives.delete(self._finder.objects, Stored(orphan.name, frozenset(), 0).key)
        else:
            await self._finder.runtime.delete_volume(orphan.workspace_id, orphan.name.partition("/")[2])
        now = self._clock.now()
        collected = COLLECTED[orphan.kind](verdict.rule, orphan.bytes, orphan.seen_at)
        async with self._lease.transaction() as c:
            if not await c.fetchval(sql.gone, orphan.kind, orphan.name):
                return False  # another one was at it, too
            await audit.record(c, now, Origin(ACTOR), AUDITED[orphan.kind], orphan.name, **collected.data())
            if orphan.workspace_id in await store.facts(c, [orphan.workspace_id]):
                await workspaces.note(c, orphan.workspace_id, now, workspaces.Change(ACTOR, collected))
        return True

    async def _condemn_archive(self, orphan: Orphan) -> Verdict | None:
        """Under the workspace's lock: is it still one? Then it is one for ever."""
        stored = await self._finder.look(orphan.name)
        async with self._lease.transaction() as c:
            w = await store.lock_facts(c, orphan.workspace_id)
            points = await store.points(c, [orphan.workspace_id])
            verdict = self._finder.judge(stored, w, points.get(orphan.workspace_id))
            if orphan.condemned_at is not None:
                return Verdict(True, Rule(orphan.rule))
            if not stored.names or not verdict.orphan:
                await c.execute(sql.forget_orphans, orphan.kind, [orphan.name])
                return None
            await c.execute(sql.drop_point, stored.key)
            await c.execute(sql.condemn, orphan.kind, orphan.name, self._clock.now())
        return verdict

    async def _condemn_volume(self, orphan: Orphan) -> Verdict | None:
        generation = orphan.name.partition("/")[2]
        there = [p for p in await self._finder.runtime.disk_items([orphan.workspace_id]) if p.generation == generation]
        async with self._lease.transaction() as c:
            w = await store.lock_facts(c, orphan.workspace_id)
            verdicts = [rules.judge_disk_item(item, w) for item in there]
            if not there or not all(verdict.orphan for verdict in verdicts):
                await c.execute(sql.forget_orphans, orphan.kind, [orphan.name])
                return None
            await c.execute(sql.condemn, orphan.kind, orphan.name, self._clock.now())
        return verdicts[0]


def loop(lease: Lease, finder: Finder, clock: Clock) -> Loop:
    collector = Collector(lease, finder, clock)
    return Loop("gc", collector.tick, period=finder.config.gc_interval, timeout=TIMEOUT_SECONDS)
