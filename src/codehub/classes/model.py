"""What the store returns and the service hands out."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class MemberRole(StrEnum):
    LEARNER = "learner"
    TEACHER = "teacher"


class Came(StrEnum):
    """How a member came. Accounts that were made here, or joined by an invitation, are looked after by the teachers."""

    MADE = "made"
    JOINED = "joined"
    ADDED = "added"


@dataclass(frozen=True)
class SchoolClass:
    id: str
    title: str
    teachers: list[str]  # names, in order
    learners: int
    created_at: datetime
    archived_at: datetime | None


@dataclass(frozen=True)
class Member:
    user_id: str
    name: str
    display_name: str
    role: MemberRole
    came: Came
    school_id: str | None
    joined_at: datetime
    last_seen_at: datetime | None  # with a browser or a token
    active: bool

    @property
    def teaches(self) -> bool:
        return MemberRole.TEACHER is self.role


@dataclass(frozen=True)
class Invitation:
    id: str
    class_id: str
    code: str
    created_at: datetime
    expires_at: datetime
    max_uses: int | None  # None: any number
    uses: int
    revoked_at: datetime | None
