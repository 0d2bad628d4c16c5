"""Every runtime that can run here, one after the other, for each test of the contract."""

import pathlib
from collections.abc import AsyncIterator

import pytest

from codehub.runtimes.base import Runtime
from codehub.runtimes.process import ProcessRuntime
from tests.contracts.harness import DOCKER, KINDS, KUBERNETES, fresh_any, fresh_runtime

# What a machine would choose; the other one in `make soak`. (How well they keep workspaces apart is tested of both.)
PROCESSES = [KINDS[-1], *(pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS[:-1])]
ENGINES = [pytest.param(DOCKER, marks=pytest.mark.docker), pytest.param(KUBERNETES, marks=pytest.mark.cluster)]


@pytest.fixture(params=[*PROCESSES, *ENGINES])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == DOCKER:
        request.getfixturevalue("docker_engine")
    if request.param == KUBERNETES:
        request.getfixturevalue("kubernetes")
    return str(request.param)


@pytest.fixture
async def opened(kind: str) -> AsyncIterator[tuple[Runtime, pathlib.Path]]:
    async with fresh_any(kind) as opened:
        yield opened


@pytest.fixture
def runtime(opened: tuple[Runtime, pathlib.Path]) -> Runtime:
    return opened[0]


@pytest.fixture
def folder(opened: tuple[Runtime, pathlib.Path]) -> pathlib.Path:
    return opened[1]


@pytest.fixture(params=PROCESSES)
async def opened_processes(request: pytest.FixtureRequest) -> AsyncIterator[tuple[ProcessRuntime, pathlib.Path]]:
    """For what only the process runtime has: its files."""
    async with fresh_runtime(request.param) as (runtime, folder):
        yield runtime, folder


@pytest.fixture
def processes(opened_processes: tuple[ProcessRuntime, pathlib.Path]) -> ProcessRuntime:
    return opened_processes[0]


@pytest.fixture
def processes_folder(opened_processes: tuple[ProcessRuntime, pathlib.Path]) -> pathlib.Path:
    return opened_processes[1]
