"""What tests of PRACTICE on a whole platform share: a learner with a plan, and the way to a workspace that runs."""

import contextlib
import itertools
import pathlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from codehub.clock import SystemClock
from codehub.runtimes.base import ExecResult
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.process import ProcessRuntime
from tests.platform import Platform
from tests.sessions.learning import Learner, Reply
from tests.workspaces.test_lifecycle import until as until_phase

numbers = itertools.count()
PRACTICE, COMPLETE = 0, 1


def practice(*commands: str, files: Mapping[str, str] | None = None, seconds: int = 10, **more: Any) -> dict[str, Any]:
    """A blueprint that is all PRACTICE."""
    checks = [
        {"id": f"c{n}", "title": f"Check {n}", "command": command, "timeoutSeconds": seconds, "hint": f"Hint {n}"}
        for n, command in enumerate(commands)
    ]
    activity = {"template": "tiny", "instructions": "Do it.", "files": files or {}, "checks": checks, **more}
    return {"steps": ["PRACTICE", "COMPLETE"], "practiceActivity": activity, "encouragement": "Well done"}


@dataclass(frozen=True)
class Pupil(Learner):
    """A learner on a whole platform."""

    name: str = ""
    data_dir: pathlib.Path = pathlib.Path()

    async def open(self, run: Any, fence: int | None = None) -> Reply:
        body = {"fence": run["fence"] if fence is None else fence}
        return await self.ask("POST", f"/runs/{run['id']}/workspace", body)

    async def opened(self, run: Any) -> Any:
        """The answer once it runs."""
        status, found = await self.open(run)
        assert status == 200, found
        if found["files"] is not None:
            return found
        await until_phase(self.client, found["workspace_id"], "RUNNING")
        status, found = await self.open(run)
        assert (status, found["phase"]) == (200, "RUNNING"), found
        assert found["files"] is not None
        return found

    async def begun(self, blueprint: Any, **more: Any) -> tuple[Any, Any]:
        """A run, and its workspace."""
        run = await self.started(await self.session(blueprint, **more))
        return run, await self.opened(run)

    async def sh(self, workspace: Any, command: str) -> str:
        """As the learner does it in a terminal."""
        done = await self._exec(workspace, command)
        assert done.exit_code == 0, done
        return done.output.decode()

    async def run_script(self, workspace: Any, script: str) -> None:
        """By `sh`, whatever becomes of it: it may be a mistake."""
        done = await self._exec(workspace, script)
        assert not done.timed_out, done

    async def _exec(self, workspace: Any, command: str) -> ExecResult:
        runtime = ProcessRuntime(self.data_dir, RuntimeConfig(), None, SystemClock())
        return await runtime.exec(workspace["workspace_id"], ["sh", "-c", command])


@contextlib.asynccontextmanager
async def pupil(platform: Platform, role: str = "learner") -> AsyncIterator[Pupil]:
    """A new person."""
    name = f"pupil{next(numbers)}"
    async with platform.client() as admin:
        office = Learner(admin)
        assert (await office.ask("POST", "/users", {"name": name, "role": role}))[0] == 201
        _, made = await office.ask("POST", f"/users/{name}/tokens", {})
    async with platform.client(made["token"]) as client:
        yield Pupil(client, name, platform.data_dir)
