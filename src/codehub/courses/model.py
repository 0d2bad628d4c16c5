from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Course:
    """What every person may know of a course."""

    id: str
    owner: str | None  # name; None: the platform's
    key: str | None
    language: str
    version: int
    is_shipped: bool
    title: str
    description: str | None
    author: str | None
    sessions: int  # how many
    digest: str
    created_at: datetime
    changed_at: datetime
    withdrawn_at: datetime | None  # since when it cannot be taken up; None: it can


@dataclass(frozen=True)
class Lesson:
    """A session of a version of a course."""

    key: str
    title: str
    day: int
    steps: tuple[str, ...]
    blueprint_hash: str


@dataclass(frozen=True)
class Version:
    """What every version of a course has of its own, besides its sessions."""

    version: int
    title: str
    description: str | None
    author: str | None
    created_by: str  # a name, or who it was otherwise
    created_at: datetime
