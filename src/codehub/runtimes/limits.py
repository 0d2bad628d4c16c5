"""What one workspace may take: a template's `[limits]`, the platform's defaults, and who sees to each. For `process`.

Control groups hold what they can; rlimits and the shepherd's own watch (`shepherd.watch`) the rest.
"""

import dataclasses
import json
import os
import pathlib
from dataclasses import dataclass

from codehub.archives.model import Quota
from codehub.runtimes.base import HomeFullError, StartFailedError
from codehub.runtimes.layout import WorkspacePaths
from codehub.runtimes.shepherd import seccomp
from codehub.runtimes.shepherd.shares import FILTER, NESTED, NO_FILTER, Shares
from codehub.runtimes.shepherd.spec import PLAIN
from codehub.settings.shares import ShareConfig
from codehub.templates.model import ProcessSpec, ResourceLimits

MIB = 1 << 20
# Of a home that is too large already: it can be emptied and a text saved, but nothing large written.
FILE_WHEN_FULL = 32 * MIB
RESERVED_FILES = 200_000  # or a twentieth of what the file system can have
COUNTED_APART = (5, 14)  # since this Linux, RLIMIT_NPROC counts each user namespace's processes by themselves


@dataclass(frozen=True)
class Limits:
    """Every one known; 0 = none."""

    memory_mb: int = 0
    processes: int = 0
    cpus: float = 0.0
    disk_mb: int = 0
    files: int = 0
    tmp_mb: int = 0
    open_files: int = 0
    cpu_weight: int = 0
    log_kb_per_second: int = 0

    @property
    def tmp_bytes(self) -> int:
        """Of /tmp and /dev/shm each: they are memory, so that both together fit its limit."""
        sizes = [size * MIB for size in (self.tmp_mb, self.memory_mb // 2) if size]
        return min(sizes, default=0)


def resolve(limits: ResourceLimits, config: ShareConfig) -> Limits:
    given = {name: value for name, value in vars(limits).items() if value is not None}
    return Limits(**{field.name: getattr(config, field.name) for field in dataclasses.fields(Limits)} | given)


def reserve(config: ShareConfig, place: pathlib.Path) -> tuple[int, int]:
    """Bytes and files of this file system that workspaces cannot have."""
    if not config.disk_reserve_mb:
        return 0, 0
    found = os.statvfs(place)
    return (
        min(config.disk_reserve_mb * MIB, found.f_blocks * found.f_frsize // 10),
        min(RESERVED_FILES, found.f_files // 20),
    )


def require_space(config: ShareConfig, place: pathlib.Path, needed: int = 0) -> None:
    """Nothing is started or unpacked into the platform's reserve."""
    if not config.disk_reserve_mb:
        return
    size, files = reserve(config, place)
    found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    if free - needed < size or (found.f_files and found.f_favail < files):
        raise StartFailedError(
            f"the disk of this machine is nearly full ({free // MIB} MB and {found.f_favail} files are free, "
            f"{size // MIB} MB and {files} are kept for the platform): ask your admin to make room, or to set "
            "CODEHUB_DISK_RESERVE_MB"
        )


def require_room(config: ShareConfig, paths: WorkspacePaths, quota: Quota, size: int, files: int) -> None:
    """Nothing is put into a home beyond its limit, as its shepherd last measured it: often, the closer it gets."""
    try:
        require_space(config, paths.home, size)
    except StartFailedError as e:
        raise HomeFullError(e.detail) from e
    used = _usage(paths.usage_file)
    if used and (used["bytes"] + size > quota.bytes or used["files"] + files > quota.inodes):
        raise HomeFullError(full(used["bytes"], quota.bytes, f", {used['files']} files"))


def full(used: int, most: int, more: str = "") -> str:
    return f"the home is full ({used // MIB} of {most // MIB} MB{more}): delete what is not needed, then try again"


def shares(
    limits: Limits,
    config: ShareConfig,
    home: pathlib.Path,
    usage_file: pathlib.Path,
    *,
    grouped: set[str],
    alone: bool,
    filter_: str,
) -> Shares:
    """What is left for rlimits and the watch. `alone`: an rlimit on processes counts this workspace's alone."""
    size, files = reserve(config, home)
    full = _is_full(limits, usage_file)
    watched_processes = 0 if "pids" in grouped else limits.processes
    return Shares(
        memory_bytes=0 if "memory" in grouped else limits.memory_mb * MIB,
        processes=watched_processes,
        disk_bytes=limits.disk_mb * MIB,
        disk_files=limits.files,
        reserve_bytes=size,
        reserve_files=files,
        log_rate=limits.log_kb_per_second << 10,
        file_bytes=min(limits.disk_mb * MIB, FILE_WHEN_FULL) if full else limits.disk_mb * MIB,
        open_files=limits.open_files,
        own_processes=watched_processes if alone else 0,
        filter=filter_,
        usage_file=str(usage_file),
    )


def filter_of(process: ProcessSpec, isolation: str | None) -> str:
    """Which system calls are refused; a workspace without a sandbox has no filter either."""
    if isolation == PLAIN or not seccomp.available():
        return NO_FILTER
    return NESTED if process.nested_namespaces else FILTER


def counts_apart(uid: int | None, release: str) -> bool:
    """As root each workspace has a user of its own; otherwise the kernel must count by user namespace."""
    numbers = release.replace("-", ".").split(".")[:2]
    return uid is not None or tuple(int(n) if n.isdigit() else 0 for n in numbers) >= COUNTED_APART


def _is_full(limits: Limits, usage_file: pathlib.Path) -> bool:
    """As its last shepherd left it. Not known: then the next one measures."""
    used = _usage(usage_file)
    return bool(used) and bool(
        (limits.disk_mb and used["bytes"] > limits.disk_mb * MIB) or (limits.files and used["files"] > limits.files)
    )


def _usage(usage_file: pathlib.Path) -> dict[str, int]:
    try:
        used: dict[str, int] = json.loads(usage_file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return {}
    return used
