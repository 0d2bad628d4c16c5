"""What this machine offers to keep workspaces apart: bubblewrap, user namespaces, control groups."""

import os
import pathlib
import shutil
import sys

from codehub.doctor.account import run_as
from codehub.doctor.model import Finding, ok, warn
from codehub.runtimes.shepherd import seccomp
from codehub.system.privileges import View

CGROUPS = pathlib.Path("/sys/fs/cgroup")
CLONE_NEWUSER = 0x10000000
WEAKER = (
    "memory and processes of workspaces are watched about once a second, so that one can have more for a moment; "
    "cores are not limited; System V shared memory is not counted"
)
UNSHARE = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(os.strerror(ctypes.get_errno()) if libc.unshare({CLONE_NEWUSER}) else 0)
"""


async def bubblewrap() -> Finding:
    program = shutil.which("bwrap")
    if program is None:
        return ok("bubblewrap", "not installed; only needed where namespaces cannot be made without it")
    result = await run_as(None, View(), program, "--version")
    if result.code != 0:
        return warn("bubblewrap", f"{program} does not run: {result.last_line}", "Install bubblewrap anew.")
    return ok("bubblewrap", result.last_line)


async def user_namespaces() -> Finding:
    """By making one, in a process that ends at once."""
    result = await run_as(None, View(), sys.executable, "-I", "-c", UNSHARE)
    if result.code == 0:
        return ok("user namespaces", "can be made")
    advice = (
        "Allow them (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns), or run as root."
    )
    return warn("user namespaces", f"cannot be made: {result.last_line}", advice)


def system_calls() -> Finding:
    """The filter around workspaces: it needs a kernel that has filters, and a machine whose numbers we know."""
    if seccomp.available():
        return ok("system calls", "workspaces run behind a filter")
    advice = "Use x86-64 or arm64 and a kernel with seccomp; without the filter workspaces can make user namespaces."
    return warn("system calls", f"there is no filter for {os.uname().machine} on this kernel", advice)


def user_tables() -> Finding:
    """What the kernel counts by user is shared by all workspaces of an ordinary user's platform."""
    if os.geteuid() == 0:
        return ok("kernel tables", "each workspace has a user of its own")
    detail = "watches of files, epoll entries and pending signals are counted for this user and all workspaces together"
    advice = "Run as root, where each has a user of its own; or raise fs.inotify.max_user_instances (sysctl) to 8192."
    return warn("kernel tables", detail, advice)


def control_groups() -> Finding:
    """By making a group and removing it: only that tells whether limits for memory and CPU can be set."""
    version = 2 if (CGROUPS / "cgroup.controllers").exists() else 1
    parent = _own_group(version)
    if parent is None:
        return warn("control groups", f"there are none: {WEAKER}", "Use a kernel with control groups.")
    probe = parent / f"codehub-doctor-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as e:
        advice = "To have the kernel limit workspaces, run as root, or by systemd with Delegate=yes."
        return warn("control groups", f"version {version}, not writable ({e.strerror}): {WEAKER}", advice)
    return ok("control groups", f"version {version}, writable")


def _own_group(version: int) -> pathlib.Path | None:
    """Ours, as the kernel names it; the root when that one is hidden, as in containers."""
    base = CGROUPS if version == 2 else CGROUPS / "memory"
    try:
        lines = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if (version == 2 and number == "0") or (version == 1 and "memory" in controllers.split(",")):
            own = base / path.lstrip("/")
            return own if own.is_dir() else base
    return base if base.is_dir() else None
