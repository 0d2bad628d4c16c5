"""The use cases about runs: starting one or taking it up again, its steps, its end. Called by the API and the pages.

Each reads by one statement, decides by `rules`, and writes by one statement that finds the row as it was read or
changes nothing; then it reads again. So nothing is held while a decision is made, two clients at once are told apart by
the database, and a crash at any point leaves a step and its snapshot both there or both not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from codehub import ids
from codehub.clock import Clock
from codehub.db import Connection, Database, LockTimeoutError
from codehub.errors import CodeHubError, InvalidRequestError, UnavailableError
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions import grading, idempotency, news, rules, store, view
from codehub.sessions import state as states
from codehub.sessions.authorize import authorize, is_id, no_run, no_session
from codehub.sessions.blueprint import Activity, Step
from codehub.sessions.blueprints import Blueprints, Lesson
from codehub.sessions.errors import (
    CheckFailedError,
    IdempotencyKeyConflictError,
    IdempotencyKeyInUseError,
    PracticeFailedError,
    SessionAlreadyCompletedError,
    WorkspaceNotRunningError,
)
from codehub.sessions.model import (
    CheckResult,
    EndReason,
    Run,
    RunStatus,
    SessionStatus,
    Snapshot,
    StartView,
    StoredAnswer,
    Tries,
)
from codehub.sessions.rules import Create, Recover, Refusal, Verdict
from codehub.sessions.store import Key
from codehub.settings import SessionConfig
from codehub.workspaces import service as workspaces

TRIES = 4  # of reading and writing; each fails only because another request of the same run was quicker
RETRY_SECONDS = 1
MOST_KEPT, MOST_ANSWER = 4_000, 500  # characters of what a check printed, and of an answer
ANY_TIME = datetime.max.replace(tzinfo=UTC)


class Verifier(Protocol):
    """Runs the checks of a PRACTICE in the run's workspace; raises `WorkspaceNotRunningError` where it cannot."""

    async def verify(self, run: Run, activity: Activity, /) -> Sequence[CheckResult]: ...


@dataclass(frozen=True)
class Answer:
    """To a start: its body is kept with the key and sent again byte for byte."""

    status: int
    body: str
    replayed: bool = False


@dataclass(frozen=True)
class _Start:
    caller: Principal
    session_id: str
    resume_from: str | None
    key: Key | None


