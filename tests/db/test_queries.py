"""Every named SQL block is valid on the migrated database."""

import pathlib

import asyncpg
import pytest

import codehub
from codehub.db import Queries

PACKAGES = sorted(
    "codehub." + ".".join(path.parent.relative_to(pathlib.Path(codehub.__file__).parent).parts)
    for path in pathlib.Path(codehub.__file__).parent.rglob("queries.sql")
)


@pytest.mark.parametrize("package", PACKAGES)
async def test_every_query_can_be_prepared(package: str, database_url: str) -> None:
    queries = Queries(package)
    connection = await asyncpg.connect(database_url)
    for name in queries.names():
        assert await connection.prepare(getattr(queries, name)), name
    await connection.close()


def test_an_unknown_name_is_an_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="no query named nonsense"):
        _ = Queries(PACKAGES[0]).nonsense
