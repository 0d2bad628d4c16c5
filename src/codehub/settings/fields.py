"""How a setting is declared, and the checks of its value. Used by `groups` and `shares`."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

Check = Callable[[Any], str | None]


def at_least(minimum: float) -> Check:
    return lambda value: None if value >= minimum else f"must be at least {minimum:g}"


def between(low: int, high: int) -> Check:
    return lambda value: None if low <= value <= high else f"must be between {low} and {high}"


def one_of(*words: str) -> Check:
    return lambda value: None if value in words else f"must be one of {', '.join(words)}"


def url_of(*schemes: str) -> Check:
    def check(value: str | None) -> str | None:
        if value is None or urlsplit(value).scheme in schemes:
            return None
        return f"must be a URL beginning with {' or '.join(s + '://' for s in schemes)}"

    return check


def long_enough(value: str | None) -> str | None:
    return None if value is None or len(value) >= 16 else "must have at least 16 characters"


def keys_long_enough(value: str | None) -> str | None:
    if value is None or all(len(part.strip()) >= 16 for part in value.split(",")):
        return None
    return "must have at least 16 characters (several, separated by commas: the first signs, all are accepted)"


def host_names(value: tuple[str, ...]) -> str | None:
    wrong = [name for name in value if not re.fullmatch(r"[0-9A-Za-z]([0-9A-Za-z._-]*[0-9A-Za-z.])?", name)]
    return f"{wrong[0]!r} is not a name like labs.example.org" if wrong else None


def setting(env: str, default: Any, help_: str, *, check: Check | None = None, secret: bool = False) -> Any:
    metadata = {"env": env, "help": help_, "check": check, "secret": secret}
    return dataclasses.field(default=default, metadata=metadata, repr=not secret)
