"""What `codehub serve` says once everything answers: where it is and, until an admin has logged in, the way in."""

import sys

from codehub.clock import SystemClock
from codehub.command import operator, resolve
from codehub.settings import Settings
from codehub.supervisor.servers import Urls
from codehub.wiring import open_services


async def greet(settings: Settings, urls: Urls, url: str) -> None:
    async with open_services(resolve(settings, urls), SystemClock()) as services:
        admin = await services.people.ensure_first_admin()
        lines = ["", f"  CodeHub is ready: {url}", f"  Data: {settings.storage.data_dir}"]
        if admin.last_login_at is None and admin.active:
            link = await services.people.make_login_link(operator(), admin.name)
            lines += ["", "  Log in as admin with this link. It works once, for one day:", f"  {link.url(url)}"]
        else:
            lines += ["", "  Need a login link? Run: codehub user login-link NAME"]
    sys.stdout.write("\n".join([*lines, "", "  Stop with Ctrl-C.", "", ""]))
    sys.stdout.flush()
