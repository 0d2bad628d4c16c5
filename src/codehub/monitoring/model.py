"""A sample: what the platform was like in a minute, a quarter of an hour or an hour."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum


class Resolution(IntEnum):
    """In seconds."""

    MINUTE = 60
    QUARTER_HOUR = 900
    HOUR = 3600


@dataclass(frozen=True)
class Sample:
    at: datetime  # the beginning of what it is about
    taken_at: datetime  # its newest figures
    minutes: int  # of how many it is made
    running: float
    asleep: float
    stored: float
    pending: float
    broken: float
    active_workspaces: int
    active_people: int
    waiting: int | None
    archive_bytes: int
    disk_free_bytes: int | None
    loop_lag_seconds: float | None
    slowest_loop: str | None
    wakes: tuple[int, ...] = ()  # how many took how long, by `rules.BOUNDS`


@dataclass(frozen=True)
class Readings:
    """What the leader knows beside the database. None: not known yet."""

    waiting: int | None  # people in line, of all events
    disk_free_bytes: int | None
    lags: Mapping[str, float]  # by loop, since it was asked last
