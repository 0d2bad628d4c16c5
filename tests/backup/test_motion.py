"""A backup while people do what they like with their files: it is made, says what was in motion, and comes back."""

import asyncio
import contextlib
import http.client
import json
import pathlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from codehub.archives.objects import open_store
from codehub.backup import service
from codehub.backup.homes import Files
from codehub.backup.model import Manifest
from codehub.backup.progress import Meter
from codehub.clock import SystemClock
from codehub.embedded.datadir import DataDir
from codehub.runtimes.layout import Layout
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import RuntimeConfig
from tests.archives.test_motion import churned
from tests.backup.test_moving import folder, platform  # noqa: F401 (a fixture)
from tests.platform import ADMIN_TOKEN, Platform, codehub
from tests.workspaces.test_lifecycle import _purge_everything, api, create, until, visiting, want


@pytest.fixture
async def old(folder: pathlib.Path) -> AsyncIterator[Platform]:  # noqa: F811
    started = platform(folder, "old")
    try:
        await asyncio.to_thread(started.start)
        yield started
    finally:
        if started.process:
            await asyncio.to_thread(_purge_everything, started)
            started.stop()


async def test_a_home_in_motion_is_noted_and_ends_no_backup(old: Platform, folder: pathlib.Path) -> None:  # noqa: F811
    async with visiting(old) as client:
        wild, calm = await create(client), await create(client)
        for id_ in (wild, calm):
            await until(client, id_, "RUNNING")
        home = Layout(old.data_dir).of(calm).home
        (home / "note").write_text("kept")
        with churned(Layout(old.data_dir).of(wild).home):
            for number in range(3):
                made = codehub("backup", str(folder / f"{number}.backup"), CODEHUB_DATA_DIR=str(old.data_dir))
                assert made.returncode == 0, made.stderr
                assert f"home {wild}: in motion" in made.stdout
                assert f"home {calm}" not in made.stdout
    await asyncio.to_thread(_purge_everything, old)
    await asyncio.to_thread(old.stop)
    back = codehub("restore", str(folder / "2.backup"), CODEHUB_DATA_DIR=str(folder / "new"))
    assert back.returncode == 0, back.stderr
    assert f"home {wild}: in motion" in back.stdout
    layout = Layout(folder / "new")
    assert (layout.of(calm).home / "note").read_text() == "kept"
    assert any(layout.of(wild).home.iterdir())


def purge(platform: Platform, id_: str) -> None:
    """By somebody else, while our loop is busy; until nothing of it is left."""
    assert _ask(platform, "DELETE", f"{id_}?purge=true")
    deadline = time.monotonic() + 60
    while _ask(platform, "GET", id_)["phase"] != "DELETED":
        assert time.monotonic() < deadline, "it was not purged"
        time.sleep(0.05)


def _ask(platform: Platform, method: str, what: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection(platform.url.removeprefix("http://"), timeout=20)
    with contextlib.closing(connection):
        connection.request(method, f"/api/v1/workspaces/{what}", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        found: dict[str, Any] = json.load(connection.getresponse())
        return found


async def test_what_is_destroyed_while_it_is_backed_up_ends_no_backup(
    old: Platform,
    folder: pathlib.Path,  # noqa: F811
) -> None:
    async with visiting(old) as client:
        home, stored, calm = [await create(client) for _ in range(3)]
        for id_ in (home, stored, calm):
            await until(client, id_, "RUNNING")
            await want(client, id_, "STANDBY")
        await want(client, stored, "ARCHIVED")
        key = (await api(client, "GET", f"/api/v1/workspaces/{stored}"))["archive_key"]

    class Purging(Meter):
        """Its owner purges it in the moment in which it would be packed."""

        def begin(self, what: str, total: int | None = None) -> None:
            super().begin(what, total)
            for id_ in (home, stored):
                if what in {f"home {id_}", f"archive {id_}"}:
                    purge(old, id_)

    runtime = ProcessRuntime(old.data_dir, RuntimeConfig(), None, SystemClock())
    files = Files(runtime, open_store(f"file://{old.data_dir / 'archives'}"))

    def back_up() -> object:
        url, now = DataDir(old.data_dir).database_url, SystemClock().now()
        target = folder / "all.backup"
        writing = service.write(url, target, signing_key=None, now=now, force=False, meter=Purging(), files=files)
        return asyncio.run(writing)

    made = await asyncio.to_thread(back_up)
    assert isinstance(made, Manifest)
    assert made.missing_archives == (key,)
    assert {record.workspace_id: record.missing for record in made.homes} == {home: True, calm: False}
    await asyncio.to_thread(old.stop)
    back = codehub("restore", str(folder / "all.backup"), CODEHUB_DATA_DIR=str(folder / "new"))
    assert back.returncode == 0, back.stderr
    assert f"home {home}: destroyed while the backup was made" in back.stdout
    assert f"archive {key}: destroyed" in back.stdout
    assert Layout(folder / "new").of(calm).home.is_dir()
