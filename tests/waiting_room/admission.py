"""What `Workspaces` is given in tests that are not about the waiting room: the real one, in which nobody waits."""

from codehub.clock import Clock
from codehub.waiting_room.lab import Lab
from codehub.waiting_room.tokens import Tokens


def a_line(clock: Clock) -> Lab:
    return Lab(clock, Tokens("a-signing-key-for-tests"))
