"""Who is connected to a worker, and who makes room when too many are. The engine has one `Crowd`.

Clients, tunnels and last words are its guests: each is one open file. Below the worker's capacity nothing is done but
counting. Above it, or when one holder has too large a part, those go first who keep a connection and achieve nothing,
strangers before people (`admission` has the rules). What strangers leave with us unfinished is bounded in bytes.
"""

from typing import Protocol

from codehub.proxy.admission import Capacity, is_stranger, slowest
from codehub.proxy.metrics import Counters, Refusal

KEPT_BYTES = 32 * 1024 * 1024  # heads and bodies that strangers began, and answers they do not read
AT_ONCE = 20  # one of so many makes room at a time: to look for the slowest is not free


class Guest(Protocol):
    holder: str
    since: float  # when it last achieved something

    def is_slow(self) -> bool:
        """Nothing is under way for it, or only what the client itself holds up."""
        ...

    def shed(self) -> None:
        """End it, to make room."""
        ...


class Crowd:
    def __init__(self, capacity: Capacity, counters: Counters) -> None:
        self._capacity = capacity
        self._counters = counters
        self._groups: dict[str, dict[Guest, None]] = {}
        self._kept: dict[Guest, int] = {}  # bytes, of strangers
        self._kept_bytes = 0
        self.count = 0

    def enter(self, guest: Guest) -> None:
        group = self._groups.setdefault(guest.holder, {})
        group[guest] = None
        self.count += 1
        free = self._capacity.clients - self.count
        if free < 0:
            self._make_room()
        elif len(group) - 1 >= free + 1:
            self._shed(list(group), len(group) // AT_ONCE + 1, Refusal.CONNECTIONS)

    def leave(self, guest: Guest) -> None:
        group = self._groups.get(guest.holder)
        if group is None or guest not in group:
            return
        del group[guest]
        self.count -= 1
        if not group:
            del self._groups[guest.holder]
        self.keep(guest, 0)

    def become(self, guest: Guest, who: str) -> bool:
        """A user who is logged in speaks on this connection. False: they have too many, and all are in use."""
        group = self._groups.get(who, {})
        free = self._capacity.clients - self.count + 1
        if len(group) >= free and not self._shed(list(group), 1, Refusal.CONNECTIONS):
            return False
        self.leave(guest)
        guest.holder = who
        self._groups.setdefault(who, {})[guest] = None
        self.count += 1
        return True

    def keep(self, guest: Guest, size: int) -> None:
        """So many bytes wait for this stranger to go on."""
        before = self._kept.pop(guest, 0)
        self._kept_bytes += size - before
        if size:
            self._kept[guest] = size
            if self._kept_bytes > KEPT_BYTES:
                self._shed(list(self._kept), len(self._kept) // AT_ONCE + 1, Refusal.CROWDED)

    def _make_room(self) -> None:
        wanted = self._capacity.clients // AT_ONCE + 1
        strangers = [guest for who, group in self._groups.items() if is_stranger(who) for guest in group]
        if not self._shed(strangers, wanted, Refusal.CROWDED):
            self._shed([guest for group in self._groups.values() for guest in group], 1, Refusal.CROWDED)

    def _shed(self, guests: list[Guest], count: int, why: Refusal) -> int:
        slow = [guest for guest in guests if guest.is_slow()]
        out = slowest([(guest.holder, guest.since) for guest in slow], count)
        for n in out:
            self.leave(slow[n])
            slow[n].shed()
            self._counters.refused(why)
        return len(out)
