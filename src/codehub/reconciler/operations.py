"""What each operation does to the world, through the runtime and the archives. Carried on, it repeats safely.

The controller calls `perform` and bounds its time. Nothing here decides whether an operation is complete.
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from codehub.archives.model import Archived
from codehub.clock import Clock
from codehub.coordinator.leader import Lease
from codehub.errors import InvalidRequestError, UnavailableError
from codehub.reconciler.transitions import Transitions
from codehub.runtimes.base import (
    Announcing,
    Container,
    Exit,
    ImageNotFoundError,
    Runtime,
    RuntimeFailureError,
    StartFailedError,
    Volume,
    Workload,
)
from codehub.settings import CoordinatorConfig
from codehub.templates.loader import Templates
from codehub.templates.model import Template
from codehub.workspaces import rules, store
from codehub.workspaces.model import Operation, Workspace

# A small program answers at once and a large one after seconds: the next question comes after a part of what it took so
# far, so that waiting for it costs a person little at either. Where the runtime tells, it is asked when it listens.
SHORTEST_PAUSE, LONGEST_PAUSE, PART = 0.005, 0.25, 1 / 20
# Without complaint and before it answered: nearly always a program that forks and lets its first process go.
BACKGROUND_HINT = " (an IDE has to stay in the foreground: with its first process everything in the workspace ends)"
Progress = Callable[[int, int], Awaitable[None]]


class Archives(Protocol):
    """What operations need of the archives."""

    async def store(self, w: Workspace, generation: str, epoch: int, runtime: Runtime, progress: Progress) -> Archived:
        """Pack, upload, verify. A committed archive of the same operation is adopted."""
        ...

    async def fetch(self, w: Workspace, epoch: int, runtime: Runtime, progress: Progress) -> None:
        """Unpack beside the volume and swap it in whole."""
        ...

    async def remove_all(self, workspace_id: str) -> None: ...


class Operations:
    def __init__(
        self,
        lease: Lease,
        runtime: Runtime,
        archives: Archives,
        templates: Templates,
        clock: Clock,
        config: CoordinatorConfig,
        *,
        provide: Callable[[Workspace], Mapping[str, str]] = lambda _w: {},
    ) -> None:
        self._lease = lease
        self._runtime = runtime
        self._archives = archives
        self._templates = templates
        self._clock = clock
        self._config = config
        self._provide = provide  # what a workspace is given at its start, beside what its template says
        self._transitions = Transitions(lease, clock, config.max_retry, runtime.node)

    def start_seconds(self, w: Workspace) -> float:
        template = self._templates.find(w.template)
        return template.start_seconds if template else 120.0

    async def perform(self, w: Workspace) -> Container | None:
        """The container that was seen to answer, where that was waited for."""
        match w.operation:
            case Operation.PROVISIONING:
                await self._provision(w)
            case Operation.RESTORING:
                await self._restore(w)
            case Operation.STARTING:
                return await self._start(w)
            case Operation.STOPPING:
                await self._runtime.stop(w.id, self._config.stop_grace_seconds)
            case Operation.ARCHIVING:
                await self._archive(w)
            case Operation.DELETING:
                await self._delete(w)
            case Operation.NONE:
                pass
        return None

    async def give_up(self, w: Workspace) -> str:
        """After a time-out: a start that hangs must not leave a container that nobody expects. What it said."""
        if w.operation is not Operation.STARTING:
            return ""
        await self._lease.require()  # one that was stopped meanwhile would end what its successor started
        await self._runtime.stop(w.id, self._config.stop_grace_seconds)
        ended = await self._runtime.last_exit(w.id)
        return f", and did not answer. {_last_words(ended.log_tail)}" if ended else ""

    async def _provision(self, w: Workspace) -> None:
        assert w.op_id  # noqa: S101 (an operation has one)
        made = rules.new_generation(w.op_id, self._lease.epoch)
        if not w.volume_parked:
            template = self._templates.find(w.template)
            await self._runtime.create_volume(w.id, made, template.starter_files if template else ())
            return
        volume = await self._own_volume(w)
        if volume and volume.parked:
            await self._require_ours(w)  # what was seen before is what a successor has not touched
            await self._runtime.unpark_volume(w.id, volume.generation, made)

    async def _own_volume(self, w: Workspace) -> Volume | None:
        """The workspace's volume. One of a generation that nobody knows, made by a leader that came late, makes way."""
        volume = (await self._runtime.volumes([w.id])).get(w.id)
        if volume is None or rules.is_known(w, volume.generation):
            return volume
        await self._require_ours(w)
        await self._runtime.delete_volume(w.id, volume.generation)
        return (await self._runtime.volumes([w.id])).get(w.id)

    async def _require_ours(self, w: Workspace) -> None:
        if not await self._transitions.is_ours(w):
            raise RuntimeFailureError("the operation is no longer ours")

    async def _restore(self, w: Workspace) -> None:
        await self._own_volume(w)
        await self._archives.fetch(w, self._lease.epoch, self._runtime, self._progress(w))

    async def _start(self, w: Workspace) -> Container:
        """Start, then wait until it answers or is gone again."""
        template = self._template(w)
        trusted = await self._is_trusted(w)
        cold = await self._runtime.start(Workload(w.id, w.owner, template, self._provide(w), trusted=trusted))
        if cold:
            await self._transitions.note_cold(w, cold)
        begun = self._clock.monotonic()
        while True:
            container = await self._runtime.container(w.id)
            if container is None:
                ended = await self._runtime.last_exit(w.id)
                raise StartFailedError(_how_it_ended(ended) if ended else "it ended at once")
            if container.answers:
                return container
            pause = min(max(SHORTEST_PAUSE, PART * (self._clock.monotonic() - begun)), LONGEST_PAUSE)
            if await self._has_news(w, pause):
                begun = self._clock.monotonic()

    async def _has_news(self, w: Workspace, pause: float) -> bool:
        """Before it is asked once more. True: it may answer in a moment."""
        if isinstance(self._runtime, Announcing):
            return await self._runtime.begins_to_listen(w.id, pause)
        await self._clock.sleep(pause)
        return False

    def _template(self, w: Workspace) -> Template:
        try:
            return self._templates.require(w.template)
        except InvalidRequestError as e:  # it was there when the workspace was made: trying again will not help
            raise ImageNotFoundError(f"{e.detail}. Ask your admin to put it back, then recover the workspace") from e

    async def _is_trusted(self, w: Workspace) -> bool:
        async with self._lease.database.connection() as c:
            return await store.owned_by_admin(c, w.id)

    async def _archive(self, w: Workspace) -> None:
        """Contract: `archive_key` committed, then volume deleted, by the generation we packed.

        Packed where nothing can start on it any more, and taken back only under a new generation: so what is deleted is
        what was packed, whoever comes late.
        """
        volume = await self._own_volume(w)
        if volume is None:
            return
        await self._runtime.park_volume(w.id, volume.generation)
        epoch, progress = self._lease.epoch, self._progress(w)
        made = await self._archives.store(w, volume.generation, epoch, self._runtime, progress)
        if not await self._transitions.commit_archive(w, made):
            raise RuntimeFailureError("the operation is no longer ours")
        await self._runtime.delete_volume(w.id, volume.generation)

    async def _delete(self, w: Workspace) -> None:
        """Container first, then volume: destroyed by a purge, else kept in the trash."""
        await self._runtime.stop(w.id, self._config.stop_grace_seconds)
        volume = await self._own_volume(w)
        if volume and w.purge:
            await self._runtime.delete_volume(w.id, volume.generation)
        elif volume and not volume.parked:
            await self._runtime.park_volume(w.id, volume.generation)
        if w.purge:
            await self._archives.remove_all(w.id)

    def _progress(self, w: Workspace) -> Progress:
        """Progress is a courtesy: when it cannot be saved, the work goes on."""

        async def note(done: int, total: int) -> None:
            with contextlib.suppress(UnavailableError):
                await self._transitions.note_progress(w, done, total)

        return note


def _how_it_ended(ended: Exit) -> str:
    shown = "unknown" if ended.code is None else ended.code
    hint = BACKGROUND_HINT if ended.code == 0 else ""
    return f"it ended with exit code {shown}{hint}. {_last_words(ended.log_tail)}"


def _last_words(log_tail: str) -> str:
    return f"Its last words: {log_tail[-2000:].strip() or '(none)'}"
