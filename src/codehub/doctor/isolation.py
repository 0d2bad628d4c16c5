"""What this machine offers to keep workspaces apart: bubblewrap, user namespaces, control groups."""

import os
import pathlib
import shutil
import sys

from codehub.doctor.account import run_as
from codehub.doctor.model import Finding, ok, warn
from codehub.supervisor.privileges import View

CGROUPS = pathlib.Path("/sys/fs/cgroup")
CLONE_NEWUSER = 0x10000000
UNSHARE = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(os.strerror(ctypes.get_errno()) if libc.unshare({CLONE_NEWUSER}) else 0)
"""


async def bubblewrap() -> Finding:
    program = shutil.which("bwrap")
    if program is None:
        advice = "Install it (Debian, Ubuntu, Fedora: the package `bubblewrap`) to keep workspaces apart more strictly."
        return warn("bubblewrap", "bwrap is not installed", advice)
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


def control_groups() -> Finding:
    """By making a group and removing it: only that tells whether limits for memory and CPU can be set."""
    version = 2 if (CGROUPS / "cgroup.controllers").exists() else 1
    parent = _own_group(version)
    if parent is None:
        return warn("control groups", "there are none", "Without them workspaces have no limits for memory and CPU.")
    probe = parent / f"codehub-doctor-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as e:
        advice = "To limit memory and CPU of workspaces, run as root, or by systemd with Delegate=yes."
        return warn("control groups", f"version {version}, not writable: {e.strerror}", advice)
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
