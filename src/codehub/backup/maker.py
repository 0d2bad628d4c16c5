"""The coordinator's part of backups that a page asked for: makes one at a time, in a task beside its ticks.

A tick reads the rows and does what they ask for: begin, cancel, remove, forget the oldest. It also brings rows and
files together, so that a coordinator may be killed anywhere: a file has its name only when it is whole; a row whose
maker is gone becomes done when its file is there, and failed when it is not.
"""

import asyncio
import errno
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from codehub import logs
from codehub.archives.model import DATA_NAME
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.backup import homes, kept_files, kept_store, rules, service
from codehub.backup.kept_files import File
from codehub.backup.kept_store import sql
from codehub.backup.model import Failure, Kept, Manifest, State
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.errors import CodeHubError, StartError
from codehub.policy.model import Origin

log = logs.get()
NAME = "backups"
PERIOD_SECONDS = 30.0
WHILE_MAKING_SECONDS = 1.0
FAILED_KEPT = 5
LONGEST_DETAIL = 500
LOOK_BYTES = 64 * 1024 * 1024  # read between two looks at the disk
ACTOR = "codehub"


class FullDiskError(StartError):
    """Before the disk is full: the database lies on it, too."""


@dataclass(frozen=True)
class Place:
    """What a backup is made of, and where it goes."""

    database_url: str
    signing_key: str | None
    files: homes.Files
    folder: pathlib.Path
    free: Callable[[pathlib.Path], int] = kept_files.free


@dataclass
class Count:
    """How far it is. What is begun ends what was before."""

    has_room: Callable[[], bool]
    things: int = 0
    bytes: int = 0
    things_done: int = -1
    _before: int = 0  # bytes of what is done
    _current: int = 0
    _expected: int = 0
    _looked_at: int = 0
    _all: int = field(default=0)

    def expect(self, things: int, size: int) -> None:
        self.things, self.bytes = things, size
        self._look()

    def begin(self, _what: str, total: int | None = None) -> None:
        self._before += self._expected
        self._current, self._expected = 0, total or 0
        self.things_done += 1

    def count(self, size: int) -> None:
        self._current += size
        self._all += size
        if self._all - self._looked_at >= LOOK_BYTES:
            self._look()

    def _look(self) -> None:
        self._looked_at = self._all
        if not self.has_room():
            raise FullDiskError("the disk of the data directory is nearly full")

    @property
    def bytes_done(self) -> int:
        """A home is smaller when it is packed, so of one it is at most all of it."""
        return self._before + min(self._current, self._expected)


@dataclass
class Making:
    id: str
    count: Count
    task: "asyncio.Task[Manifest]"


