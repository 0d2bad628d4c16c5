"""How the controller writes: every change of a workspace's observed columns, with its line of history, in one place."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from codehub import metrics
from codehub.archives.model import Archived
from codehub.clock import Clock
from codehub.coordinator.leader import Lease
from codehub.db import Connection
from codehub.runtimes.base import Cold, Container
from codehub.workspaces import history, rules, store
from codehub.workspaces.model import Desired, DesiredBy, Health, Observation, Observed, Operation, Reason, Workspace
from codehub.workspaces.store import Change, sql

ACTOR = "controller"
Gone = history.IdeEnded | history.IdeGone


class Transitions:
    def __init__(self, lease: Lease, clock: Clock, max_retry: int, node: str) -> None:
        self._lease = lease
        self._clock = clock
        self._max_retry = max_retry
        self._node = node  # of the runtime that makes volumes for us

    async def begin(self, c: Connection, w: Workspace, operation: Operation, plan: str, op_id: str) -> Workspace:
        """A new operation has its id in the database before its first effect."""
        now = self._clock.now()
        begun = await store.update(c, sql.begin, w.id, operation, op_id, now, self._node)
        assert begun  # noqa: S101 (the row is locked and had none)
        await store.note(c, w.id, now, Change(ACTOR, history.OperationBegun(operation, plan, op_id), w.phase))
        return begun

    async def apply_observation(
        self, c: Connection, w: Workspace, seen: Observation, container: Container | None, gone: Gone
    ) -> Workspace:
        """Save what an observation means: a completed operation, a change nobody ordered, a broken rule."""
        now = self._clock.now()
        seen = rules.filter_known(w, seen)
        if rules.is_readable_again(w, seen):
            w = await self._clear_error(c, w, now)
        judged = rules.judge(w, seen)
        if judged.problem and w.health_status is Health.OK:
            return await self._break(c, w, seen, judged.observed, judged.problem, now)
        if w.operation is not Operation.NONE:
            if not rules.is_complete(w, seen):
                return w
            return await self._complete(c, w, seen, container, now)
        if seen.unreadable:
            return w  # what is known of it stays until it can be read again
        if w.observed_status is Observed.RUNNING and judged.observed is Observed.STANDBY:
            return await self._died(c, w, seen, gone, now)
        return await self._sync_row(c, w, seen, judged.observed, container, now)

    async def _complete(
        self, c: Connection, w: Workspace, seen: Observation, container: Container | None, now: datetime
    ) -> Workspace:
        observed = rules.COMPLETES_AS[w.operation]
        saved = await self._save(
            c, w, seen, now, observed=observed, container=container, failures=rules.failures_after_success(w)
        )
        took = (now - w.op_started_at).total_seconds() if w.op_started_at else None
        done = history.COMPLETED[w.operation](w.op_id)
        await store.note(c, w.id, now, Change(ACTOR, done, w.phase, saved.phase, took))
        if observed is Observed.RUNNING and w.desired_by is DesiredBy.WAKE:
            metrics.WAKE_SECONDS.observe((now - w.desired_at).total_seconds())
        return saved

    async def _died(self, c: Connection, w: Workspace, seen: Observation, gone: Gone, now: datetime) -> Workspace:
        """The IDE went away although nobody stopped it."""
        if w.desired_state is not Desired.RUNNING or w.deleted_at or w.health_status is Health.ERROR:
            return await self._sync_row(c, w, seen, Observed.STANDBY, None, now)
        failure = rules.after_failure(w, Reason.START_FAILED, _message(gone), now, self._max_retry, jitter=0.0)
        saved = await self._save(c, w, seen, now, observed=Observed.STANDBY, failure=failure)
        await store.note(c, w.id, now, Change(ACTOR, gone, w.phase, saved.phase))
        return saved

    async def _clear_error(self, c: Connection, w: Workspace, now: datetime) -> Workspace:
        """As by recovering it; what is observed next to it is judged as of any other."""
        cleared = await store.update(c, sql.mark_recovered, w.id, now, w.archive_key)
        assert cleared  # noqa: S101 (the row is locked)
        await store.note(c, w.id, now, Change(ACTOR, history.ReadableAgain(), w.phase, cleared.phase))
        return cleared

    async def _break(
        self, c: Connection, w: Workspace, seen: Observation, observed: Observed, problem: Reason, now: datetime
    ) -> Workspace:
        why = seen.unreadable or _explain(problem)
        failure = rules.after_failure(w, problem, why, now, max_retry=0, jitter=0.0)
        saved = await self._save(c, w, seen, now, observed=observed, failure=failure)
        await store.note(c, w.id, now, Change(ACTOR, history.ProblemFound(problem), w.phase, saved.phase))
        return saved

    async def _sync_row(
        self,
        c: Connection,
        w: Workspace,
        seen: Observation,
        observed: Observed,
        container: Container | None,
        now: datetime,
    ) -> Workspace:
        """Nothing under way: keep the row true, and stop looking at it when it is as desired."""
        known = (observed, *rules.volume_after(w, seen, None))
        same = (w.observed_status, w.volume_generation, w.volume_parked) == known
        done = rules.plan(w)[0] is Operation.NONE
        if same and (w.attention_at is None or not done):
            return w
        saved = await self._save(c, w, seen, now, observed=observed, container=container)
        if saved.observed_status is not w.observed_status:
            await store.note(c, w.id, now, Change(ACTOR, history.FoundSo(), w.phase, saved.phase))
        return saved

    async def fail(self, w: Workspace, reason: Reason, message: str, jitter: float) -> None:
        """An attempt failed: back off and keep the operation, or give up."""
        now = self._clock.now()
        async with self._lease.transaction() as c:
            current = await store.lock(c, w.id)
            if current is None or (current.operation, current.op_id) != (w.operation, w.op_id):
                return
            failure = rules.after_failure(current, reason, message, now, self._max_retry, jitter)
            kind = history.OperationRetried if failure.retry_at else history.OperationGivenUp
            saved = await store.update(c, sql.note_failure, *_failure_arguments(current, failure, now))
            assert saved  # noqa: S101 (the row is locked)
            failed = kind(w.operation, reason, message)
            await store.note(c, w.id, now, Change(ACTOR, failed, current.phase, saved.phase))

    async def is_ours(self, w: Workspace) -> bool:
        """Do we lead, and is this still the operation under way?"""
        async with self._lease.transaction() as c:
            current = await store.lock(c, w.id)
        return current is not None and (current.operation, current.op_id) == (w.operation, w.op_id)

    async def commit_archive(self, w: Workspace, made: Archived) -> bool:
        """The archive is verified: from here on it, not the volume, is the truth."""
        meta = made.meta
        async with self._lease.transaction() as c:
            if await store.update(c, sql.commit_archive, w.id, w.op_id, made.key, self._clock.now()) is None:
                return False
            figures = (meta.created_at, meta.size, meta.content_bytes, meta.files)
            await c.execute(store.points.note_point, made.key, w.id, w.op_id, *figures)
            return True

    async def note_cold(self, w: Workspace, cold: Cold) -> None:
        async with self._lease.transaction() as c:
            now = self._clock.now()
            await store.note(c, w.id, now, Change(ACTOR, history.StartedCold(cold), w.phase))

    async def note_progress(self, w: Workspace, done: int, total: int) -> None:
        async with self._lease.transaction() as c:
            await c.execute(sql.note_progress, w.id, w.op_id, {"bytes": done, "total": total}, self._clock.now())

    async def _save(
        self,
        c: Connection,
        w: Workspace,
        seen: Observation,
        now: datetime,
        *,
        observed: Observed,
        container: Container | None = None,
        failures: int | None = None,
        failure: rules.Failure | None = None,
    ) -> Workspace:
        """One UPDATE. After it the operation is over; the plan decides whether to look again."""
        broken = failure is not None and failure.retry_at is None
        # What ended well is well: the only operation out of an error is the deletion.
        health = Health.ERROR if broken else Health.OK if w.operation is not Operation.NONE else w.health_status
        error_info: Any = w.error_info if health is Health.ERROR else None
        if failure:
            error_info = dict(failure.error_info)
        saved = await store.update(
            c,
            sql.observe,
            *(w.id, observed, Operation.NONE, health, error_info),
            *rules.volume_after(w, seen, failure),
            asdict(container.address) if container and observed is Observed.RUNNING else None,
            failure.attention_at if failure else now,
            now,
            *(w.operation, w.op_id),
            failure.error_info["error_count"] if failure else w.failures if failures is None else failures,
            self._node,
        )
        assert saved  # noqa: S101 (the row is locked)
        if failure is None and rules.plan(saved)[0] is Operation.NONE:
            saved = await store.update(c, sql.clear_attention, saved.id)
            assert saved  # noqa: S101
        return saved


def _failure_arguments(w: Workspace, failure: rules.Failure, now: datetime) -> tuple[Any, ...]:
    given_up = failure.retry_at is None
    return (
        w.id,
        Operation.NONE if given_up else w.operation,
        Health.ERROR if given_up else w.health_status,
        dict(failure.error_info),
        failure.error_info["error_count"],
        failure.attention_at,
        now,
    )


def _message(gone: Gone) -> str:
    """For `error_info`, beside the log that it quotes."""
    if isinstance(gone, history.IdeGone):
        return "the IDE is gone"
    code = "unknown" if gone.exit_code is None else gone.exit_code
    return f"the IDE ended by itself (exit code {code}). {gone.log_tail}".strip()


def _explain(problem: Reason) -> str:
    if problem is Reason.DATA_LOST:
        return "its files vanished although nobody of ours removed them"
    return "an IDE runs although its files are gone"
