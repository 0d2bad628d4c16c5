"""`codehub workspace restore-points|restore|download`: what became of a home, by the API."""

import contextlib
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Annotated, BinaryIO
from urllib.parse import unquote

import typer

from codehub.command import output
from codehub.command.client import connected, pieces
from codehub.errors import CodeHubError, InvalidRequestError
from codehub.workspaces import cli

STDOUT = pathlib.Path("-")

app = cli.app  # `codehub workspace`, which these join


@app.command("restore-points")
def restore_points(which: cli.WHICH) -> None:
    """List the archives it can go back to, newest first."""
    with connected() as api:
        found = api.items("workspaces", cli.find(api, which)["id"], "restore-points")
    rows = [
        (
            output.when(p["created_at"], seconds=True),
            f"{p['files']:,}",
            output.size(p["bytes"]),
            output.size(p["stored_bytes"]),
            "current" if p["current"] else "",
            p["archive_key"],
        )
        for p in found
    ]
    output.table(("When", "Files", "Size", "Stored", "", "Key"), rows, found)


@app.command("restore")
def restore(
    which: cli.WHICH,
    point: Annotated[str, typer.Argument(help="A key from `restore-points`, or its number: 1 is the newest")],
    wait: cli.WAIT = True,
) -> None:
    """Go back to a restore point. What is there now is archived first, so that one can come back from going back."""
    with connected(running=True) as api:
        w, key = cli.find(api, which), point
        if point.isdecimal():
            found = api.items("workspaces", w["id"], "restore-points")
            if not 1 <= int(point) <= len(found):
                raise InvalidRequestError(f"there are {len(found)} restore points", field=point)
            key = found[int(point) - 1]["archive_key"]
        w = cli.retry_while_busy(lambda: api.post("workspaces", w["id"], "restore", archive_key=key))
        if wait:
            goal = "RUNNING" if w["desired_state"] == "RUNNING" else "STANDBY"
            w = cli.until(api, w, lambda now: now["phase"] == goal and now["restore_from"] is None)
    output.say(f"{cli.called(w)} {'is' if wait else 'goes'} back at {key}.", w)


@app.command("download")
def download(
    which: cli.WHICH,
    file: Annotated[
        pathlib.Path | None,
        typer.Option("-o", "--output", help="Where to; `-`: standard output."),
    ] = None,
    point: Annotated[str | None, typer.Option("--restore-point", help="A key from `restore-points`.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write its home into one file, without starting it: a .tar.gz, or a .tar.zst when FILE is called so."""
    if file == STDOUT and output.as_json:
        raise InvalidRequestError("is where the JSON goes: name a file", field="--output -")
    if file:
        _refuse_existing(file, force=force)
    form = "tar.zst" if file and file.name.endswith(".zst") else "tar.gz"
    with connected(running=True) as api:
        id_ = cli.find(api, which)["id"]
        with api.stream("workspaces", id_, "download", format=form, archive_key=point) as answer:
            target = file or _named(answer)
            _refuse_existing(target, force=force)
            size = 0
            with _writing(target, force=force) as out:
                for piece in pieces(answer):
                    size += out.write(piece)
    if target != STDOUT:
        output.say(f"Wrote {target}: {output.size(size)}", {"id": id_, "file": str(target), "bytes": size})


def _named(answer: HTTPResponse) -> pathlib.Path:
    """As the API proposes; of a path only its last part."""
    proposed = re.search(r"filename\*=UTF-8''([^;]+)", answer.getheader("content-disposition") or "")
    return pathlib.Path(pathlib.PurePath(unquote(proposed[1]) if proposed else "home").name)


def _refuse_existing(target: pathlib.Path, *, force: bool) -> None:
    if target != STDOUT and not force and target.exists():
        raise CodeHubError(f"{target} is there already: overwrite it with --force, or name another file with -o")


@contextlib.contextmanager
def _writing(target: pathlib.Path, *, force: bool) -> Iterator[BinaryIO]:
    """Whole or not at all; no other account may read it."""
    if target == STDOUT:
        yield sys.stdout.buffer
        return
    fd, name = tempfile.mkstemp(dir=target.absolute().parent, prefix=f".{target.name}.")
    aside = pathlib.Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
        _refuse_existing(target, force=force)
        aside.rename(target)
    finally:
        aside.unlink(missing_ok=True)
