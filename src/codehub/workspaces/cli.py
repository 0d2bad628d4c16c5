"""`codehub workspace …`: for whoever may run commands on the machine. A workspace is named by its id or its name."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from codehub.clock import SystemClock
from codehub.command import operator, reached_at, with_services
from codehub.errors import CodeHubError, InvalidRequestError
from codehub.i18n import history as sentences
from codehub.i18n import locales
from codehub.web.services import Services
from codehub.workspaces import history as events
from codehub.workspaces.admission import admitted
from codehub.workspaces.errors import OperationInProgressError
from codehub.workspaces.model import Desired, Operation, Phase, Workspace
from codehub.workspaces.service import Details, Filters, NewWorkspace

app = typer.Typer(help="Create workspaces, start and stop them, see why they are as they are.", no_args_is_help=True)
WHICH = Annotated[str, typer.Argument(help="The workspace's id, or its name when only one has it.")]
WAIT = Annotated[bool, typer.Option("--wait/--no-wait", help="Until it is so.")]
EVERYTHING = 100_000
PATIENCE_SECONDS = 600.0


@app.command("ls")
def ls(
    owner: Annotated[str | None, typer.Option(help="Only this person's.")] = None,
    deleted: Annotated[bool, typer.Option(help="Those in the trash.")] = False,
) -> None:
    """List workspaces."""

    async def work(services: Services) -> None:
        table = Table("Id", "Name", "Owner", "Template", "State", "Since", box=None, pad_edge=False)
        for w in await _all(services, Filters(owner=owner, deleted=deleted)):
            moving = f" ({w.operation.lower()})" if w.operation is not Operation.NONE else ""
            table.add_row(
                w.id, w.name, w.owner, w.template, f"{w.phase}{moving}", f"{w.phase_changed_at:%Y-%m-%d %H:%M}"
            )
        Console().print(table)

    with_services(work)


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    owner: Annotated[str, typer.Option(help="Whose it is.")],
    template: Annotated[str, typer.Option(help="See `codehub workspace templates`.")] = "jupyterlab",
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start it at once.")] = True,
    wait: WAIT = True,
) -> None:
    """Create a workspace for somebody."""

    async def work(services: Services) -> None:
        person = await services.people.get_user(operator(), owner)
        desired = Desired.RUNNING if start else Desired.STANDBY
        new = NewWorkspace(name, template, desired, owner=person.name)
        w = admitted(await services.workspaces.create(operator(), new))
        typer.echo(w.id)
        if wait:
            await until(services, w.id, {Phase(desired)})

    with_services(work)


@app.command("templates")
def templates() -> None:
    """List what workspaces can be made from."""

    async def work(services: Services) -> None:
        table = Table("Name", "Title", "", box=None, pad_edge=False)
        for template in services.templates.all():
            table.add_row(template.name, template.title, services.templates.unavailable(template.name) or "")
        Console().print(table)

    with_services(work)


@app.command("start")
def start(which: WHICH, wait: WAIT = True) -> None:
    """Start it, from wherever it is: asleep, stored away, or new."""
    _ask(which, Desired.RUNNING, {Phase.RUNNING}, wait=wait)


@app.command("stop")
def stop(which: WHICH, wait: WAIT = True) -> None:
    """Put it to sleep. Its files stay."""
    _ask(which, Desired.STANDBY, {Phase.STANDBY}, wait=wait)


@app.command("archive")
def archive(which: WHICH, wait: WAIT = True) -> None:
    """Store it away: its files go into an archive and come back when it is started."""
    _ask(which, Desired.ARCHIVED, {Phase.ARCHIVED, Phase.PENDING}, wait=wait)


@app.command("rm")
def rm(
    which: WHICH,
    purge: Annotated[bool, typer.Option(help="Destroy it at once instead of keeping it in the trash.")] = False,
    wait: WAIT = True,
) -> None:
    """Delete it. It can come back from the trash, unless it was purged."""
    if purge:
        typer.confirm("This destroys the files for good. Go on?", abort=True)

    async def work(services: Services) -> None:
        w = await find(services, which)
        await patiently(lambda: services.workspaces.delete(operator(), w.id, purge=purge))
        if wait:
            await until(services, w.id, {Phase.DELETED})

    with_services(work)


@app.command("undelete")
def undelete(which: WHICH) -> None:
    """Bring it back from the trash."""

    async def work(services: Services) -> None:
        w = await find(services, which, deleted=True)
        await patiently(lambda: services.workspaces.undelete(operator(), w.id))
        typer.echo("It is on its way back.")

    with_services(work)


@app.command("recover")
def recover(
    which: WHICH, accept_loss: Annotated[bool, typer.Option(help="Go on without what was lost.")] = False
) -> None:
    """Clear an error, after its cause is gone."""

    async def work(services: Services) -> None:
        w = await find(services, which)
        admitted(await services.workspaces.recover(operator(), w.id, accept_loss=accept_loss))
        typer.echo("Recovered; what is found next decides the rest.")

    with_services(work)


@app.command("rename")
def rename(which: WHICH, name: Annotated[str, typer.Argument(help="The new name.")]) -> None:
    """Give it another name. Its id and address stay."""

    async def work(services: Services) -> None:
        w = await find(services, which)
        await services.workspaces.change(operator(), w.id, Details(name=name))

    with_services(work)


@app.command("history")
def history(which: WHICH) -> None:
    """What happened to it: who, when, why, how long."""

    async def work(services: Services) -> None:
        w = await find(services, which)
        table = Table("When", "Who", "What", "", "", "Took", box=None, pad_edge=False)
        locale = locales.of_shell(os.environ)
        for e in reversed(await services.workspaces.history(operator(), w.id, before=2**62, limit=500)):
            moved = f"{e.from_state or ''} → {e.to_state}" if e.to_state else ""
            took = "" if e.took_seconds is None else f"{e.took_seconds:.1f} s"
            told = sentences.told(locale, e.code, e.data, actor=e.actor, to_state=e.to_state)
            table.add_row(f"{e.at:%Y-%m-%d %H:%M:%S}", e.actor, events.event(e.code, e.data), moved, told, took)
        Console().print(table)

    with_services(work)


@app.command("logs")
def logs(which: WHICH, follow: Annotated[bool, typer.Option("-f", "--follow", help="And what comes.")] = False) -> None:
    """What its IDE printed."""

    async def work(services: Services) -> None:
        w = await find(services, which)
        async for piece in services.runtime.logs(w.id, follow=follow):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()

    with_services(work)


@app.command("open")
def open_(which: WHICH) -> None:
    """Print where it is opened in a browser."""

    async def work(services: Services) -> None:
        w = await find(services, which)
        typer.echo(f"{reached_at(services.settings)}/w/{w.id}/")

    with_services(work)


def _ask(which: str, wanted: Desired, goal: set[Phase], *, wait: bool) -> None:
    async def work(services: Services) -> None:
        w = await find(services, which)
        await patiently(lambda: services.workspaces.request(operator(), w.id, wanted))
        if wait:
            await until(services, w.id, goal)

    with_services(work)


async def _all(services: Services, filters: Filters) -> list[Workspace]:
    first = (services.clock.now().replace(year=1), "")
    return await services.workspaces.page(operator(), filters, after=first, limit=EVERYTHING)


async def find(services: Services, which: str, *, deleted: bool = False) -> Workspace:
    found = [w for w in await _all(services, Filters(deleted=deleted)) if which in {w.id, w.name}]
    exact = [w for w in found if w.id == which]
    if len(exact or found) > 1:
        raise InvalidRequestError(f"{len(found)} workspaces are called so: use an id", field=which)
    if not found:
        return await services.workspaces.get(operator(), which)
    return (exact or found)[0]


async def patiently(call: Callable[[], Awaitable[object]]) -> None:
    """An operation is not interrupted: wait for its end and ask again, so that the person need not."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                admitted(await call())
            except OperationInProgressError:
                await SystemClock().sleep(0.3)
            else:
                return


async def until(
    services: Services, id_: str, goal: set[Phase], also: Callable[[Workspace], bool] = lambda _: True
) -> None:
    with Console(stderr=True).status("…") as status:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                w = await services.workspaces.get(operator(), id_)
                if w.phase in goal and w.operation is Operation.NONE and also(w):
                    return
                if w.phase is Phase.ERROR:
                    raise CodeHubError(f"{w.name}: {(w.error_info or {}).get('last_error', 'something went wrong')}")
                status.update(_what_is_going_on(w))
                await services.clock.sleep(0.3)


def _what_is_going_on(w: Workspace) -> str:
    if w.operation is Operation.NONE:
        return "waiting for the coordinator"
    done, total = (w.progress or {}).get("bytes", 0), (w.progress or {}).get("total", 0)
    return f"{w.operation.lower()} {100 * done // total} %" if total else w.operation.lower()
