"""Everything that a shepherd watches about its workspace's share of the machine, and when to look next."""

from collections.abc import Callable

from codehub.runtimes.shepherd.descriptor_watch import DescriptorWatch
from codehub.runtimes.shepherd.disk_watch import DiskWatch
from codehub.runtimes.shepherd.members import Members
from codehub.runtimes.shepherd.process_watch import ProcessWatch
from codehub.runtimes.shepherd.spec import PLAIN, Spec
from codehub.system.kernel import now_seconds


class Watch:
    def __init__(self, spec: Spec, first: int, say: Callable[[str], None]) -> None:
        members = Members(first, plain=spec.isolation == PLAIN)
        disk = DiskWatch(spec.shares, [spec.home, spec.socket_dir], members, say)
        processes = ProcessWatch(spec.shares, spec.home, members, say)
        descriptors = DescriptorWatch(members, say)
        now = now_seconds()
        self._due = {watch.look: now for watch in (disk, processes, descriptors) if watch.wanted}

    def pause(self) -> float | None:
        """Seconds until something has to be looked at; None: never."""
        return max(0.0, min(self._due.values()) - now_seconds()) if self._due else None

    def look(self) -> None:
        for look, due in self._due.items():
            if now_seconds() >= due:
                self._due[look] = now_seconds() + look()
