from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from codehub.templates.model import ActivityMode, ActivityProfile

IDLE_TIMER_SECONDS = 300  # of the connections mode, where a workspace does not say otherwise


class Kind(IntEnum):
    """What something was that the proxy saw. Numbers, because counting them is a list's index on the hot path.

    Up to `UNREADABLE` they count as activity: a person, or a program of theirs, is at work. The rest is an IDE talking
    to itself.
    """

    REQUEST = 0
    BROWSING = 1
    OPENED = 2
    MESSAGE = 3
    EDITING = 4
    FILES = 5
    TERMINAL = 6
    KERNEL = 7
    BUSY = 8
    UNREADABLE = 9
    POLLING = 10
    REFRESH = 11
    KEEP_ALIVE = 12
    HOUSEKEEPING = 13
    REPLY = 14
    CONTROL_FRAME = 15

    @property
    def counts(self) -> bool:
        return self <= Kind.UNREADABLE

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


COUNTS = tuple(kind.counts for kind in Kind)  # an attribute of an enum's member is slower than a place in a tuple


@dataclass(frozen=True)
class Watched:
    """What a proxy has to know of the workspace that it passes bytes to."""

    workspace_id: str
    profile: ActivityProfile
    mode: ActivityMode = ActivityMode.TRAFFIC
    idle_seconds: int = IDLE_TIMER_SECONDS  # of the timer that starts when the last connection is gone


@dataclass(frozen=True)
class Seen:
    """What is known of a workspace's activity beside the time of the last one."""

    last_input_at: datetime | None
    last_output_at: datetime | None
    open_connections: int
    counted: dict[str, int]
    ignored: dict[str, int]
