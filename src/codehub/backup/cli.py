"""`codehub backup` and `codehub restore`."""

import contextlib
import os
import pathlib
import signal
from typing import Annotated, Any

import typer

from codehub import settings as config
from codehub.archives.model import DATA_NAME
from codehub.archives.objects import open_store
from codehub.backup import restore as restoring
from codehub.backup import service, signing_key
from codehub.backup.homes import Files
from codehub.backup.model import Manifest
from codehub.backup.progress import Meter
from codehub.clock import SystemClock
from codehub.command import output
from codehub.command.servers import with_servers
from codehub.embedded.datadir import DataDir, InUseError
from codehub.embedded.servers import Urls
from codehub.errors import StartError
from codehub.runtimes import choice
from codehub.settings import Settings
from codehub.system.privileges import service_account

NAMED = 3  # entries of a home in motion
FILE = Annotated[pathlib.Path, typer.Argument(metavar="FILE", help="The backup, for example `monday.codehub`.")]


def backup(
    file: FILE,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE if it exists.")] = False,
    files: Annotated[
        bool, typer.Option("--files/--without-files", help="With people's files: homes and archives.")
    ] = True,
) -> None:
    """Write everything needed to come back, on this machine or another, into one file.

    Works while CodeHub runs, and while it does not. Rows are of one moment, and so is every home that sleeps; of one
    that runs, each file is as it was when it was read: stop workspaces first where that matters. The file contains the
    key that signs cookies, so keep it as safe as the machine itself; only its owner may read it. Bring it back with
    `codehub restore FILE`.
    """
    _stop_cleanly()

    async def work(settings: Settings, urls: Urls) -> None:
        key = signing_key.current(settings)
        with Meter() as meter:
            made = await service.write(
                urls.database,
                file.absolute(),
                signing_key=key,
                now=SystemClock().now(),
                force=force,
                meter=meter,
                files=_files(settings) if files else None,
            )
        rows = sum(table.rows for table in made.tables)
        count = sum(name.endswith(f"/{DATA_NAME}") for name in made.members)
        people = f"{len(made.homes)} homes, {count} archives" if files else "no homes or archives"
        lines = [f"{file}: {len(made.tables)} tables, {rows:,} rows, {people}, {_size(file.stat().st_size)}"]
        if in_use := sum(home.in_use for home in made.homes):
            lines.append(f"{in_use} of the homes were in use: their files are not all of one moment.")
        output.say("\n".join([*lines, *_motion(made)]), {"file": str(file), **_contents(made)})

    with_servers(work)


def restore(
    file: FILE,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove what the database holds, in the same transaction.")
    ] = False,
) -> None:
    """Bring back what `codehub backup` wrote: into an empty data directory, or an empty database.

    Stop CodeHub first. The file is checked to the last byte before anything is touched; then all of it is loaded at
    once, read back and compared. If anything goes wrong, nothing has changed. A backup of an older CodeHub is brought
    up to date; one of a newer CodeHub is refused.
    """
    _stop_cleanly()
    with Meter() as meter:
        manifest = restoring.check(file, meter)
    _refuse_while_serving(config.load())

    async def work(settings: Settings, urls: Urls) -> None:
        with Meter() as meter:
            files = _files(settings)
            await restoring.load(urls.database, file, manifest, replace=replace, meter=meter, files=files)
        note = signing_key.put_back(settings, restoring.signing_key(file))
        output.say("\n".join(_report(manifest, note)), {"file": str(file), "note": note, **_contents(manifest)})

    with_servers(work)


def _files(settings: Settings) -> Files:
    storage = settings.storage
    runtime = choice.open_runtime(
        storage.data_dir,
        settings.runtime,
        service_account(settings.server.user),
        SystemClock(),
        secret_keys=settings.auth.secret_key,
    )
    return Files(runtime, open_store(storage.object_store_url))


def _refuse_while_serving(settings: Settings) -> None:
    data = DataDir(settings.storage.data_dir)
    if not (data.root / "lock").exists():
        return
    try:
        os.close(data.lock())
    except InUseError as e:
        raise StartError(f"CodeHub is running on {data.root}: stop it first, then restore") from e


def _contents(manifest: Manifest) -> dict[str, Any]:
    """For programs."""
    return {
        "created_at": manifest.created_at.isoformat(),
        "tables": {table.name: table.rows for table in manifest.tables},
        "homes": [home.workspace_id for home in manifest.homes if not home.missing],
        "in_motion": [home.workspace_id for home in manifest.homes if home.moved],
        "missing_homes": [home.workspace_id for home in manifest.homes if home.missing],
        "missing_archives": list(manifest.missing_archives),
    }


def _report(manifest: Manifest, note: str) -> list[str]:
    """Every line was compared with the backup, by count and by content, before it was committed."""
    width = max(len(table.name) for table in manifest.tables)
    lines = [
        f"{table.name:{width}}  {table.rows:>9,} {'row ' if table.rows == 1 else 'rows'}  ✓"
        for table in manifest.tables
    ]
    if manifest.homes:
        back = sum(not home.missing for home in manifest.homes)
        lines += [f"{back} homes and all archives are back, each checked to the last byte.", *_motion(manifest)]
    at = output.when(manifest.created_at)
    return [*lines, note, f"Restored the backup of {at}. Start with: codehub serve"]


def _motion(manifest: Manifest) -> list[str]:
    """What people did to their files while the backup was made, a few names of each home."""
    lines = []
    for home in manifest.homes:
        if home.missing:
            lines.append(f"home {home.workspace_id}: destroyed while the backup was made; nothing of it is in there.")
        elif home.moved:
            few = "; ".join(home.moved_names[:NAMED])
            more = " …" if home.moved > NAMED else ""
            lines.append(f"home {home.workspace_id}: in motion, {home.moved} entries as they were found: {few}{more}")
    gone = "destroyed while the backup was made; it is not in there."
    return [*lines, *(f"archive {key}: {gone}" for key in manifest.missing_archives)]


def _stop_cleanly() -> None:
    """Being told to stop removes what is half written, as Ctrl-C does."""
    with contextlib.suppress(ValueError):  # only the main thread may
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's script starts what runs beside it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        # Not an exception wherever we happen to be: the event loop ends its task for Ctrl-C, and cleans up first.
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