class Maker:
    def __init__(self, lease: Lease, clock: Clock, place: Place, keep: int, nudge: Callable[[], None]) -> None:
        self._lease = lease
        self._clock = clock
        self._place = place
        self._keep = keep
        self._nudge = nudge
        self._making: Making | None = None
        self._begun = False

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, longest_pause=PERIOD_SECONDS)

    async def close(self) -> None:
        """This leader's time is over; the next one says so of what it was making."""
        if self._making:
            self._making.task.cancel()
            await asyncio.gather(self._making.task, return_exceptions=True)

    async def tick(self) -> Tick:
        if not self._begun:
            await self._begin()
        if self._making and self._making.task.done():
            await self._finish(self._making)
            self._making = None
        async with self._lease.database.connection() as c:
            found = await kept_store.all_of(c)
        there = await asyncio.to_thread(kept_files.files, self._place.folder)
        await self._settle(found, there)
        await self._make_room(found)
        await self._make(found)
        if self._making is None:
            return Tick({"kept": len(there), "making": 0})
        await self._note(self._making)
        return Tick({"kept": len(there), "making": 1}, WHILE_MAKING_SECONDS)

    async def _begin(self) -> None:
        """The first tick of a leader: nothing is being made that it did not begin."""
        await self._lease.require()
        await asyncio.to_thread(kept_files.prepare, self._place.folder)
        if gone := await asyncio.to_thread(kept_files.remove_left_over, self._place.folder):
            log.warning("Removed what an interrupted backup had left", files=gone)
        self._begun = True

    # --- rows and files

    async def _settle(self, found: Sequence[Kept], there: dict[str, File]) -> None:
        now, known = self._clock.now(), {kept.id for kept in found}
        ours = self._making.id if self._making else None
        lost = [kept for kept in found if kept.state in {State.RUNNING, State.CANCELLING} and kept.id != ours]
        vanished = [kept.id for kept in found if kept.state is State.DONE and kept.id not in there]
        strange = [file for id_, file in there.items() if id_ not in known]
        if not (lost or vanished or strange):
            return
        async with self._lease.transaction() as c:
            for kept in lost:
                file = there.get(kept.id)
                await c.execute(sql.finish, kept.id, *_of_the_lost(kept, file, now))
            await c.execute(sql.remove, vanished)
            for file in strange:
                await c.execute(sql.found, file.id, file.made_at, file.size)
            await kept_store.tell(c, now, [*(kept.id for kept in lost), *vanished, *(file.id for file in strange)])

    async def _make_room(self, found: Sequence[Kept]) -> None:
        """First the row says that it goes, then the file goes, then the row: killed in between, it goes on."""
        now, beyond = self._clock.now(), rules.too_many(found, self._keep)
        going = [kept.id for kept in found if kept.state is State.DELETING]
        if beyond:
            async with self._lease.transaction() as c:
                for kept in beyond:
                    await c.execute(sql.move, kept.id, State.DELETING, None)
                    said = {"asked_at": kept.asked_at.isoformat(), "why": "newer_backups"}
                    await audit.record(c, now, Origin(ACTOR), Code.BACKUP_DELETE, kept.id, **said)
            going += [kept.id for kept in beyond]
        for id_ in going:
            await asyncio.to_thread(kept_files.remove, self._place.folder, id_)
        if going:
            async with self._lease.transaction() as c:
                await c.execute(sql.remove, going)
                await c.execute(sql.forget_failed, FAILED_KEPT)
                await kept_store.tell(c, now, going)

    # --- making one

    async def _make(self, found: Sequence[Kept]) -> None:
        for kept in found:
            if kept.state is State.CANCELLING and self._making and self._making.id == kept.id:
                self._making.task.cancel()
            elif kept.state is State.ASKED and self._making is None:
                await self._start(kept)

    async def _start(self, kept: Kept) -> None:
        now = self._clock.now()
        async with self._lease.transaction() as c:
            if await c.fetchval(sql.begin, kept.id, now, self._lease.epoch) is None:
                return  # it was cancelled in this moment
            await kept_store.tell(c, now, [kept.id])
        place = self._place
        count = Count(lambda: place.free(place.folder) > rules.RESERVE_BYTES)
        work = service.write(
            place.database_url,
            place.folder / kept_files.name_of(kept.id, kept.asked_at),
            signing_key=place.signing_key,
            now=now,
            force=False,
            meter=count,
            files=place.files,
        )
        task = asyncio.create_task(work, name="backup")
        task.add_done_callback(lambda _: self._nudge())
        self._making = Making(kept.id, count, task)

    async def _note(self, making: Making) -> None:
        count = making.count
        async with self._lease.transaction() as c:
            figures = max(count.things_done, 0), count.things, count.bytes_done, count.bytes
            await c.execute(sql.progress, making.id, *figures)
            await kept_store.tell(c, self._clock.now(), [making.id])

    async def _finish(self, making: Making) -> None:
        there = (await asyncio.to_thread(kept_files.files, self._place.folder)).get(making.id)
        state, contents, failure, detail = _outcome(making.task)
        if there is None and state is State.DONE:
            state, contents, failure, detail = State.FAILED, {}, Failure.OTHER, "its file has vanished"
        elif there is not None and state is not State.DONE:  # what came in its way came after its last byte
            state, contents, failure, detail = State.DONE, {}, None, None
        now = self._clock.now()
        async with self._lease.transaction() as c:
            size = there.size if there and state is State.DONE else None
            await c.execute(sql.finish, making.id, state, now, size, contents, failure, detail)
            await c.execute(sql.forget_failed, FAILED_KEPT)
            await kept_store.tell(c, now, [making.id])
        if state is State.FAILED:
            log.error("A backup failed", backup=making.id, failure=failure, detail=detail)


Outcome = tuple[State, dict[str, Any], Failure | None, str | None]


def _outcome(task: "asyncio.Task[Manifest]") -> Outcome:
    if task.cancelled():
        return State.CANCELLED, {}, None, None
    error = task.exception()
    if error is None:
        return State.DONE, contents(task.result()), None, None
    if _is_full(error):
        return State.FAILED, {}, Failure.NO_SPACE, None
    if not isinstance(error, CodeHubError):
        log.error("A backup failed in a way that nobody expected", exc_info=error)
        return State.FAILED, {}, Failure.OTHER, type(error).__name__
    return State.FAILED, {}, Failure.OTHER, logs.redact_text(error.detail)[:LONGEST_DETAIL]


def _is_full(error: BaseException | None) -> bool:
    """Also where it was turned into a sentence of ours."""
    while error is not None:
        if isinstance(error, FullDiskError) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
            return True
        error = error.__cause__
    return False


def _of_the_lost(kept: Kept, file: File | None, now: datetime) -> tuple[Any, ...]:
    """Of a row whose maker is gone: its new state, when it ended, its size, what is in it, why not."""
    if file is not None:  # it ended between the file's name and the row
        return State.DONE, now, file.size, {}, None, None
    if kept.state is State.CANCELLING:
        return State.CANCELLED, now, None, {}, None, None
    return State.FAILED, now, None, {}, Failure.INTERRUPTED, None


def contents(made: Manifest) -> dict[str, int]:
    return {
        "rows": sum(table.rows for table in made.tables),
        "homes": sum(not home.missing for home in made.homes),
        "archives": sum(name.endswith(f"/{DATA_NAME}") for name in made.members),
        "in_use": sum(home.in_use for home in made.homes),
    }
