"""Where the search begins: a new workspace, and the resting places from which three requests lead furthest."""

from codehub.workspaces.model import Desired, Observed, Workspace
from model.database import new_row
from model.world import EMPTY, Archive, Volume, World

KEY = "w/o1/1/home.tar.zst"
Beginning = tuple[Workspace, World, str]


def beginnings() -> list[Beginning]:
    archive = Archive(KEY, "v1", "v1")
    old = Archive(KEY, "v1", "v1")
    return [
        (new_row(), World(), EMPTY),
        (
            new_row(Observed.STANDBY, Desired.STANDBY, generation="o1-1", op_id="o1"),
            World(volume=Volume("o1-1", None, "v1")),
            "v1",
        ),
        (
            new_row(Observed.STANDBY, Desired.ARCHIVED, generation="o1-1", op_id="o1"),
            World(volume=Volume("o1-1", None, "v1")),
            "v1",
        ),
        (new_row(Observed.PENDING, Desired.ARCHIVED, archive_key=KEY, op_id="o1"), World(archives=(archive,)), "v1"),
        (
            new_row(Observed.STANDBY, Desired.STANDBY, archive_key=KEY, generation="o2-1", op_id="o2"),
            World(volume=Volume("o2-1", KEY, "v2"), archives=(old,)),
            "v2",
        ),
    ]
