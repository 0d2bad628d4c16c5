"""Python packages that a person has installed into their home: would a program that has its modules loaded be another?

Asked by a copy of a warm parent, from outside of the sandbox: names are looked at, in folders that are no links, and
nothing is read.
"""

import contextlib
import os
import site
import sys
from collections.abc import Collection

MOST = 5_000  # names that are looked at


def change(home: str, absent: Collection[str]) -> bool:
    """`absent`: modules that were looked for while others were loaded, and were not there.

    Where an environment's own packages come first, as in one that nobody inside can write to, only those matter.
    """
    try:
        names = _names(home)
    except OSError:
        return True  # a link, or closed: it is for the interpreter inside to find out
    if site.ENABLE_USER_SITE:
        return bool(names)  # they come before what is loaded
    return names is not None and (len(names) >= MOST or any(_module(name) in absent for name in names))


def _names(home: str) -> list[str] | None:
    """None: there is no such folder."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in (".local", "lib", version, "site-packages"):
            try:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            except FileNotFoundError:
                return None
            os.close(fd)
            fd = inner
        found = []
        with os.scandir(fd) as entries:
            for entry in entries:
                found.append(entry.name)
                if len(found) >= MOST:
                    break
        return found
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)


def _module(name: str) -> str:
    """`numpy` and `six.py` and `_cffi.cpython-311-x86_64-linux-gnu.so` are modules by their first word."""
    return name.partition(".")[0]
