"""A machine's place in this host's control groups, of which it sees only what is below."""

import contextlib
import pathlib

from cluster.layout import Place

WANTED = (
    "cpu",
    "cpuacct",
    "cpuset",
    "memory",
    "devices",
    "freezer",
    "blkio",
    "pids",
    "perf_event",
    "hugetlb",
    "systemd",
)


def hierarchies() -> dict[str, str]:
    """This host's, of version 1: the folder's name and the options that mount it again."""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        where = pathlib.Path(left.split()[4])
        if kind == "cgroup" and any(part in where.name.split(",") for part in WANTED):
            chosen = [one for one in options.split(",") if one in WANTED or one.startswith("name=")]
            found[where.name] = ",".join(chosen)
    return found


def make(place: Place, machine: str) -> list[pathlib.Path]:
    made = []
    for path in _paths(place, machine):
        path.mkdir(parents=True, exist_ok=True)
        for one in (path.parent, path):
            _inherit_cpus(one)
        made.append(path)
    return made


def processes(place: Place, machine: str) -> set[int]:
    """All that are in the machine, containers and all."""
    found: set[int] = set()
    for top in _paths(place, machine):
        for file in top.rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(int(pid) for pid in file.read_text().split())
    return found


def remove(place: Place) -> None:
    """Only empty ones can be removed, from the leaves on."""
    for hierarchy in hierarchies():
        top = pathlib.Path("/sys/fs/cgroup", hierarchy, _top(place))
        for folder in sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        with contextlib.suppress(FileNotFoundError):
            top.rmdir()


def _inherit_cpus(path: pathlib.Path) -> None:
    for name in ("cpuset.cpus", "cpuset.mems"):
        own, above = path / name, path.parent / name
        if own.exists() and not own.read_text().strip():
            own.write_text(above.read_text())


def _paths(place: Place, machine: str) -> list[pathlib.Path]:
    return [pathlib.Path("/sys/fs/cgroup", hierarchy, _top(place), machine) for hierarchy in hierarchies()]


def _top(place: Place) -> str:
    return f"cluster-{place.name}"
