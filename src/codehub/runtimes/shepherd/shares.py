"""What one workspace may take, as its shepherd is told it, and the part that the kernel itself holds: rlimits.

Part of `Spec`; made by `runtimes.limits`, watched by `disk_watch` and `process_watch`. 0 means: no limit, or that
somebody else (a control group) sees to it.
"""

import contextlib
import resource
from dataclasses import dataclass

NO_FILTER, FILTER, NESTED = "", "default", "nested"  # which system calls are refused; `nested` allows sandboxes inside


@dataclass(frozen=True)
class Shares:
    memory_bytes: int = 0  # to be watched by us
    processes: int = 0  # to be watched by us
    disk_bytes: int = 0
    disk_files: int = 0
    reserve_bytes: int = 0  # of the file system: what is never a workspace's
    reserve_files: int = 0
    log_rate: int = 0  # bytes a second
    file_bytes: int = 0  # one file's size
    open_files: int = 0
    own_processes: int = 0  # as an rlimit: only where it counts this workspace's alone
    filter: str = NO_FILTER
    usage_file: str = ""  # where the home's size is written down


def rlimits(shares: Shares) -> dict[str, int]:
    """By the names that `prlimit` (of util-linux) uses; only what is lowered."""
    wanted = {"nofile": shares.open_files, "fsize": shares.file_bytes, "nproc": shares.own_processes}
    return {name: value for name, value in wanted.items() if value}


def apply_rlimits(limits: dict[str, int]) -> None:
    """For this process and all that come from it. Only ever lowered: raising them is a right that root may lack."""
    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name.upper()}")
        soft, hard = (value if limit == resource.RLIM_INFINITY else min(value, limit) for limit in _now(number))
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(number, (soft, hard))


def _now(number: int) -> tuple[int, int]:
    return resource.getrlimit(number)


def prefer_for_oom() -> None:
    """When the machine itself runs out of memory, the kernel is to look here first, not at the database."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("500")
