"""The use cases of a PRACTICE: opening the run's workspace with its starter files, and running its checks.

Called by the API, and by `Runs` before a PRACTICE is completed. The API may not act inside workspaces: what is to be
done there becomes a task, which the coordinator's loop takes up (`practice_loop`), and is waited for without holding
a connection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codehub import ids, names
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError
from codehub.policy.actions import Action
from codehub.policy.model import Principal, System, system
from codehub.sessions import news, rules, store
from codehub.sessions import practice_store as tasks
from codehub.sessions.authorize import authorize, is_id, no_run
from codehub.sessions.blueprint_model import Activity
from codehub.sessions.blueprints import Blueprints
from codehub.sessions.errors import HomeFullError, PracticeBusyError, StarterFilesError, WorkspaceNotRunningError
from codehub.sessions.model import CheckResult, Run
from codehub.sessions.practice_results import PracticeResults
from codehub.sessions.practice_runner import Outcome, Result
from codehub.sessions.practice_store import Kind, NewTask
from codehub.settings import PracticeConfig
from codehub.workspaces.admission import Refused, admitted
from codehub.workspaces.model import Desired, Health, Phase, Workspace
from codehub.workspaces.service import NewWorkspace, Workspaces

SESSIONS = system(System.SESSIONS)
TRIES = 4  # each fails only because another request of the same plan or run was quicker
RETRY_SECONDS = 5
FILES_SECONDS = 30.0  # that a request waits for its starter files: a moment, and those before it in the line
LONGEST_NAME = 100
NOT_RUNNING = "the workspace of this run does not run: open it, then try again"


@dataclass(frozen=True)
class StarterFile:
    path: str
    put: str  # `written`, `unchanged`, `beside`
    name: str  # the path it really has: another one where the learner's own stands in its place


@dataclass(frozen=True)
class OpenedWorkspace:
    workspace: Workspace
    files: tuple[StarterFile, ...] | None  # None: it does not run yet, ask again when it does


def is_running(w: Workspace) -> bool:
    """And goes on running, as far as is known: what a page does by itself must not wake what is put to sleep."""
    return w.phase is Phase.RUNNING and w.desired_state is Desired.RUNNING and not w.deleted_at


class Practice:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: PracticeConfig,
        workspaces: Workspaces,
        blueprints: Blueprints,
        results: PracticeResults,
    ) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._workspaces = workspaces
        self._blueprints = blueprints
        self._results = results

    # --- opening

    async def open(self, caller: Principal, run_id: str, fence: int) -> OpenedWorkspace:
        """The plan's workspace for this template: made, taken out of the trash or woken, as it needs."""
        run, activity = await self._held(caller, run_id, fence)
        w = await self._workspace(caller, run, activity.template or self._config.template)
        files = await self._deliver(run, w, activity) if w.phase is Phase.RUNNING else None
        return OpenedWorkspace(w, files)

    async def put_files(self, caller: Principal, run_id: str, fence: int) -> OpenedWorkspace | None:
        """The starter files, into a workspace that runs: for them it is neither made nor woken."""
        run, activity = await self._held(caller, run_id, fence)
        try:
            w = await self._workspaces.get(SESSIONS, run.workspace_id) if run.workspace_id else None
        except NotFoundError:
            return None
        return OpenedWorkspace(w, await self._deliver(run, w, activity)) if w and is_running(w) else None

    async def _held(self, caller: Principal, run_id: str, fence: int) -> tuple[Run, Activity]:
        async with self._database.connection() as c:
            found = await store.find_run(c, run_id) if is_id(run_id) else None
            if found is None:
                raise no_run(run_id)
            run = found[0]
            authorize(caller, Action.RUN_WRITE, run.owner, no_run(run_id))
            rules.passed(rules.write(run, fence), run)
            activity = (await self._blueprints.get(c, run.blueprint_hash)).activity
        if activity is None:
            raise InvalidRequestError("its session has no PRACTICE, so it has no workspace", field="run")
        return run, activity

    async def workspace(self, run: Run, activity: Activity) -> Workspace | None:
        """The one that opening would wake; None: it would make one."""
        template = activity.template or self._config.template
        async with self._database.connection() as c:
            known: str | None = await c.fetchval(tasks.sql.plan_workspace, run.plan_id, template)
        try:
            return await self._workspaces.get(SESSIONS, known) if known else None
        except NotFoundError:
            return None

    async def _workspace(self, caller: Principal, run: Run, template: str) -> Workspace:
        gone: str | None = None
        for _ in range(TRIES):
            async with self._database.connection() as c:
                known: str | None = await c.fetchval(tasks.sql.plan_workspace, run.plan_id, template)
            if known is None or known == gone:
                made = await self._create(caller, run, template, instead_of=gone)
            else:
                made = await self._wake(caller, known)
                gone = known
            if made is not None:
                w = admitted(made)
                await self._keep(run, w)
                return w
        raise _too_many()

    async def _create(
        self, caller: Principal, run: Run, template: str, *, instead_of: str | None
    ) -> Workspace | Refused | None:
        """None: another request has made one meanwhile."""
        async with self._database.transaction() as c:
            plan = await c.fetchrow(tasks.sql.lock_plan, run.plan_id)
            if plan is None or await c.fetchval(tasks.sql.plan_workspace, run.plan_id, template) != instead_of:
                return None
            several = await c.fetchval(tasks.sql.other_templates, run.plan_id, template)
            new = NewWorkspace(workspace_name(plan["title"], template if several else None), template, owner=run.owner)
            made = await self._workspaces.create_in(c, SESSIONS, new, counted_for=caller)
            if isinstance(made, Workspace):
                await c.execute(tasks.sql.keep_plan_workspace, run.plan_id, template, made.id)
        return made

    async def _wake(self, caller: Principal, id_: str) -> Workspace | Refused | None:
        """Out of the trash, too, which is the learner's own doing. None: it is gone for good."""
        try:
            w = await self._workspaces.get(SESSIONS, id_)
            if w.purge or w.emptied_at:
                return None
            if w.deleted_at:
                w = await self._workspaces.undelete(caller, id_)
            if w.desired_state is Desired.RUNNING and w.health_status is Health.OK:
                return w
            outcome = await self._workspaces.request(SESSIONS, id_, Desired.RUNNING)
        except NotFoundError:
            return None
        return outcome if isinstance(outcome, Refused) else outcome[0]

    async def _keep(self, run: Run, w: Workspace) -> None:
        """In the run, as it was read: a run that was taken over or ended meanwhile is not written."""
        async with self._database.connection() as c:
            told = news.run_updated(run)
            event = (self._clock.now(), told.audience, told.kind, told.data)
            if await c.fetchval(tasks.sql.set_workspace, run.id, run.fence, w.id, *event) is None:
                await _still_held(c, run)

    async def _deliver(self, run: Run, w: Workspace, activity: Activity) -> tuple[StarterFile, ...] | None:
        if not activity.files:
            return ()
        result = await self._done(run, w.id, Kind.FILES, {"files": dict(activity.files)}, FILES_SECONDS)
        match result["outcome"]:
            case Outcome.NOT_RUNNING:
                return None
            case Outcome.HOME_FULL:
                raise HomeFullError(result["detail"])
            case Outcome.REFUSED:
                raise StarterFilesError(f"{result['detail']}: move what is there away, then open the workspace again")
        return tuple(StarterFile(file["path"], file["put"], file["as"]) for file in _succeeded(result)["files"])

    # --- checking

    async def verify(self, run: Run, activity: Activity) -> Sequence[CheckResult]:
        """Run the checks of this activity in the run's workspace; while they run, nothing is held."""
        if not activity.checks:
            return []
        if run.workspace_id is None:
            raise WorkspaceNotRunningError("open the workspace of this run first: its checks run there")
        if (await self._workspaces.get(SESSIONS, run.workspace_id)).phase is not Phase.RUNNING:
            raise WorkspaceNotRunningError(NOT_RUNNING)
        checks = [
            {"id": check.id, "command": check.command, "seconds": check.timeout_seconds} for check in activity.checks
        ]
        wait = self._config.wait_seconds
        result = await self._done(run, run.workspace_id, Kind.CHECKS, {"checks": checks}, wait)
        if result["outcome"] == Outcome.NOT_RUNNING:
            raise WorkspaceNotRunningError(NOT_RUNNING)
        found = {check["id"]: check for check in _succeeded(result)["checks"]}
        return [_shown(check.id, check.title, check.hint, found[check.id]) for check in activity.checks]

    async def _done(
        self, run: Run, workspace_id: str, kind: Kind, request: Mapping[str, Any], seconds: float
    ) -> Result:
        new = NewTask(ids.new(), kind, run.id, workspace_id, run.step_index, run.fence, request)
        for _ in range(TRIES):
            async with self._database.transaction() as c:
                task = await tasks.add_or_join(c, new, self._clock.now())
            if task is None:
                continue
            if (result := await self._results.of(task, seconds)) is None:
                raise PracticeBusyError(
                    "it has not ended yet: ask again, the place in the line is kept", retry_after=RETRY_SECONDS
                )
            async with self._database.connection() as c:
                await c.execute(tasks.sql.take, task, self._clock.now())
                if result["outcome"] == Outcome.SUPERSEDED:
                    await _still_held(c, run)
            return result
        raise _too_many()


