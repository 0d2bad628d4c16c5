"""Limits for memory, processes and CPU by control groups, version 1 or 2, where this machine lets us make them.

`process` makes a group per start; the shepherd puts the IDE into it and removes it afterwards. Nothing here is needed
for a workspace to run: where groups cannot be made, `Groups.reason` says so and there are no limits.
"""

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codehub.runtimes.limits import Limits

MOUNT = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "pids", "cpu")
PERIOD_US = 100_000


@dataclass(frozen=True)
class Groups:
    """Where our groups go: one place in version 2, one per controller in version 1."""

    version: int
    parents: dict[str, pathlib.Path]
    reason: str = ""

    @property
    def available(self) -> bool:
        return bool(self.parents)

    @property
    def controllers(self) -> set[str]:
        """What is limited by groups; the rest is watched."""
        return set(CONTROLLERS) if "all" in self.parents else set(self.parents)

    def create(self, workspace_id: str, limits: Limits) -> list[str]:
        """The workspace's groups, with its limits. One that exists is used again."""
        made = []
        for controller, parent in self.parents.items():
            group = parent / workspace_id
            with contextlib.suppress(OSError):  # a limit less is no reason not to start
                parent.mkdir(exist_ok=True)
                group.mkdir(exist_ok=True)
                made.append(str(group))
                for name, value in settings(self.version, controller, limits):
                    with contextlib.suppress(FileNotFoundError):  # swap accounting may be off
                        (group / name).write_text(value)
        return made

    def leave(self) -> None:
        """Take away the parents of all groups, once there are none below."""
        remove(map(str, self.parents.values()))


def remove(groups: Iterable[str]) -> None:
    """Those that nobody is in; the kernel refuses the others."""
    for group in groups:
        with contextlib.suppress(OSError):
            pathlib.Path(group).rmdir()


def settings(version: int, controller: str, limits: Limits) -> list[tuple[str, str]]:
    """Which file gets which value. Version 2 has all controllers in one group, named "all"."""
    memory = str(limits.memory_mb << 20)
    quota = str(round(limits.cpus * PERIOD_US))
    rows: list[tuple[int, str, float, list[tuple[str, str]]]] = [
        (1, "memory", limits.memory_mb, [("memory.limit_in_bytes", memory), ("memory.memsw.limit_in_bytes", memory)]),
        # Version 1 counts what lies in connections by itself, and not at all before it has a limit.
        (1, "memory", limits.memory_mb, [("memory.kmem.tcp.limit_in_bytes", str(limits.memory_mb << 18))]),
        (1, "pids", limits.processes, [("pids.max", str(limits.processes))]),
        (1, "cpu", limits.cpus, [("cpu.cfs_period_us", str(PERIOD_US)), ("cpu.cfs_quota_us", quota)]),
        (1, "cpu", limits.cpu_weight, [("cpu.shares", str(max(2, limits.cpu_weight * 1024 // 100)))]),
        (2, "memory", limits.memory_mb, [("memory.max", memory), ("memory.swap.max", "0")]),
        (2, "pids", limits.processes, [("pids.max", str(limits.processes))]),
        (2, "cpu", limits.cpus, [("cpu.max", f"{quota} {PERIOD_US}")]),
        (2, "cpu", limits.cpu_weight, [("cpu.weight", str(limits.cpu_weight))]),
    ]
    wanted = CONTROLLERS if controller == "all" else (controller,)
    return [
        row for number, name, limit, values in rows if number == version and name in wanted and limit
        for row in values
    ]  # fmt: skip


def find(data_dir: pathlib.Path, mount: pathlib.Path = MOUNT) -> Groups:
    """By making groups and removing them again: only that tells."""
    name = f"codehub-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:8]}"
    if (mount / "cgroup.controllers").exists():
        return _version_2(mount, name)
    parents = {}
    for controller in CONTROLLERS:
        for base in reversed([*_candidates(mount / controller, controller)]):
            if _usable(base / name):
                parents[controller] = base / name
                break
    if parents:
        missing = [controller for controller in CONTROLLERS if controller not in parents]
        return Groups(1, parents, f"no limits for {', '.join(missing)}" if missing else "")
    return Groups(1, {}, "control groups cannot be made here: run as root, or by systemd with Delegate=yes")


def _version_2(mount: pathlib.Path, name: str) -> Groups:
    for base in _candidates(mount, ""):
        with contextlib.suppress(OSError):
            _enable(base)
            (base / name).mkdir(exist_ok=True)
            _enable(base / name)
            if _usable(base / name):
                return Groups(2, {"all": base / name})
    return Groups(2, {}, "control groups cannot be made here: run as root, or by systemd with Delegate=yes")


def _candidates(mount: pathlib.Path, controller: str) -> Iterator[pathlib.Path]:
    """The top, our own, and the one above.

    Version 2 takes them in this order, so that stopping the platform's service group does not take the workspaces with
    it. Version 1 begins with our own: its controllers end nobody, and limits that hold for us should hold below us.
    """
    yield mount
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                own = mount / path.lstrip("/")
                yield own.parent
                yield own


def _enable(group: pathlib.Path) -> None:
    """Let groups below this one have all three controllers."""
    offered = (group / "cgroup.controllers").read_text().split()
    wanted = [f"+{controller}" for controller in CONTROLLERS if controller in offered]
    if not wanted:
        raise OSError("no controllers")
    (group / "cgroup.subtree_control").write_text(" ".join(wanted))


def _usable(group: pathlib.Path) -> bool:
    if not (group.parent / "cgroup.procs").exists():
        return False  # a folder, but not of groups: what version 1 hangs its controllers in
    try:
        group.mkdir(exist_ok=True)
        (group / "probe").mkdir(exist_ok=True)
        (group / "probe").rmdir()
    except OSError:
        return False
    return True