class Runs:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: SessionConfig,
        blueprints: Blueprints,
        verifier: Verifier | None,
        wake: Callable[[], None],
    ) -> None:
        """`wake`: called after a change, for its events to be published."""
        self._database = database
        self._clock = clock
        self._blueprints = blueprints
        self._verifier = verifier
        self._wake = wake
        self._recovery = timedelta(seconds=config.recovery_seconds)
        self._kept = timedelta(seconds=config.idempotency_key_seconds)
        self._most_keys = config.max_idempotency_keys_per_user
        self._wait = str(round(config.idempotency_wait_seconds * 1000))  # as `lock_timeout` wants it

    # --- reading

    async def get(self, caller: Principal, id_: str) -> Run:
        async with self._database.connection() as c:
            run, _ = await self._find(c, caller, id_, Action.RUN_SEE)
            return await self._shown(c, run)

    async def owned(self, c: Connection, caller: Principal, id_: str, action: Action) -> Run:
        """For a capability that keeps something beside a run, in its own transaction."""
        return (await self._find(c, caller, id_, action))[0]

    async def writable(self, c: Connection, caller: Principal, id_: str, action: Action, fence: int | None) -> Run:
        """The same while it runs; with a fence, for the client that has it."""
        run = await self.owned(c, caller, id_, action)
        rules.passed(rules.write(run, run.fence if fence is None else fence), run)
        return run

    async def snapshots(self, caller: Principal, id_: str, *, after: int, limit: int) -> tuple[list[Snapshot], int]:
        """And how many of them are sent at once: there may be one more, by which a next page is known."""
        async with self._database.connection() as c:
            await self._find(c, caller, id_, Action.RUN_SEE)
            return await store.page_snapshots(c, id_, after, limit, states.MOST_BYTES_AT_ONCE)

    async def tries(self, caller: Principal, id_: str) -> list[Tries]:
        """Of its steps that were tried and not passed, also when they were later."""
        async with self._database.connection() as c:
            await self._find(c, caller, id_, Action.RUN_SEE)
            return await store.tries(c, id_)

    async def trail(self, caller: Principal, session_id: str, *, after: store.After, limit: int) -> list[Run]:
        """Every run that a session ever had, in order, without their snapshots. Of a place, the run's id counts."""
        async with self._database.connection() as c:
            await self._seen(c, caller, session_id)
            return [await self._shown(c, run) for run in await store.page_runs(c, session_id, after[1], limit)]

    async def latest(self, caller: Principal, session_id: str, *, limit: int) -> list[Run]:
        """Of the runs of a session, those that began last; the very last one at the end."""
        async with self._database.connection() as c:
            await self._seen(c, caller, session_id)
            return [await self._shown(c, run) for run in await store.last_runs(c, session_id, limit)]

    async def _seen(self, c: Connection, caller: Principal, session_id: str) -> None:
        found = await store.find_session(c, session_id) if is_id(session_id) else None
        if found is None:
            raise no_session(session_id)
        authorize(caller, Action.RUN_SEE, found.owner, no_session(session_id))

    # --- starting

    async def start(
        self, caller: Principal, session_id: str, *, key: str | None = None, resume_from: str | None = None
    ) -> Answer:
        """Create a run, or recover the one that is running. The same key again gets the same answer."""
        named = idempotency.key_of(caller, key, "start", session_id, resume_from or "")
        asked = _Start(caller, session_id, resume_from, named)
        try:
            async with self._database.connection() as c:
                answer = await self._try_start(c, asked, in_turn=False)
            for _ in range(TRIES):
                if answer:
                    break
                async with self._database.transaction() as c:
                    await store.wait_in_turn(c, session_id, named, self._wait)
                    answer = await self._try_start(c, asked, in_turn=True)
        except LockTimeoutError:
            await self._blame_key(named)
            raise
        if answer is None:
            raise _busy()
        if not answer.replayed:
            self._wake()
        return answer

    async def _blame_key(self, key: Key | None) -> None:
        """Raises where it was the key that was waited for."""
        async with self._database.connection() as c:
            if key and not await store.key_is_free(c, key):
                hint = "the first request with this key is still being handled: send this one again in a moment"
                raise IdempotencyKeyInUseError(hint, retry_after=RETRY_SECONDS)

    async def _try_start(self, c: Connection, asked: _Start, *, in_turn: bool) -> Answer | None:
        """None: things changed meanwhile, or have to be changed in one's turn."""
        valid = is_id(asked.session_id)
        now = self._clock.now()
        session_id = asked.session_id if valid else ""
        keyed, found = await store.start_view(
            c, session_id, asked.resume_from, asked.key, live_since=now - self._kept, most_keys=self._most_keys
        )
        if answer := await self._stored(c, asked.key, keyed.answer, now):
            return answer
        if found is None:
            raise no_session(asked.session_id)
        authorize(asked.caller, Action.RUN_START, found.owner, no_session(asked.session_id))
        if asked.key:
            rules.require_room_for_key(keyed.live, self._most_keys)
        active_at = await self._active_at(c, found.running, now)
        outcome = rules.start(
            found, resume_from=asked.resume_from, active_at=active_at, now=now, recovery=self._recovery
        )
        lesson = await self._blueprints.get(c, found.session.blueprint_hash)
        match outcome:
            case Refusal.NOT_RESUMABLE if not in_turn:
                return None  # the run it names was read after the session, and may have ended between the two
            case Refusal():
                raise _refused(outcome, found)
            case Recover(run):
                return await self._recover(c, run, lesson, asked.key, now)
            case Create(ends) if ends and not in_turn:
                return None
            case Create():
                return await self._abandon_and_create(c, found, outcome, lesson, asked.key, now)

    async def _stored(
        self, c: Connection, key: Key | None, stored: StoredAnswer | None, now: datetime
    ) -> Answer | None:
        if key is None or stored is None:
            return None
        if not rules.is_replay(stored, now, self._kept):
            await store.drop_expired_key(c, key, now - self._kept)
            return None
        if stored.fingerprint != key.fingerprint:
            raise IdempotencyKeyConflictError("this key was used for another request: take a new one for this")
        return Answer(stored.status, stored.body, replayed=True)

    async def _active_at(self, c: Connection, run: Run | None, now: datetime) -> datetime | None:
        """The workspace is asked only where the run's own activity would not do."""
        if run is None:
            return None
        own = run.last_activity_at
        if run.workspace_id is None or not rules.is_inactive(own, now, self._recovery):
            return own
        return max(own, await workspaces.last_activity(c, run.workspace_id) or own)

    async def _recover(self, c: Connection, read: Run, lesson: Lesson, key: Key | None, now: datetime) -> Answer | None:
        run = _shown(replace(read, fence=read.fence + 1, last_activity_at=now), lesson)
        body = view.run_json(run)
        done = await store.recover_run(c, read, now, key, body, [news.run_updated(run)], self._wait)
        return Answer(200, body) if done else None

    async def _abandon_and_create(
        self, c: Connection, found: StartView, outcome: Create, lesson: Lesson, key: Key | None, now: datetime
    ) -> Answer | None:
        if outcome.ends:
            old = rules.abandoned(outcome.ends, now, EndReason.INACTIVE)
            if not await self._abandon(c, outcome.ends, old, until=outcome.ends.last_activity_at):
                return None
        return await self._create(c, found, outcome, lesson, key, now)

    async def _create(
        self, c: Connection, found: StartView, outcome: Create, lesson: Lesson, key: Key | None, now: datetime
    ) -> Answer | None:
        old, index = outcome.resumes, outcome.resumes.step_index if outcome.resumes else 0
        run = Run(
            id=ids.new(),
            session_id=found.session.id,
            plan_id=found.session.plan_id,
            owner=found.owner,
            owner_id=found.owner_id,
            status=RunStatus.RUNNING,
            step_index=index,
            fence=1,
            blueprint_hash=found.session.blueprint_hash,
            predecessor_id=outcome.predecessor_id,
            workspace_id=old.workspace_id if old else None,
            started_at=now,
            last_activity_at=now,
            ended_at=None,
            end_reason=None,
            end_note=None,
            snapshot=old.snapshot if old else None,
            inherits_from=rules.inherits_from(old) if old else None,
            first_step=index,
            snapshot_bytes=old.snapshot_bytes if old else 0,
        )
        run = _shown(run, lesson)
        body, told = view.run_json(run), news.both(run, SessionStatus.IN_PROGRESS)
        done = await store.create_run(c, run, key, body, told, self._wait)
        return Answer(201, body) if done else None

    # --- steps

    async def complete_step(self, caller: Principal, id_: str, index: int, fence: int, state: Mapping[str, Any]) -> Run:
        """Save a step with its state; the last one completes run and session. The same again is a replay."""
        text, digest = states.canonical(state)
        verified: Sequence[CheckResult] | None = None
        for _ in range(TRIES):
            async with self._database.connection() as c:
                run, saved = await self._find(c, caller, id_, Action.RUN_WRITE, step=index)
                if rules.passed(rules.step(run, fence, index, digest, saved), run) is Verdict.REPLAY:
                    return await self._shown(c, run)
                lesson = await self._blueprints.get(c, run.blueprint_hash)
                activity = lesson.activity if lesson.steps[index] is Step.PRACTICE else None
                if activity is None or not activity.checks or verified is not None:
                    error = _failed(lesson, index, state, verified)
                    if done := await self._save(c, run, lesson, text, digest, state, error):
                        return done
                    continue
            verified = await self._verify(run, activity)
        raise _busy()

    async def _verify(self, run: Run, activity: Activity) -> Sequence[CheckResult]:
        """While no connection is held: it can take as long as the checks may."""
        if self._verifier is None:
            raise WorkspaceNotRunningError("open the workspace of this run first: its checks run there")
        return await self._verifier.verify(run, activity)

    async def _save(
        self,
        c: Connection,
        read: Run,
        lesson: Lesson,
        text: str,
        digest: bytes,
        state: Mapping[str, Any],
        error: CodeHubError | None,
    ) -> Run | None:
        """None: the run is not as it was read. A try that failed counts, and is told as its error."""
        now = self._clock.now()
        if error:
            if await store.note_try(c, read, now, _result(error, state), [news.run_tried(read)]):
                self._wake()
                raise error
            return None
        last = read.step_index + 1 == len(lesson.steps)
        size = rules.saved_bytes(read, text)
        saved = replace(read, step_index=read.step_index + 1, snapshot=state, snapshot_bytes=size, last_activity_at=now)
        saved = _shown(saved, lesson)
        if last:
            saved = rules.completed(saved, now)
        told = news.both(saved, SessionStatus.COMPLETED) if last else [news.run_updated(saved)]
        if not await store.save_step(c, read, saved, text, digest, told):
            return None
        self._wake()
        return saved

    # --- activity and the end

    async def record_activity(self, caller: Principal, id_: str, fence: int) -> Run:
        """The page's heartbeat."""
        async with self._database.connection() as c:
            for _ in range(TRIES):
                run, _ = await self._find(c, caller, id_, Action.RUN_WRITE)
                rules.passed(rules.write(run, fence), run)
                if moved := await store.note_activity(c, run, self._clock.now()):
                    return await self._shown(c, replace(run, last_activity_at=moved))
        raise _busy()

    async def abandon(self, caller: Principal, id_: str, fence: int, reason: str | None) -> Run:
        """By the learner. The session can be started again."""
        async with self._database.connection() as c:
            for _ in range(TRIES):
                run, _ = await self._find(c, caller, id_, Action.RUN_ABANDON)
                rules.passed(rules.write(run, fence), run)
                ended = rules.abandoned(run, self._clock.now(), EndReason.BY_LEARNER, reason)
                if await self._abandon(c, run, ended, until=ANY_TIME):
                    self._wake()
                    return await self._shown(c, ended)
        raise _busy()

    async def _abandon(self, c: Connection, read: Run, ended: Run, *, until: datetime) -> bool:
        told = news.both(ended, SessionStatus.SCHEDULED)
        return await store.abandon_run(c, read, ended, until=until, events=told)

    # --- helpers

    async def _find(
        self, c: Connection, caller: Principal, id_: str, action: Action, *, step: int = -1
    ) -> tuple[Run, bytes | None]:
        found = await store.find_run(c, id_, step) if is_id(id_) else None
        if found is None:
            raise no_run(id_)
        authorize(caller, action, found[0].owner, no_run(id_))
        return found

    async def _shown(self, c: Connection, run: Run) -> Run:
        return _shown(run, await self._blueprints.get(c, run.blueprint_hash))


