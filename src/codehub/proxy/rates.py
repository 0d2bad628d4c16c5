"""How slow is too slow? Pure, and what the kernel knows of it.

A body has to come at a least rate after a first grace, a client only has to take something of its answer now and then:
who sends little holds a place that others need, who reads little holds a bounded buffer.
"""

import asyncio
import fcntl
import struct
import termios


def body_deadline(deadline: float, now: float, size: int, *, rate: float, grace: float) -> float:
    """Until when more of a body has to come, after a piece of this size.

    Every byte earns 1/rate seconds, and no sender saves up more than the grace: a body takes `grace + bytes / rate` at
    most, and ends when nothing comes for the length of the grace.
    """
    return min(deadline + size / rate, now + grace)


def unsent(transport: asyncio.Transport) -> int:
    """Bytes that we wrote and the other side's kernel has not confirmed: in our own buffer, and in our kernel's.

    The kernel's buffer holds megabytes, so that ours may stand still for minutes while a slow client reads steadily.
    """
    waiting = transport.get_write_buffer_size()
    raw = transport.get_extra_info("socket")
    if raw is None or raw.fileno() < 0:
        return waiting
    (queued,) = struct.unpack("i", fcntl.ioctl(raw.fileno(), termios.TIOCOUTQ, bytes(4)))
    return int(waiting + queued)
