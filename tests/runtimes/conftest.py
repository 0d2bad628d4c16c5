"""Two neighbours on one machine, for every kind of sandbox: whatever one tries, the other must not notice."""

import os
import pathlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from codehub.runtimes.base import Container, ExecResult
from codehub.runtimes.process import ProcessRuntime
from tests.contracts.harness import KINDS, fresh_runtime, running
from tests.contracts.workloads import server, workload
from tests.servers import environment


@dataclass(frozen=True)
class Neighbours:
    """`alice` tries; `bob` has what she must not get."""

    runtime: ProcessRuntime
    data_dir: pathlib.Path
    alice: Container
    bob: Container

    async def alice_runs(self, script: str, *arguments: str) -> ExecResult:
        return await self.runtime.exec("alices", ["python3", "-c", script, *arguments], max_output=50_000_000)

    async def alice_sees(self, script: str, *arguments: str) -> str:
        result = await self.alice_runs(script, *arguments)
        assert result.exit_code == 0, result.output.decode()
        return result.output.decode()


@pytest.fixture(params=KINDS)
async def neighbours(request: pytest.FixtureRequest) -> AsyncIterator[Neighbours]:
    with environment(CODEHUB_ADMIN_TOKEN="the-platforms-own-secret"):
        async with fresh_runtime(request.param) as (runtime, data_dir):
            alice = await running(runtime, workload(server(), "alices", "alice"))
            bob = await running(runtime, workload(server(), "bobs", "bob", marker=f"bobs-own-{os.getpid()}"))
            await runtime.put("bobs", {"diary": b"bobs secret"})
            yield Neighbours(runtime, data_dir, alice, bob)
