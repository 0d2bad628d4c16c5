"""When files were written and folders changed, and whether they still are so. For `warm` and `kernels`.

In one piece of memory instead of many objects: to look at an object is to write to it, since its references are counted
in it, and what a copy writes to is no longer shared with its parent.
"""

# Plain names instead of paths: used between a fork and a program.
# ruff: noqa: PTH116

import contextlib
import io
import os
from collections.abc import Iterable


def of(paths: Iterable[str]) -> bytes:
    """Those that are there."""
    lines = {os.fsencode(path): _stamp(os.fsencode(path)) for path in paths}
    return b"".join(b"%b\0%b\n" % (path, stamp) for path, stamp in lines.items() if stamp and b"\n" not in path)


def changed(stamps: bytes, *, inside: bool = False) -> bool:
    """`inside`: of a sandbox. What is not there, or lies on another device, is the machine's, and not visible."""
    for line in io.BytesIO(stamps):
        path, _, known = line[:-1].rpartition(b"\0")
        found = _stamp(path)
        hidden = inside and (not found or found.split()[0] != known.split()[0])
        if found != known and not hidden:
            return True
    return False


def _stamp(path: bytes) -> bytes:
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return b"%d %d %d %d" % (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    return b""
