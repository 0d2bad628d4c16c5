"""Every runtime that can run here, one after the other, for each test of the contract."""

import pathlib
from collections.abc import AsyncIterator

import pytest

from codehub.runtimes.process import ProcessRuntime
from tests.contracts.harness import KINDS, fresh_runtime


# What a machine would choose; the other one in `make soak`. (How well they keep workspaces apart is tested of both.)
@pytest.fixture(params=[KINDS[-1], *(pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS[:-1])])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def opened(kind: str) -> AsyncIterator[tuple[ProcessRuntime, pathlib.Path]]:
    async with fresh_runtime(kind) as opened:
        yield opened


@pytest.fixture
def runtime(opened: tuple[ProcessRuntime, pathlib.Path]) -> ProcessRuntime:
    return opened[0]


@pytest.fixture
def folder(opened: tuple[ProcessRuntime, pathlib.Path]) -> pathlib.Path:
    return opened[1]
