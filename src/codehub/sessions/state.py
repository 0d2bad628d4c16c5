"""What a client saves with a step: any JSON object, bounded, that the database can store. Pure; `Runs` asks."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from codehub.errors import InvalidRequestError

MOST_BYTES = 64 * 1024
MOST_BYTES_AT_ONCE = 1024 * 1024  # of several, on a page
MOST_LEVELS = 32  # what writes and reads JSON calls itself for each, some of it not very often


def canonical(state: Mapping[str, Any]) -> tuple[str, bytes]:
    """The same text for the same state, and its digest: by it a step that is sent again is known to be the same."""
    if _is_deep(state):
        raise InvalidRequestError(f"has more than {MOST_LEVELS} levels of lists and objects", field="state")
    try:
        text = json.dumps(state, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        encoded = text.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError("has half a surrogate pair, which is no character", field="state") from None
    except ValueError:
        raise InvalidRequestError("has a number that is too large", field="state") from None
    if len(encoded) > MOST_BYTES:
        raise InvalidRequestError(f"has {len(encoded)} bytes as JSON; {MOST_BYTES} is the most", field="state")
    if "\\u0000" in text and "\x00" in _texts(state):
        raise InvalidRequestError("has a NUL character, which cannot be stored", field="state")
    return text, hashlib.sha256(encoded).digest()


def _is_deep(state: Mapping[str, Any]) -> bool:
    """Level by level, so that no depth is too much for this."""
    level: list[Any] = [state]
    for _ in range(MOST_LEVELS):
        level = [inner for outer in level for inner in _inside(outer)]
    return any(isinstance(value, dict | list) for value in level)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _texts(value: object) -> str:
    """All names and texts in it."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "".join(f"{name}{_texts(inner)}" for name, inner in value.items())
    return "".join(map(_texts, value)) if isinstance(value, list) else ""
