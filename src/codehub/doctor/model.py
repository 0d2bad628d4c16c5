"""What a check finds."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, but the operator should know
    FAIL = "fail"  # CodeHub will not work like this


@dataclass(frozen=True)
class Finding:
    name: str
    level: Level
    detail: str
    advice: str = ""


def ok(name: str, detail: str) -> Finding:
    return Finding(name, Level.OK, detail)


def warn(name: str, detail: str, advice: str) -> Finding:
    return Finding(name, Level.WARN, detail, advice)


def fail(name: str, detail: str, advice: str) -> Finding:
    return Finding(name, Level.FAIL, detail, advice)
