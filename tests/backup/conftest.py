"""Databases to restore into, and a backup in one call."""

import pathlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest

from codehub.backup import restore, service
from codehub.backup.model import Manifest
from codehub.backup.progress import Meter
from tests import databases
from tests.servers import TestServers

KEY = "the-signing-key-of-a-test"


@pytest.fixture
async def empty_url(servers: TestServers) -> AsyncIterator[str]:
    """A database that CodeHub never saw."""
    async with databases.without_tables(servers) as url:
        yield url


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "monday.codehub"


async def back_up(url: str, file: pathlib.Path, *, force: bool = False) -> Manifest:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    return await service.write(url, file, signing_key=KEY, now=now, force=force, meter=Meter())


async def bring_back(url: str, file: pathlib.Path, *, replace: bool = False) -> None:
    await restore.load(url, file, restore.check(file, Meter()), replace=replace, meter=Meter())


async def add_people(url: str, *names: str) -> None:
    connection = await asyncpg.connect(url)
    for name in names:
        await connection.execute("INSERT INTO users (name, role, created_at) VALUES ($1, 'learner', now())", name)
    await connection.close()


async def people(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        return [row["name"] for row in await connection.fetch('SELECT name FROM users ORDER BY name COLLATE "C"')]
    finally:
        await connection.close()
