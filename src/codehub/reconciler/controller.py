"""The controller: observe in bulk → judge → plan → execute → save. A loop of the coordinator.

It compares what is with what is desired and moves one step at a time. What a step does to the world is in `operations`;
what anything means is in `workspaces.rules`. Every save goes through the lease, so that a former leader saves nothing.
Everything that asks for attention is observed; what then begins is bounded by kind. A workspace that cannot be advanced
is set aside for a while (`coordinator.setbacks`), and the others go on.

A person waits for what is to run. So a tick looks at those first, and at the rest when they are on their way; and what
a start saw last, an IDE that answers, is saved at once instead of being looked for by the next tick.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from codehub import ids, logs
from codehub.clock import Clock
from codehub.coordinator.driver import Tick
from codehub.coordinator.leader import Lease
from codehub.coordinator.setbacks import WORKSPACE, Setbacks
from codehub.coordinator.under_way import UnderWay
from codehub.db import Connection
from codehub.errors import CodeHubError, LeaseLostError, UnavailableError
from codehub.reconciler import idle_recheck
from codehub.reconciler.comparing import Comparing
from codehub.reconciler.idle_recheck import IdleRecheck, Returned
from codehub.reconciler.operations import Operations
from codehub.reconciler.transitions import Gone, Transitions
from codehub.runtimes.base import Container, Found, Runtime, RuntimeFailureError, UnreadableError, Volume
from codehub.settings import CoordinatorConfig
from codehub.workspaces import history, idle_store, rules, store
from codehub.workspaces.model import Observation, Operation, Reason, Workspace
from codehub.workspaces.store import sql

log = logs.get()
ROWS_PER_TICK = 2_000
SWEEP_PER_TICK = 200
PROBES_AT_ONCE = 16


@dataclass
class Observations:
    """One tick's observation of the runtime.

    What is `busy`, being worked on while we look, is not looked at: half of what we saw could be older than the other.
    """

    busy: frozenset[str]
    containers: Found[Container]
    candidates: dict[str, Workspace] = field(default_factory=dict)
    seen: dict[str, Observation] = field(default_factory=dict)
    returned: Returned = field(default_factory=Returned)


class Controller:
    def __init__(
        self,
        lease: Lease,
        runtime: Runtime,
        operations: Operations,
        clock: Clock,
        config: CoordinatorConfig,
        nudge: Callable[[], None],
        recheck: IdleRecheck,
    ) -> None:
        self._lease = lease
        self._runtime = runtime
        self._operations = operations
        self._clock = clock
        self._config = config
        self._idle_recheck = recheck
        self._transitions = Transitions(lease, clock, config.max_retry, runtime.node)
        self._setbacks = Setbacks(lease, clock, WORKSPACE)
        self._comparing = Comparing(clock, config.idle_interval, runtime.node)
        self._under_way = UnderWay[Operation](nudge, "Could not save how an operation ended, the next tick looks again")
        self._bounds = {
            Operation.STARTING: config.max_concurrent_starts,
            Operation.ARCHIVING: config.max_concurrent_packs,
            Operation.RESTORING: config.max_concurrent_unpacks,
            Operation.DELETING: config.max_concurrent_deletions,
        }
        self._swept = ""

    async def close(self) -> None:
        await self._under_way.close()

    def is_starting(self) -> bool:
        """Does anybody wait for an IDE that is on its way?"""
        return self._under_way.count(Operation.STARTING) > 0

    async def tick(self) -> Tick:
        look = Observations(frozenset(self._under_way), await self._runtime.containers())
        begun, failed = await self._advance_each(await self._look_first(look), look)
        more_begun, more_failed = await self._advance_each(await self._look(look), look)
        stats = {
            "looked_at": len(look.candidates),
            "begun": begun + more_begun,
            "under_way": len(self._under_way),
            "failed": failed + more_failed,
            "set_aside": len(self._setbacks.waiting()),
        }
        return Tick(stats, await self._again_in())

    async def _advance_each(self, found: list[Workspace], look: Observations) -> tuple[int, int]:
        """How many were begun, and how many failed. Oldest request first."""
        begun = failed = 0
        for w in sorted(found, key=lambda w: w.desired_at):
            if w.id in self._under_way or self._can_wait(w, look):
                continue
            try:
                begun += await self._advance(w.id, look)
                await self._setbacks.clear(w.id)
            except (LeaseLostError, UnavailableError):
                raise
            except Exception as e:  # noqa: BLE001 (whatever is wrong with this one, the others go on)
                failed += 1
                await self._setbacks.note(w.id, e)
        return begun, failed

    async def _again_in(self) -> float:
        """When the next row wants attention: soon while anything moves, rarely when nothing does."""
        async with self._lease.database.connection() as c:
            due: datetime | None = await c.fetchval(sql.next_due, self._setbacks.waiting(), self._runtime.node)
        wait = (due - self._clock.now()).total_seconds() if due else self._config.idle_interval
        return min(max(wait, self._config.active_interval), self._config.idle_interval)

    # --- observe

    async def _look_first(self, look: Observations) -> list[Workspace]:
        """What is to run, or under way."""
        async with self._lease.database.connection() as c:
            await self._setbacks.load(c)
            now, aside, node = self._clock.now(), self._setbacks.waiting(), self._runtime.node
            found = await store.query(c, sql.due_to_run, now, aside, ROWS_PER_TICK, node)
        return await self._observe(look, found)

    async def _look(self, look: Observations) -> list[Workspace]:
        """The rest: what is not as it was seen, and the volumes of whatever asks for attention."""
        running, rest = look.containers.keys() | look.containers.unreadable.keys(), dict[str, Workspace]()
        async with self._lease.database.connection() as c:
            now, aside, node = self._clock.now(), self._setbacks.waiting(), self._runtime.node
            differ = await self._comparing.differences(c, running)
            rest.update((w.id, w) for w in differ.rows if w.id not in aside)
            for statement, args in (
                (sql.due_deleted, (now, aside, ROWS_PER_TICK, node)),
                (sql.due_to_sleep, (now, aside, ROWS_PER_TICK, node)),
                (sql.unreadable, (list(look.containers.unreadable), aside, node)),
                (sql.sweep, (self._swept, aside, SWEEP_PER_TICK, node)),
            ):
                found = await store.query(c, statement, *args)
                rest.update((w.id, w) for w in found)
            self._swept = found[-1].id if len(found) == SWEEP_PER_TICK else ""
        observed = await self._observe(look, rest.values())
        look.returned = await self._idle_recheck.recheck([w for w in observed if idle_recheck.concerns(w)])
        for stray in differ.strays - look.busy - set(aside):
            log.warning("A container belongs to no workspace, stopping it", workspace=stray)
            self._under_way.begin(stray, Operation.NONE, self._stop_stray(stray))
        return observed

    async def _observe(self, look: Observations, found: Iterable[Workspace]) -> list[Workspace]:
        """Those of them that are new in this tick, each with what was seen of it."""
        new = {w.id: w for w in found if w.id not in look.busy and w.id not in look.candidates}
        if not new:
            return []
        look.candidates.update(new)
        volumes = await self._runtime.volumes(list(new))
        answering = await self._which_answer(look, new.values())
        for id_ in new:
            container = id_ in look.containers or id_ in look.containers.unreadable
            unreadable = look.containers.unreadable.get(id_)
            look.seen[id_] = _observation(id_, volumes, container, id_ in answering, unreadable)
        return list(new.values())

    async def _which_answer(self, look: Observations, new: Collection[Workspace]) -> set[str]:
        """Of those whose start is over when they do."""
        starting = [w.id for w in new if w.operation is Operation.STARTING]
        turns = asyncio.Semaphore(PROBES_AT_ONCE)

        async def ask(id_: str) -> str | None:
            async with turns:
                try:
                    found = await self._runtime.container(id_)
                except UnreadableError as e:
                    look.containers.unreadable[id_] = e.detail
                    return None
            return id_ if found and found.answers else None

        found = await asyncio.gather(*(ask(id_) for id_ in starting if id_ in look.containers))
        return {id_ for id_ in found if id_ is not None}

    # --- judge, plan

    def _has_room(self, operation: Operation) -> bool:
        """Of each kind only so many are under way at a time; candidates come oldest request first."""
        bound = self._bounds.get(operation)
        return bound is None or self._under_way.count(operation) < bound

    def _can_wait(self, w: Workspace, look: Observations) -> bool:
        """It is as desired or only waits for room, and nothing new was seen of it: not worth a transaction."""
        seen, operation = look.seen[w.id], rules.plan(w)[0]
        at_rest = operation is Operation.NONE and w.attention_at is None and not self._setbacks.has(w.id)
        waits = at_rest or not self._has_room(operation)
        return waits and not seen.unreadable and not rules.is_news(w, seen)

    def _waits(self, w: Workspace) -> bool:
        """For its next attempt."""
        return w.attention_at is not None and w.attention_at > self._clock.now()

    async def _advance(self, id_: str, look: Observations) -> bool:
        """Take in what was seen of one workspace and begin, or carry on, what it needs. True: work is under way."""
        seen, container = look.seen[id_], look.containers.get(id_)
        gone = await self._why_gone(look.candidates[id_], seen)
        async with self._lease.transaction() as c:
            w = await store.lock(c, id_, wait=False)
            if w is None or w.updated_at != look.candidates[id_].updated_at:
                return False  # it changed since we looked: the next tick looks again
            w = await self._transitions.apply_observation(c, w, seen, container, gone)
            if idle_recheck.concerns(w) and await self._is_used(c, w, look):
                return False
            operation, plan = rules.plan(w)
            blocked = rules.why_blocked(operation, seen)
            if blocked is None:
                if operation is Operation.NONE or not self._has_room(operation) or self._waits(w):
                    return False
                if w.operation is Operation.NONE:
                    w = await self._transitions.begin(c, w, operation, plan, ids.new(16))
        if blocked is not None:  # its error is saved; it is tried again with growing pauses
            raise UnreadableError(blocked)
        self._comparing.begun(w.id)
        self._under_way.begin(w.id, w.operation, self._execute(w))
        return True

    async def _is_used(self, c: Connection, w: Workspace, look: Observations) -> bool:
        """A timer's request is not carried out while somebody is at work, or might be."""
        found = look.returned
        if w.id not in found.at and w.id not in found.unsure:
            found = await self._idle_recheck.recheck_locked(w)
        returned = found.at.get(w.id)
        if returned:
            await idle_store.withdraw(c, w.id, returned, self._clock.now())
        moved = w.last_access_at != look.candidates[w.id].last_access_at
        return returned is not None or moved or w.id in found.unsure

    async def _why_gone(self, w: Workspace, seen: Observation) -> Gone:
        """What an IDE that is no longer there left behind, for the history and `error_info`."""
        if seen.container or w.observed_status != "RUNNING" or w.operation is not Operation.NONE:
            return history.IdeGone()
        ended = await self._runtime.last_exit(w.id)
        return history.IdeEnded(ended.code, ended.log_tail) if ended else history.IdeGone()

    # --- execute

    async def _stop_stray(self, id_: str) -> None:
        try:
            await self._runtime.stop(id_, self._config.stop_grace_seconds)
        except Exception as e:  # noqa: BLE001
            await self._setbacks.note(id_, e)

    async def _execute(self, w: Workspace) -> None:
        """An attempt at an operation. What goes wrong in a way that it does not expect is this workspace's alone."""
        try:
            await self._attempt(w)
        except (LeaseLostError, UnavailableError):
            raise
        except Exception as e:  # noqa: BLE001
            await self._setbacks.note(w.id, e)

    async def _attempt(self, w: Workspace) -> None:
        """Whether it succeeded is for an observation to say: of a start, the one that ended it."""
        limit = rules.seconds_for(w.operation, self._operations.start_seconds(w))
        try:
            async with asyncio.timeout(limit):
                answering = await self._operations.perform(w)
        except TimeoutError:
            said = ""
            with contextlib.suppress(RuntimeFailureError):
                said = await self._operations.give_up(w)
            await self._fail(w, Reason.TIMEOUT, f"took longer than {limit:g} s{said}")
        except (LeaseLostError, UnavailableError):
            raise
        except CodeHubError as e:
            await self._fail(w, _reason(e.code), e.detail)
        except Exception as e:
            log.warning("Operation failed", workspace=w.id, operation=w.operation, exc_info=e)
            await self._fail(w, Reason.ACTION_FAILED, logs.redact_text(f"{type(e).__name__}: {e}"))
        else:
            if answering is not None:
                await self._complete_start(w, answering)

    async def _complete_start(self, w: Workspace, answering: Container) -> None:
        """Save that it answers, as the next tick would. What is in the way of that, the tick will see."""
        try:
            volumes = await self._runtime.volumes([w.id])
        except RuntimeFailureError:
            return
        async with self._lease.transaction() as c:
            current = await store.lock(c, w.id, wait=False)
            if current is not None and (current.operation, current.op_id) == (w.operation, w.op_id):
                seen = _observation(w.id, volumes, container=True, answering=True)
                await self._transitions.apply_observation(c, current, seen, answering, history.IdeGone())

    async def _fail(self, w: Workspace, reason: Reason, message: str) -> None:
        await self._transitions.fail(w, reason, message, random.random())  # noqa: S311


def _observation(
    id_: str, volumes: Found[Volume], container: bool, answering: bool, record_unreadable: str | None = None
) -> Observation:
    volume = volumes.get(id_)
    here = volume if volume and not volume.parked else None
    return Observation(
        container=container,
        answering=answering,
        volume=here.generation if here else None,
        restored_from=here.restored_from if here else None,
        parked=volume.generation if volume and volume.parked else volume.parked_generation if volume else None,
        record_unreadable=record_unreadable,
        volume_unreadable=volumes.unreadable.get(id_),
    )


def _reason(code: str) -> Reason:
    try:
        return Reason(code)
    except ValueError:
        return Reason.START_FAILED if code == "IsolationUnavailable" else Reason.ACTION_FAILED
