"""An account of our own for servers, API and proxy: made when root starts CodeHub for the first time.

`nobody` is shared: what else runs under it could read what the servers may. The process that holds the data directory
calls this before anything is started; all others ask `privileges.service_account`, which only looks.
"""

import grp
import os
import pathlib
import pwd
import shutil
import subprocess

from codehub import logs
from codehub.system.privileges import OWN, Account, service_account

log = logs.get()
SECONDS = 30.0  # it waits for other programs that write /etc/passwd
PLACES = f"{os.defpath}:/usr/sbin:/sbin"
NO_SHELLS = ("/usr/sbin/nologin", "/sbin/nologin", "/bin/false")
ADVICE = "useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin codehub"


def ensure_account(wanted: str | None, own: str = OWN) -> Account | None:
    """As `service_account`, after trying to make our own where root has none. There is no way to log in to it."""
    if os.geteuid() == 0 and wanted is None and not _exists(own) and (problem := _make(own)) and not _exists(own):
        log.warning("No account of our own could be made, `nobody` takes its place", problem=problem, try_this=ADVICE)
    return service_account(wanted, own)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _has_empty_group(name: str) -> bool:
    """Left behind by an account that was removed. One with members is not ours: they would reach our sockets."""
    try:
        return not grp.getgrnam(name).gr_mem
    except KeyError:
        return False


def _make(name: str) -> str:
    """What stood in the way; empty when it is made."""
    program = shutil.which("useradd", path=PLACES)
    if program is None:
        return "there is no useradd"
    shell = next((path for path in NO_SHELLS if pathlib.Path(path).exists()), NO_SHELLS[-1])
    group = ["--gid", name] if _has_empty_group(name) else ["--user-group"]
    options = ["--system", *group, "--no-create-home", "--home-dir", "/nonexistent", "--shell", shell]
    try:
        done = subprocess.run(
            [program, *options, "--comment", "CodeHub", name],
            env={"PATH": PLACES, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    return (done.stderr.strip() or f"useradd ended with {done.returncode}") if done.returncode else ""
