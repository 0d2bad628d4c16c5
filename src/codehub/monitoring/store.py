"""Rows of samples, and the figures that they are made of. Called by `sampler` and `service`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from codehub.db import Connection, Queries
from codehub.monitoring.model import Resolution, Sample

sql = Queries("codehub.monitoring")
MOST_WAKES = 10_000  # that one sample looks at
FIELDS = tuple(Sample.__dataclass_fields__)


@dataclass(frozen=True)
class Figures:
    """What the database says of now."""

    counters: Mapping[str, int]
    active_workspaces: int
    active_people: int

    def phase(self, name: str) -> int:
        return self.counters.get(f"phase:{name}", 0)


async def figures(c: Connection, active_since: datetime) -> Figures:
    counters = {row["name"]: row["value"] for row in await c.fetch(sql.counters)}
    active = await c.fetchrow(sql.active, active_since)
    assert active  # noqa: S101 (an aggregate has one row)
    return Figures(counters, active["workspaces"], active["people"])


async def wakes(c: Connection, since: datetime, until: datetime) -> list[float]:
    """Seconds that those took which ran since then."""
    return [row["seconds"] for row in await c.fetch(sql.wakes, since, until, MOST_WAKES)]


async def between(c: Connection, resolution: Resolution, since: datetime, until: datetime, limit: int) -> list[Sample]:
    """The newest first."""
    found = await c.fetch(sql.between, resolution, since, until, limit)
    return [Sample(**{**dict(row), "wakes": tuple(row["wakes"])}) for row in found]


async def write(c: Connection, resolution: Resolution, sample: Sample) -> None:
    await c.execute(sql.write, resolution, *(getattr(sample, name) for name in FIELDS))
