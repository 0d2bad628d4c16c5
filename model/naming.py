"""Names that mean nothing by themselves: ids of operations (`o1`, `o2` …) and versions of a home (`v1`, `v2` …).

States that differ only in these are one state. Operations are named in the order in which a walk through the state
meets them; versions keep their order, the newest being the person's work.
"""

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codehub.workspaces.model import Workspace

NAME = re.compile(r"[ov]\d+")  # also as a part: of a key (w/o1/2/home.tar.zst), of a generation (o1-2)
PARTS = re.compile(r"([/-])")
COLUMNS = ("op_id", "archive_key", "volume_generation", "restore_from")


def names(value: Any) -> Iterator[str]:
    """Every name in a value, in order, more than once if it is there more than once."""
    if isinstance(value, str):
        yield from (part for part in PARTS.split(value) if NAME.fullmatch(part))
    elif isinstance(value, tuple):
        for part in value:
            yield from names(part)
    elif isinstance(value, Workspace):
        for column in COLUMNS:
            yield from names(getattr(value, column))


def rename(value: Any, to: Mapping[str, str]) -> Any:
    if isinstance(value, enum.Enum):
        return value  # it stays what it is, not only equal to it
    if isinstance(value, str):
        return "".join(to.get(part, part) for part in PARTS.split(value))
    if isinstance(value, tuple):
        parts = [rename(part, to) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, Workspace):
        return replace(value, **{column: rename(getattr(value, column), to) for column in COLUMNS})
    return value


def fresh(kind: str, used: set[str]) -> str:
    """A name that nobody has: for an operation the first free one, for a version one above all others."""
    numbers = {int(name[1:]) for name in used if name[0] == kind}
    if kind == "v":
        return f"v{max(numbers, default=0) + 1}"
    return next(f"o{n}" for n in range(1, len(numbers) + 2) if n not in numbers)


def canonical(order: Sequence[str]) -> dict[str, str]:
    """What each name in use is to be called."""
    operations = list(dict.fromkeys(name for name in order if name[0] == "o"))
    versions = sorted({name for name in order if name[0] == "v"}, key=lambda name: int(name[1:]))
    to = {name: f"o{n}" for n, name in enumerate(operations, 1)}
    return to | {name: f"v{n}" for n, name in enumerate(versions, 1)}