def _shown(run: Run, lesson: Lesson) -> Run:
    """With what is told of its blueprint."""
    steps = lesson.steps
    step = steps[run.step_index].value if run.step_index < len(steps) else None
    return replace(run, step=step, view_hash=lesson.view_hash)


def _refused(refusal: Refusal, found: StartView) -> CodeHubError:
    match refusal:
        case Refusal.ALREADY_COMPLETED:
            return SessionAlreadyCompletedError("this session is completed: its runs are there to be read")
        case Refusal.ENDED:
            was = "skipped" if found.session.status is SessionStatus.SKIPPED else "canceled"
            return InvalidRequestError(f"was {was}, so it cannot be started", field="session")
        case Refusal.NOT_RESUMABLE:
            return InvalidRequestError("is not an abandoned run of this session", field="resume_from")


def _failed(
    lesson: Lesson, index: int, state: Mapping[str, Any], verified: Sequence[CheckResult] | None
) -> CodeHubError | None:
    """Why a CHECK or PRACTICE is not passed."""
    if lesson.steps[index] is Step.CHECK:
        graded = grading.grade(lesson.questions(index), state.get("answers"))
        if graded.wrong:
            return CheckFailedError(
                f"{len(graded.wrong)} answers are wrong", wrong=list(graded.wrong), feedback=dict(graded.feedback)
            )
    if verified is not None and not all(check.passed for check in verified):
        checks = [asdict(check) for check in verified]
        return PracticeFailedError("some checks did not pass: their output says why", checks=checks)
    return None


def _result(error: CodeHubError, state: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a try, for the learner's teacher too: what was wrong, and as much of what was sent or printed."""
    if isinstance(error, CheckFailedError):
        answers = state.get("answers")
        given = answers if isinstance(answers, dict) else {}
        wrong = error.extra["wrong"]
        return {"wrong": wrong, "answers": {id_: _short(given[id_]) for id_ in wrong if id_ in given}}
    checks = error.extra["checks"]
    shown = [{**check, "output": check["output"][-MOST_KEPT:].replace("\x00", "")} for check in checks]
    return {"failed": [check["id"] for check in checks if not check["passed"]], "checks": shown}


def _short(answer: object) -> str:
    """A learner may send whatever JSON there is."""
    text = ", ".join(map(str, answer)) if isinstance(answer, list) else str(answer)
    return text[:MOST_ANSWER].replace("\x00", "")


def _busy() -> UnavailableError:
    return UnavailableError("too many requests for the same run at once: try again in a moment")
