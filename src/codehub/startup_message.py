"""What `codehub serve` says once everything answers: where it is and, until an admin has logged in, the way in.

And what it says when it is told to stop: that workspaces do not stop with it.

A link that logs in as admin goes to a terminal or nowhere: output that is kept, as a service's is, is read by others.
"""

import sys
from typing import TextIO

from codehub.auth.service import LoginLink
from codehub.clock import SystemClock
from codehub.command import operator
from codehub.embedded.servers import Urls, resolve
from codehub.invocation import command
from codehub.runtimes import records
from codehub.runtimes.layout import Layout
from codehub.settings import Settings
from codehub.wiring.api import open_services

HOW = command("user login-link")
STOP = command("workspace stop")


async def say_ready(settings: Settings, urls: Urls, url: str) -> None:
    terminal = _terminal()
    async with open_services(resolve(settings, urls), SystemClock()) as services:
        admin = await services.people.ensure_first_admin()
        first = admin.last_login_at is None and admin.active
        # Made only to be shown: making one ends the one before.
        link = await services.people.make_login_link(operator(), admin.name) if first and terminal else None
    lines = ["", f"  CodeHub is ready: {url}", f"  Data: {settings.storage.data_dir}", "", ""]
    if not link:
        whose = f"Log in as {admin.name}? Run, on this machine:" if first else "Need a login link? Run:"
        lines[-1:] = [f"  {whose} {HOW} {admin.name if first else 'NAME'}", "", ""]
    _say(sys.stdout, lines)
    if link and terminal:
        _say(terminal, _way_in(link, url))
    _say(sys.stdout, ["  Stop with Ctrl-C.", "", ""])


def say_stopping(settings: Settings) -> None:
    running = records.read_all(Layout(settings.storage.data_dir))
    if running:
        many = f"{len(running)} workspaces go" if len(running) > 1 else "One workspace goes"
        line = f"  {many} on running, and the next start finds what runs. To stop one, before this: {STOP} NAME"
        _say(sys.stdout, ["", line, ""])


def _way_in(link: LoginLink, url: str) -> list[str]:
    return [f"  Log in as {link.user_name} with this link. It works once, for one day:", f"  {link.url(url)}", "", ""]


def _terminal() -> TextIO | None:
    """Where only the person who started us reads along."""
    return next((stream for stream in (sys.stdout, sys.stderr) if stream.isatty()), None)


def _say(stream: TextIO, lines: list[str]) -> None:
    stream.write("\n".join(lines))
    stream.flush()
