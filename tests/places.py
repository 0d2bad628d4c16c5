"""Where data directories of tests are: in memory or on a disk."""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

MEMORY = pathlib.Path("/dev/shm")  # a file system in memory, on most machines
MEMORY_NEEDED = 4 * 2**30


@contextlib.contextmanager
def a_place(*, on_disk: bool = False) -> Iterator[pathlib.Path]:
    """A folder with a short path that an unprivileged account can reach, unlike pytest's own; gone afterwards."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-", dir=None if on_disk else place_for_data()))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place_for_data() -> pathlib.Path:
    """Where data directories of tests go: into memory, if there is enough; making a file takes a tenth of the time.

    Tests of what is done to people's files (archives, homes, runtimes) and of what survives are on a disk like theirs.
    """
    try:
        found = os.statvfs(MEMORY)
    except OSError:
        return pathlib.Path(tempfile.gettempdir())
    enough = found.f_bavail * found.f_frsize >= MEMORY_NEEDED and os.access(MEMORY, os.W_OK)
    programs_may_run = not found.f_flag & os.ST_NOEXEC
    return MEMORY if enough and programs_may_run else pathlib.Path(tempfile.gettempdir())
