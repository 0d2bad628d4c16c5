"""What a process has to do because obstore runs threads of its own in it. `objects` calls these once."""

import atexit
import contextlib
import ctypes
import functools
import time

_PEACE_SECONDS = 0.1
_M_MMAP_THRESHOLD = -3


@functools.cache
def leave_in_peace() -> None:
    """At the end of the process, let obstore's threads put down what they have just handed over.

    They touch Python objects after an answer has arrived, and an interpreter that ends under them aborts the process:
    a flaw of pyo3-async-runtimes (its issue 40), seen in a third of all processes that end right after a request.
    """
    atexit.register(time.sleep, _PEACE_SECONDS)


@functools.cache
def give_memory_back() -> None:
    """Have glibc return large buffers to the system at once.

    By itself it learns to keep them, and what it keeps for many threads adds up: 40 MB became 150 over 5 GB.
    """
    with contextlib.suppress(AttributeError):  # other C libraries do not have this, nor need it
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 256 * 1024)
