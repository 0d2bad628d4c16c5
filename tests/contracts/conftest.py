"""Every runtime that can run here, one after the other, for each test of the contract."""

import pathlib
from collections.abc import AsyncIterator

import pytest

from codehub.runtimes.process import ProcessRuntime
from tests.contracts.harness import KINDS, fresh_runtime


@pytest.fixture(params=KINDS)
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
