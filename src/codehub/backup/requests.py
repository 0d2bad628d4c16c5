"""What admins ask for on a page: a backup, its end, its file, its removal. Called by `web.backups_page`.

The API may not read homes, so nothing is done here: a row says what is wanted, and the coordinator (`maker`) does it.
"""

import asyncio
import pathlib
from dataclasses import dataclass

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.backup import kept_files, kept_store, rules
from codehub.backup.kept_store import sql
from codehub.backup.model import Kept, State
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import CodeHubError, NotFoundError
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal


class BackupSpaceError(CodeHubError):
    code = "BACKUP_SPACE"
    status = 507
    title = "Not enough space for a backup"


class BackupStateError(CodeHubError):
    code = "BACKUP_STATE"
    status = 409
    title = "The backup is not in that state"


class BackupElsewhereError(CodeHubError):
    code = "BACKUP_ELSEWHERE"
    status = 409
    title = "Backups are not made here"


@dataclass(frozen=True)
class Space:
    """On the disk of the data directory."""

    needed: int  # at most
    free: int

    @property
    def is_enough(self) -> bool:
        return self.free >= self.needed


@dataclass(frozen=True)
class Overview:
    backups: list[Kept]  # the newest first
    space: Space | None  # None: one is being made, and takes it; or none can be made
    can_be_made: bool = True


class Backups:
    def __init__(self, database: Database, clock: Clock, files: pathlib.Path | None) -> None:
        """`files`: the folder they lie in, which this process may not enter. None: there is no machine to keep any on,
        the roles run on several, with data directories that go with them.
        """
        self._database = database
        self._clock = clock
        self._folder = files

    async def overview(self, caller: Principal) -> Overview:
        policy.require(caller, Action.BACKUP_LIST)
        async with self._database.connection() as c:
            found = await kept_store.all_of(c)
            busy = self._folder is None or any(kept.is_open for kept in found)
            return Overview(found, None if busy else await self._space(c), can_be_made=self._folder is not None)

    async def ask(self, caller: Principal) -> str:
        """Its id; while one is open, that one's: a second click asks for nothing."""
        policy.require(caller, Action.BACKUP_MAKE)
        if self._folder is None:
            raise BackupElsewhereError(
                "the platform runs on several machines and keeps nothing on any of them: back up the database and the "
                "object store, as docs/kubernetes.md says"
            )
        now, id_ = self._clock.now(), ids.new()
        async with self._database.transaction() as c:
            if there := next((kept for kept in await kept_store.all_of(c) if kept.is_open), None):
                return there.id
            space = await self._space(c)
            if not space.is_enough:
                raise BackupSpaceError("there is not enough free space on the disk of the data directory")
            if await c.fetchval(sql.add, id_, caller.origin.actor, now) is None:
                return await self._open(c)
            await audit.record(c, now, caller.origin, Code.BACKUP_CREATE, id_)
            await self._tell(c, id_)
        return id_

    async def cancel(self, caller: Principal, id_: str) -> None:
        """Of one that is over already, nothing."""
        policy.require(caller, Action.BACKUP_MAKE)
        now = self._clock.now()
        async with self._database.transaction() as c:
            kept = await self._locked(c, id_)
            if kept.state not in {State.ASKED, State.RUNNING}:
                return
            over = kept.state is State.ASKED
            await c.execute(sql.move, id_, State.CANCELLED if over else State.CANCELLING, now if over else None)
            await audit.record(c, now, caller.origin, Code.BACKUP_CANCEL, id_, asked_at=kept.asked_at.isoformat())
            await self._tell(c, id_)

    async def delete(self, caller: Principal, id_: str) -> None:
        """The file goes with the coordinator's next look. One that came to nothing has none: its line goes at once."""
        policy.require(caller, Action.BACKUP_MAKE)
        now = self._clock.now()
        async with self._database.transaction() as c:
            kept = await self._locked(c, id_)
            if kept.is_open:
                raise BackupStateError("it is being made: cancel it first")
            if kept.state is State.DELETING:
                return
            if kept.state is State.DONE:
                await c.execute(sql.move, id_, State.DELETING, None)
                said = {"asked_at": kept.asked_at.isoformat(), "why": "asked"}
                await audit.record(c, now, caller.origin, Code.BACKUP_DELETE, id_, **said)
            else:
                await c.execute(sql.remove, [id_])
            await self._tell(c, id_)

    async def download(self, caller: Principal, id_: str) -> Kept:
        """It is written down before the first byte goes out: who has it has everything."""
        policy.require(caller, Action.BACKUP_DOWNLOAD)
        async with self._database.transaction() as c:
            kept = await self._locked(c, id_)
            if kept.state is not State.DONE:
                raise NotFoundError("there is no such backup")
            said = {"asked_at": kept.asked_at.isoformat()}
            await audit.record(c, self._clock.now(), caller.origin, Code.BACKUP_DOWNLOAD, id_, **said)
        return kept

    # --- parts

    async def _space(self, c: Connection) -> Space:
        sizes = await c.fetchrow(sql.sizes)
        assert sizes  # noqa: S101 (an aggregate has one row)
        assert self._folder  # noqa: S101 (asked before)
        free = await asyncio.to_thread(kept_files.free, self._folder.parent)
        return Space(rules.needed(sizes["database"], sizes["files"], sizes["largest"]), free)

    async def _open(self, c: Connection) -> str:
        """Of two that asked at the same time, the other's."""
        found = next((kept for kept in await kept_store.all_of(c) if kept.is_open), None)
        if found is None:
            raise BackupStateError("another one has just ended: ask again")
        return found.id

    async def _locked(self, c: Connection, id_: str) -> Kept:
        if ids.is_label(id_):
            await c.fetchval(sql.lock, id_)
            for kept in await kept_store.all_of(c):
                if kept.id == id_:
                    return kept
        raise NotFoundError("there is no such backup")

    async def _tell(self, c: Connection, id_: str) -> None:
        await kept_store.tell(c, self._clock.now(), [id_])
        await c.execute(sql.wake_coordinator)
