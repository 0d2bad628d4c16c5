"""The service account, and running a program as it: what the supervisor will do, tried out."""

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
from dataclasses import dataclass

from codehub.doctor.model import Finding, fail, ok, warn
from codehub.errors import StartError
from codehub.settings import Settings
from codehub.system.accounts import ADVICE
from codehub.system.privileges import FALLBACK, Account, View, enter, needed_trees, service_account, view_for

TRY_SECONDS = 5.0


@dataclass(frozen=True)
class Result:
    code: int
    output: str

    @property
    def last_line(self) -> str:
        return (self.output.strip().splitlines() or [f"it ended with {self.code}"])[-1]


async def run_as(account: Account | None, view: View, *command: str) -> Result:
    """Run to its end, as a child of the supervisor would run. Every failure is a result."""
    parent = os.getpid()
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            cwd="/",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            preexec_fn=lambda: enter(account, view, parent, signal.SIGKILL),
        )
    except OSError as e:
        return Result(127, e.strerror or str(e))
    except subprocess.SubprocessError:
        return Result(126, "the private view of its files cannot be made here")
    try:
        output, _ = await asyncio.wait_for(process.communicate(), TRY_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return Result(124, f"no end within {TRY_SECONDS:g} s")
    return Result(process.returncode or 0, output.decode(errors="replace"))


def account_and_view(settings: Settings) -> tuple[Account | None, View]:
    account = service_account(settings.server.user)
    return account, view_for(account, needed_trees())


async def check(settings: Settings) -> Finding:
    try:
        account, view = account_and_view(settings)
    except StartError as e:
        return fail("service account", e.detail, "Set CODEHUB_USER to an unprivileged account of this machine.")
    if account is None:
        return ok("service account", "not needed: everything runs as you")
    result = await run_as(account, view, sys.executable, "-c", "import codehub")
    if result.code != 0:
        return fail(
            "service account",
            f"{account.name} cannot run {sys.executable}: {result.last_line}",
            "Install CodeHub and Python where every account can read them, for example below /opt.",
        )
    if account.name == FALLBACK:
        return warn(
            "service account",
            "`nobody` serves: whatever else runs under it can read the servers' passwords",
            f"Start CodeHub once where it can make its own account, or run: {ADVICE}",
        )
    return ok("service account", f"{account.name} can run this Python{_through(view)}")


def _through(view: View) -> str:
    closed: list[pathlib.Path] = [folder for folder, _ in view.closed]
    return f", through a private view of {', '.join(map(str, closed))}" if closed else ""
