"""What an engine has of a workspace's homes: which one is in place, which one is in the trash, and what is left. Pure.

An engine makes homes with names of their own; which of them a workspace has is told by an entry, made in one step that
one caller wins. A home that no entry names is half made, or half destroyed.
"""

from dataclasses import dataclass, field

from codehub.runtimes.base import DiskItem, RuntimeFailureError, UnreadableError

# The two entries that a workspace can have.
VOLUME, PARKED = "volume", "parked"
LARGEST_UID = 2**32 - 2


class TakenError(RuntimeFailureError):
    """Another came first."""


@dataclass(frozen=True)
class Home:
    """A volume of the engine, with files in it."""

    name: str
    generation: str  # of the operation that made it; once it was taken back from the trash, its entry has another
    uid: int


@dataclass(frozen=True)
class Entry:
    generation: str
    home: Home
    restored_from: str | None = None


@dataclass
class Seen:
    """All volumes of one workspace."""

    entries: dict[str, Entry] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)  # by the kind of entry: why
    unclaimed: list[Home] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)  # kinds of entries whose home is gone
    stale: Entry | None = None  # a parked entry of the home in place: parking, or taking back, was cut short
    others: list[str] = field(default_factory=list)  # names

    def require_readable(self) -> None:
        for reason in self.unreadable.values():
            raise UnreadableError(reason)

    @property
    def volume(self) -> Entry | None:
        return self.entries.get(VOLUME)

    @property
    def parked(self) -> Entry | None:
        return self.entries.get(PARKED)


def items_of(workspace_id: str, seen: Seen) -> list[DiskItem]:
    found = [DiskItem(workspace_id, entry.generation, kind) for kind, entry in seen.entries.items()]
    found += [DiskItem(workspace_id, "", "unreadable") for _ in seen.unreadable]
    found += [DiskItem(workspace_id, home.generation, "unpacked") for home in seen.unclaimed]
    return found or ([DiskItem(workspace_id, "", "rest")] if seen.others else [])
