from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Problem(StrEnum):
    """Why an installation failed."""

    TOOLS = "tools"  # programs that it needs are not on the machine: `missing`
    STEP = "step"  # one of its steps, in its tool's own words: `step`, `said`
    BUSY = "busy"  # the command line installs it at this moment
    TIME = "time"
    GAVE_UP = "gave_up"  # it was interrupted again and again
    OTHER = "other"  # `said`


@dataclass(frozen=True)
class StepBegun:
    code: str
    title: str  # in English, for programs
    data: Mapping[str, Any]
    at: datetime
    before: bool  # it was done in an earlier try


@dataclass(frozen=True)
class Installation:
    """The last one that was asked for."""

    name: str
    status: Status
    actor: str
    attempts: int
    cancelled: bool
    steps: Sequence[StepBegun]
    lines: Sequence[str]
    problem: Problem | None
    problem_data: Mapping[str, Any]
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def is_open(self) -> bool:
        return self.status in {Status.WAITING, Status.RUNNING}
