"""`codehub workspace why`: what the activity of a workspace says, for whoever may run commands on the machine."""

import os

import typer
from rich.console import Console
from rich.table import Table

from codehub.command import operator, with_services
from codehub.i18n import idleness, locales
from codehub.web.services import Services
from codehub.workspaces import cli
from codehub.workspaces.points_cli import app as workspaces


@workspaces.command("why")
def why(which: cli.WHICH) -> None:
    """Why it sleeps, or does not, and when it will."""

    async def work(services: Services) -> None:
        w = await cli.find(services, which)
        found = await services.activity.explain(operator(), w.id)
        said = idleness.sentence(locales.of_shell(os.environ), found.reason.code, found.reason.data)
        typer.echo(f"{w.name} ({w.id}) is {w.phase}: {said}.")
        if found.sleeps_at:
            typer.echo(f"If nothing happens it sleeps at {found.sleeps_at:%Y-%m-%d %H:%M:%S} UTC.")
        table = Table("Seen", "Times", "", box=None, pad_edge=False)
        for kinds, what in ((found.seen.counted, "counted"), (found.seen.ignored, "ignored")):
            for kind, count in kinds.items():
                table.add_row(kind, str(count), what)
        Console().print(table)

    with_services(work)
