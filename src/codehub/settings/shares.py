"""What one workspace may take of the machine where its template does not say, and what the platform keeps for itself.

A part of the runtimes' settings; a template's `[limits]` changes each of them for its own workspaces.
"""

import os
from dataclasses import dataclass

from codehub.settings.fields import at_least, between, setting


@dataclass(frozen=True)
class ShareConfig:
    memory_mb: int = setting(
        "CODEHUB_WORKSPACE_MEMORY_MB", 2048, "Memory of one workspace, in MB; 0 = no limit.", check=at_least(0)
    )
    processes: int = setting(
        "CODEHUB_WORKSPACE_PROCESSES", 1024, "Processes and threads of one workspace; 0 = no limit.", check=at_least(0)
    )
    cpus: float = setting(
        "CODEHUB_WORKSPACE_CPUS",
        max(1.0, (os.cpu_count() or 1) / 2),
        "Cores that one workspace may use, also when no other wants them; 0 = no limit.",
        check=at_least(0),
    )
    cpu_weight: int = setting(
        "CODEHUB_WORKSPACE_CPU_WEIGHT",
        100,
        "How much one workspace counts when several want the processor, from 1 to 10000; 0 = as the system does it.",
        check=between(0, 10_000),
    )
    disk_mb: int = setting(
        "CODEHUB_WORKSPACE_DISK_MB", 10_240, "Disk that one home may take, in MB; 0 = no limit.", check=at_least(0)
    )
    files: int = setting(
        "CODEHUB_WORKSPACE_FILES",
        1_000_000,
        "Files and folders that one home may have; 0 = no limit.",
        check=at_least(0),
    )
    tmp_mb: int = setting(
        "CODEHUB_WORKSPACE_TMP_MB",
        1024,
        "Size of /tmp and of /dev/shm in MB. They are in memory, so that half of its limit is the most; 0 = just that.",
        check=at_least(0),
    )
    open_files: int = setting(
        "CODEHUB_WORKSPACE_OPEN_FILES",
        8192,
        "Files that one process of a workspace may have open; 0 = as many as the platform.",
        check=at_least(0),
    )
    log_kb_per_second: int = setting(
        "CODEHUB_WORKSPACE_LOG_KB_PER_SECOND",
        2048,
        "Log that one workspace may write for longer than a moment, in KB a second; its writer waits. 0 = no limit.",
        check=at_least(0),
    )
    disk_reserve_mb: int = setting(
        "CODEHUB_DISK_RESERVE_MB",
        2048,
        "Free disk that workspaces cannot have, in MB (but at most a tenth of the disk), so that the database never "
        "finds it full; 0 = none.",
        check=at_least(0),
    )
