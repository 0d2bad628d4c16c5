"""An event, and the audiences it can be for.

An audience is `CLASS:ID` (`user:mina`, `class:3`, `workspace:k3jx7q2mzv5d`) or just `admins`. A listener may name a
whole class (`workspace:*`); an event never does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CHANNEL = "codehub_events"
ADMINS = "admins"


@dataclass(frozen=True, slots=True)
class Event:
    audience: str
    kind: str
    subject: str
    data: Mapping[str, Any] = field(default_factory=dict)  # small: codes, and what a page needs


@dataclass(frozen=True, slots=True)
class Stored:
    """An event as it is read."""

    position: int
    audience: str
    kind: str
    subject: str
    data: str  # JSON, on one line


def user(id_: str) -> str:
    return f"user:{id_}"


def every(audience: str) -> str:
    """The whole class of an audience: `workspace:*` of `workspace:k3jx7q2mzv5d`."""
    return audience.partition(":")[0] + ":*"
