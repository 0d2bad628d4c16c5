"""Moving house by a backup: people, their tokens and their browsers, and every home to the last byte."""

import asyncio
import os
import pathlib
import stat
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from codehub.runtimes.layout import Layout
from tests.archives import trees
from tests.places import a_place
from tests.platform import Platform, codehub
from tests.workspaces.ides import write_templates
from tests.workspaces.test_lifecycle import _purge_everything, api, create, until, visiting, want


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    with a_place() as made:
        write_templates(made / "templates")
        yield made


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


async def make_people(platform: Platform) -> tuple[str, str]:
    """A learner with a bearer token, and the admin in a browser; returns token and cookie."""
    async with platform.client() as admin:
        async with admin.post("/api/v1/users", json={"name": "mina", "role": "learner"}) as answer:
            assert answer.status == 201
        async with admin.post("/api/v1/users/mina/tokens", json={}) as answer:
            token: str = (await answer.json())["token"]
    link = platform.login_link()
    async with platform.client(token=None) as browser:
        async with browser.post(link) as answer:
            assert answer.status == 200
        cookie = next(c.value for c in browser.cookie_jar if c.key == "codehub")
    return token, cookie


async def who(platform: Platform, *, token: str | None = None, cookie: str | None = None) -> str | None:
    cookies = {"codehub": cookie} if cookie else None
    async with platform.client(token) as client, aiohttp.ClientSession(cookies=cookies) as browser:
        chosen = client.get("/api/v1/me") if token else browser.get(platform.url + "/api/v1/me")
        async with chosen as answer:
            return (await answer.json())["name"] if answer.status == 200 else None


async def test_a_platform_moves_to_an_empty_machine_and_nobody_notices(folder: pathlib.Path) -> None:
    old, new = platform(folder, "old"), platform(folder, "new")
    try:
        await asyncio.to_thread(old.start)
        token, cookie = await make_people(old)
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
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "2 homes, 2 archives" in made.stdout
        assert "1 of the homes were in use" in made.stdout
        for more in ([], ["--replace"]):
            refused = codehub("restore", str(file), *more, CODEHUB_DATA_DIR=str(old.data_dir))
            assert refused.returncode == 1
            assert refused.stderr == f"codehub: CodeHub is running on {old.data_dir}: stop it first, then restore\n"
        assert await who(old, token=token) == "mina"
        await asyncio.to_thread(_purge_everything, old)
        await asyncio.to_thread(old.stop)

        back = codehub("restore", str(file), CODEHUB_DATA_DIR=str(new.data_dir))
        assert back.returncode == 0, back.stderr
        assert "2 rows  ✓" in back.stdout.split("users", 1)[1].splitlines()[0]
        assert "people stay logged in" in back.stdout
        assert stat.S_IMODE((new.data_dir / "secrets" / "signing-key").stat().st_mode) == 0o600
        assert await asyncio.to_thread(look, Layout(new.data_dir).of(ids["asleep"]).home) == pictures["asleep"]
        await asyncio.to_thread(new.start)
        assert "Need a login link?" in new.output()  # the admin has logged in before the move
        assert await who(new, token=token) == "mina"
        assert await who(new, cookie=cookie) == "admin"
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
    finally:
        for each in (old, new):
            if each.process:
                await asyncio.to_thread(_purge_everything, each)
                each.stop()
