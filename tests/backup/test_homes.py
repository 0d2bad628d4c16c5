"""People's files in a backup: onto an empty machine, the same to the last byte, times and modes included."""

import asyncio
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from codehub.runtimes.layout import Layout
from tests.archives import trees
from tests.platform import Platform, codehub
from tests.workspaces.ides import write_templates
from tests.workspaces.test_lifecycle import _purge_everything, api, create, until, visiting, want


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    made = pathlib.Path(tempfile.mkdtemp(prefix="codehub-"))
    made.chmod(0o755)
    write_templates(made / "templates")
    yield made
    shutil.rmtree(made, ignore_errors=True)


EAGER = {
    "CODEHUB_MAX_RUNNING_PER_USER": "0",
    "COORDINATOR_IDLE_INTERVAL": "1",
    "COORDINATOR_ACTIVE_INTERVAL": "0.2",
}


def platform(folder: pathlib.Path, name: str) -> Platform:
    environment = {"CODEHUB_TEMPLATES_DIR": str(folder / "templates"), "CODEHUB_STOP_GRACE_SECONDS": "1", **EAGER}
    return Platform(folder / name, first_start=False, **environment)


def furnish(home: pathlib.Path) -> dict[bytes, Any]:
    """One of everything; what it looks like, but for the owner's number, which is the machine's business."""
    trees.grow(home / "project", trees.rich(with_xattrs=trees.has_xattrs(home), levels=3))
    owner = home.stat()
    for root, folders, files in os.walk(home):
        for name in (*folders, *files):
            path = pathlib.Path(root) / name
            mode = path.lstat().st_mode
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
            if not path.is_symlink():
                path.chmod(mode & 0o7777)  # a change of owner clears some of it
    return look(home)


def look(home: pathlib.Path) -> dict[bytes, Any]:
    owner = home.stat()
    seen = trees.picture(home / "project")
    owners = {entry[1:3] for entry in seen.values() if isinstance(entry, tuple)}
    assert owners == {(owner.st_uid, owner.st_gid)}
    return {name: (e[0], *e[3:]) if isinstance(e, tuple) else e for name, e in seen.items()}


async def test_a_platform_with_its_homes_moves_to_an_empty_machine(folder: pathlib.Path) -> None:
    old, new = platform(folder, "old"), platform(folder, "new")
    try:
        await asyncio.to_thread(old.start)
        async with visiting(old) as client:
            ids = dict(zip(("asleep", "archived", "trashed"), [await create(client) for _ in range(3)], strict=False))
            pictures = {}
            for kind, id_ in ids.items():
                await until(client, id_, "RUNNING")
                await want(client, id_, "STANDBY")
                pictures[kind] = await asyncio.to_thread(furnish, Layout(old.data_dir).of(id_).home)
            await want(client, ids["archived"], "ARCHIVED")
            await api(client, "DELETE", f"/api/v1/workspaces/{ids['trashed']}", status=202)
            await until(client, ids["trashed"], "DELETED")
            running = await create(client)
            await until(client, running, "RUNNING")
            (Layout(old.data_dir).of(running).home / "note").write_text("in use")
        file = folder / "all.backup"
        made = codehub("backup", str(file), CODEHUB_DATA_DIR=str(old.data_dir))
        assert made.returncode == 0, made.stderr
        assert "2 homes, 2 archives" in made.stdout
        assert "1 of the homes were in use" in made.stdout
        await asyncio.to_thread(_purge_everything, old)
        await asyncio.to_thread(old.stop)

        back = codehub("restore", str(file), CODEHUB_DATA_DIR=str(new.data_dir))
        assert back.returncode == 0, back.stderr
        assert await asyncio.to_thread(look, Layout(new.data_dir).of(ids["asleep"]).home) == pictures["asleep"]
        await asyncio.to_thread(new.start)
        async with visiting(new) as client:
            await until(client, running, "RUNNING")
            assert (Layout(new.data_dir).of(running).home / "note").read_text() == "in use"
            await api(client, "POST", f"/api/v1/workspaces/{ids['trashed']}/undelete", status=202)
            await until(client, ids["trashed"], "ARCHIVED")
            for kind in ("archived", "trashed"):
                await want(client, ids[kind], "STANDBY")
                seen = await asyncio.to_thread(look, Layout(new.data_dir).of(ids[kind]).home)
                assert seen == pictures[kind]
            points = await api(client, "GET", f"/api/v1/workspaces/{ids['archived']}/restore-points")
            assert len(points["items"]) == 1
        again = codehub("restore", str(file), CODEHUB_DATA_DIR=str(new.data_dir))
        assert again.returncode == 1  # it runs
    finally:
        for each in (old, new):
            if each.process:
                await asyncio.to_thread(_purge_everything, each)
                each.stop()
