"""What a process has to do because obstore runs threads of its own in it. `objects` calls these once."""

import atexit
import contextlib
import ctypes
import functools
import time

_EXIT_DELAY_SECONDS = 0.1
_M_MMAP_THRESHOLD = -3


@functools.cache
def delay_exit() -> None:
    """Wait at the end of the process until obstore's threads let go of the Python objects that they have handed over.

    They touch them after an answer has arrived, and an interpreter that ends under them aborts the process:
    a flaw of pyo3-async-runtimes (its issue 40), seen in a third of all processes that end right after a request.
    """
    atexit.register(time.sleep, _EXIT_DELAY_SECONDS)


@functools.cache
def return_freed_memory() -> None:
    """Have glibc return large buffers to the system at once.

    By itself it learns to keep them, and what it keeps for many threads adds up: 40 MB became 150 over 5 GB.
    """
    with contextlib.suppress(AttributeError):  # other C libraries do not have this, nor need it
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 256 * 1024)
