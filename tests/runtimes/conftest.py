"""Two neighbours on one machine, for every kind of sandbox: whatever one tries, the other must not notice."""

import contextlib
import pathlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from codehub.runtimes.base import Container, ExecResult, Runtime
from codehub.runtimes.process import ProcessRuntime
from tests.contracts.harness import DOCKER, KINDS, KUBERNETES, fresh_any, running
from tests.contracts.workloads import server, workload
from tests.servers import environment

ENGINES = [pytest.param(DOCKER, marks=pytest.mark.docker), pytest.param(KUBERNETES, marks=pytest.mark.cluster)]
ALL = [*KINDS, *ENGINES]
ON_THIS_MACHINE = [*KINDS, ENGINES[0]]  # where an IDE's door is a socket of it


@dataclass(frozen=True)
class Neighbours:
    """`alice` tries; `bob` has what she must not get."""

    runtime: Runtime
    data_dir: pathlib.Path
    alice: Container
    bob: Container
    marker: str  # in the command line of bob's programs, and nobody else's

    @property
    def processes(self) -> ProcessRuntime:
        """For what only this runtime has."""
        assert isinstance(self.runtime, ProcessRuntime)
        return self.runtime

    async def alice_runs(self, script: str, *arguments: str) -> ExecResult:
        return await self.runtime.exec("alices", ["python3", "-c", script, *arguments], max_output=50_000_000)

    async def alice_sees(self, script: str, *arguments: str) -> str:
        result = await self.alice_runs(script, *arguments)
        assert result.exit_code == 0, result.output.decode()
        return result.output.decode()


@contextlib.asynccontextmanager
async def next_door(kind: str) -> AsyncIterator[Neighbours]:
    with environment(CODEHUB_ADMIN_TOKEN="the-platforms-own-secret"):
        async with fresh_any(kind) as (runtime, data_dir):
            marker = f"bobs-own-{secrets.token_hex(8)}"
            alice = await running(runtime, workload(server(), "alices", "alice"))
            bob = await running(runtime, workload(server(), "bobs", "bob", marker=marker))
            await runtime.put("bobs", {"diary": b"bobs secret"})
            yield Neighbours(runtime, data_dir, alice, bob, marker)


@pytest_asyncio.fixture(params=ALL, scope="module", loop_scope="module")
async def neighbours(request: pytest.FixtureRequest) -> AsyncIterator[Neighbours]:
    """The same two for all tests of a file: whatever is tried, they are to be none the worse for it."""
    if request.param == DOCKER:
        request.getfixturevalue("docker_engine")
    if request.param == KUBERNETES:
        request.getfixturevalue("kubernetes")
    async with next_door(request.param) as moved_in:
        yield moved_in


@pytest_asyncio.fixture(params=KINDS, loop_scope="module")
async def short_lived(request: pytest.FixtureRequest) -> AsyncIterator[Neighbours]:
    """Two of a test's own, which it may hurt."""
    async with next_door(request.param) as moved_in:
        yield moved_in