async def _still_held(c: Connection, run: Run) -> None:
    """Refuse what was asked for by a page that does not have this run any more."""
    now = await store.find_run(c, run.id)
    if now is None:
        raise no_run(run.id)
    rules.passed(rules.write(now[0], run.fence), now[0])


def _succeeded(result: Result) -> Result:
    if result["outcome"] != Outcome.DONE:
        raise PracticeBusyError("this could not be done in the workspace: ask again", retry_after=RETRY_SECONDS)
    return result


def _shown(id_: str, title: str, hint: str | None, found: Mapping[str, Any]) -> CheckResult:
    passed = found["exit_code"] == 0 and not found["timed_out"]
    shown = hint if not passed else None
    left_out: int = found.get("left_out", 0)
    return CheckResult(id_, title, passed, found["output"], shown, found["timed_out"], left_out > 0, left_out)


def workspace_name(title: str, template: str | None) -> str:
    """The plan's, so that a person recognises it on the dashboard; with the template where the plan has several."""
    suffix = f" ({template})" if template else ""
    kept = title if names.complaint(title) is None else ""  # a plan's title may have what a name may not
    return f"{names.composed(kept)[: LONGEST_NAME - len(suffix)].strip() or 'Practice'}{suffix}"


def _too_many() -> CodeHubError:
    return PracticeBusyError("too many requests for the same plan at once: try again in a moment", retry_after=1)
