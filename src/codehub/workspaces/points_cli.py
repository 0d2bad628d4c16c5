"""`codehub workspace restore-points|restore|download`: what became of a home."""

import contextlib
import os
import pathlib
import sys
import tempfile
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from codehub.archives.objects import open_store
from codehub.command import operator, with_services
from codehub.errors import InvalidRequestError
from codehub.web.services import Services
from codehub.workspaces import cli, downloads
from codehub.workspaces.download_server import Downloads, Order
from codehub.workspaces.model import Desired, Phase, RestorePoint, Workspace

EVERY = 1_000


app = cli.app  # `codehub workspace`, which these join


@app.command("restore-points")
def restore_points(which: cli.WHICH) -> None:
    """List the archives it can go back to, newest first."""

    async def work(services: Services) -> None:
        w = await cli.find(services, which)
        table = Table("When", "Files", "Size", "Stored", "", "Key", box=None, pad_edge=False)
        for p in await _points(services, w):
            current = "current" if p.archive_key == (w.restore_from or w.archive_key) else ""
            sizes = (f"{p.files:,}", decimal(p.content_bytes), decimal(p.size))
            table.add_row(f"{p.created_at:%Y-%m-%d %H:%M:%S}", *sizes, current, p.archive_key)
        Console(width=None if sys.stdout.isatty() else 200).print(table)

    with_services(work)


@app.command("restore")
def restore(
    which: cli.WHICH,
    point: Annotated[str, typer.Argument(help="A key from `restore-points`, or its number: 1 is the newest")],
    wait: cli.WAIT = True,
) -> None:
    """Go back to a restore point. What is there now is archived first, so that one can come back from going back."""

    async def work(services: Services) -> None:
        w = await cli.find(services, which)
        key = point
        if point.isdigit():
            found = await _points(services, w)
            if not 1 <= int(point) <= len(found):
                raise InvalidRequestError(f"there are {len(found)} restore points", field=point)
            key = found[int(point) - 1].archive_key
        await cli.patiently(lambda: services.workspaces.restore(operator(), w.id, key))
        if wait:
            goal = Phase.RUNNING if w.desired_state is Desired.RUNNING else Phase.STANDBY
            await cli.until(services, w.id, {goal}, lambda now: now.restore_from is None)

    with_services(work)


@app.command("download")
def download(
    which: cli.WHICH,
    output: Annotated[
        pathlib.Path | None,
        typer.Option("-o", "--output", help="Where to; `-`: standard output."),
    ] = None,
    point: Annotated[str | None, typer.Option("--restore-point", help="A key from `restore-points`.")] = None,
) -> None:
    """Write its home into one file, without starting it: a .tar.gz, or a .tar.zst when FILE is called so."""

    async def work(services: Services) -> None:
        w = await cli.find(services, which)
        form = "tar.zst" if output and output.name.endswith(".zst") else "tar.gz"
        _, source = await services.workspaces.download_source(operator(), w.id, point)
        storage = services.settings.storage
        store = open_store(storage.object_store_url)
        pieces = Downloads(services.runtime, store, services.clock, 1).pieces(
            Order(w.id, source, form, operator().name)
        )
        target = output or pathlib.Path(downloads.file_name(w, services.clock.now(), form))
        size = 0
        with _writing(target) as file:
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    size += file.write(piece)
        if str(target) != "-":
            typer.echo(f"{target}: {decimal(size)}")

    with_services(work)


@contextlib.contextmanager
def _writing(target: pathlib.Path):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """Whole or not at all; nobody else may read it."""
    if str(target) == "-":
        yield sys.stdout.buffer
        return
    fd, name = tempfile.mkstemp(dir=target.absolute().parent, prefix=f".{target.name}.")
    aside = pathlib.Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
        aside.rename(target)
    finally:
        aside.unlink(missing_ok=True)


async def _points(services: Services, w: Workspace) -> list[RestorePoint]:
    keep = services.settings.archives.restore_points
    return await services.workspaces.restore_points(operator(), w.id, keep=keep, before=None, limit=EVERY)
