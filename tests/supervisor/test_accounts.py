"""An account of our own: made where root can make one, and given everything that another had before."""

import contextlib
import grp
import os
import pathlib
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from codehub.embedded.datadir import DataDir
from codehub.embedded.ownership import change_owner
from codehub.runtimes.layout import Layout
from codehub.system import accounts
from codehub.system.accounts import ensure_account
from codehub.system.privileges import Account, service_account
from tests.platform import Platform, running
from tests.workspaces.test_lifecycle import until

BEFORE, NOW = Account("before", 64001, 64002), Account("now", 64003, 64004)


@pytest.fixture
def name() -> Iterator[str]:
    """Of an account that is not there, and is not there afterwards."""
    chosen = f"codehub-{secrets.token_hex(4)}"
    yield chosen
    with contextlib.suppress(KeyError):
        pwd.getpwnam(chosen)
        subprocess.run(["userdel", chosen], check=True)
    with contextlib.suppress(KeyError):
        grp.getgrnam(chosen)
        subprocess.run(["groupdel", chosen], check=True)


def test_the_account_is_made_once_and_nobody_can_log_in_to_it(name: str) -> None:
    made = ensure_account(None, name)
    entry = pwd.getpwnam(name)
    assert made == Account(name, entry.pw_uid, entry.pw_gid)
    assert entry.pw_uid not in {0, pwd.getpwnam("nobody").pw_uid}
    assert entry.pw_dir == "/nonexistent"
    assert pathlib.Path(entry.pw_shell).name in {"nologin", "false"}
    password = next(x for x in pathlib.Path("/etc/shadow").read_text().splitlines() if x.startswith(f"{name}:"))
    assert password.split(":")[1].startswith(("!", "*"))
    assert ensure_account(None, name) == made == service_account(None, name)


def test_a_group_that_was_left_behind_is_used_again_unless_somebody_is_in_it(name: str) -> None:
    subprocess.run(["groupadd", "--system", name], check=True)
    subprocess.run(["gpasswd", "--add", "games", name], check=True)
    assert ensure_account(None, name) == service_account("nobody")
    subprocess.run(["gpasswd", "--delete", "games", name], check=True)
    made = ensure_account(None, name)
    assert made
    assert (made.name, made.gid) == (name, grp.getgrnam(name).gr_gid)


def test_where_none_can_be_made_nobody_takes_its_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "PLACES", "/nonexistent")
    for _ in range(2):
        account = ensure_account(None, name)
        assert account is not None
        assert account.name == "nobody"


def test_a_useradd_that_fails_stops_no_start(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "useradd"
    program.write_text("#!/bin/sh\necho 'cannot lock /etc/passwd' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(accounts, "PLACES", str(tmp_path))
    account = ensure_account(None, name)
    assert account is not None
    assert account.name == "nobody"


def test_who_was_asked_for_wins_and_nothing_is_made(name: str) -> None:
    account = ensure_account("daemon", name)
    assert account is not None
    assert account.name == "daemon"
    with pytest.raises(KeyError):
        pwd.getpwnam(name)


@pytest.fixture
def data(tmp_path: pathlib.Path) -> DataDir:
    """As an earlier start left it, with what a workspace and an intruder could have added."""
    data, layout = DataDir(tmp_path / "d"), Layout(tmp_path / "d")
    for folder in ("postgres/base/1", "redis/appendonlydir", "run/pg", "run/redis", "run/api", "run/metrics"):
        (data.root / folder).mkdir(parents=True)
    for file in ("postgres/PG_VERSION", "postgres/base/1/112", "redis/appendonlydir/a", "run/pg/.s.PGSQL.5432.lock"):
        (data.root / file).write_text("x")
    outside = tmp_path / "outside"
    outside.write_text("somebody's")
    linked = data.root / "postgres" / "linked"
    linked.write_text("x")
    for name in ("postgres", "redis", "run"):
        subprocess.run(["chown", "-R", f"{BEFORE.uid}:{BEFORE.gid}", str(data.root / name)], check=True)
    os.link(linked, tmp_path / "second-name")
    (data.root / "postgres" / "roots").write_text("x")
    (data.root / "postgres" / "leads-out").symlink_to(outside)
    (data.root / "redis" / "leads-out").symlink_to(tmp_path)
    for opened, mode in ((layout.sockets / "k", 0o2710), (layout.homes / "w" / "log", 0o2750)):
        opened.mkdir(parents=True)
        (opened / "thing").write_text("x")
        (opened / "leads-out").symlink_to(outside)
        os.chown(opened, 70_000, BEFORE.gid)
        os.chown(opened / "thing", 70_000, BEFORE.gid)
        opened.chmod(mode)
    return data


def owners(data: DataDir) -> dict[str, tuple[int, int]]:
    found = {}
    for path in sorted(data.root.parent.rglob("*")):
        info = path.lstat()
        found[str(path.relative_to(data.root.parent))] = info.st_uid, info.st_gid
    return found


def check(data: DataDir) -> None:
    found, new = owners(data), (NOW.uid, NOW.gid)
    for name in ("postgres/PG_VERSION", "postgres/base/1/112", "redis/appendonlydir/a", "run/pg/.s.PGSQL.5432.lock"):
        assert found[f"d/{name}"] == new, name
    for name in ("postgres", "postgres/base", "redis", "run/pg", "run/redis", "run/api", "run/metrics"):
        assert found[f"d/{name}"] == new, name
    assert found["outside"] == (0, 0)
    assert found["d/postgres/roots"] == (0, 0)
    assert found["second-name"] == (BEFORE.uid, BEFORE.gid)
    for folder, mode in (("run/w/k", 0o2710), ("workspaces/homes/w/log", 0o2750)):
        assert found[f"d/{folder}"] == found[f"d/{folder}/thing"] == (70_000, NOW.gid)
        assert (data.root / folder).stat().st_mode & 0o7777 == mode


def test_everything_changes_hands_once_and_no_link_is_followed(data: DataDir) -> None:
    assert change_owner(data, NOW)
    check(data)
    assert not change_owner(data, NOW)
    assert not change_owner(data, None)


def test_killed_anywhere_the_next_start_carries_on(data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    class KilledError(BaseException):
        pass

    real, steps = os.chown, 0

    def chown(*arguments: Any) -> None:
        nonlocal steps
        if steps == 0:
            raise KilledError
        steps -= 1
        real(*arguments)

    monkeypatch.setattr(os, "chown", chown)
    for allowed in range(100):  # each attempt gets one step further than the one before had
        steps = 1
        try:
            change_owner(data, NOW)
        except KilledError:
            continue
        assert allowed > 10
        break
    monkeypatch.undo()
    check(data)


async def test_a_platform_that_served_as_another_account_goes_on_as_its_own(data_dir: pathlib.Path) -> None:
    """Its workspace, which ran on meanwhile, is entered as before, and its log is read."""
    now = ensure_account(None)
    assert now is not None
    platform = Platform(data_dir, CODEHUB_USER="daemon")
    later = Platform(data_dir)
    try:
        platform.start()
        async with platform.client() as admin:
            new = {"name": "lab", "template": "terminal"}
            async with admin.post("/api/v1/workspaces", json=new) as answer:
                id_ = (await answer.json())["id"]
            before = await until(admin, id_, "RUNNING")
        assert (data_dir / "postgres").stat().st_uid == pwd.getpwnam("daemon").pw_uid
        platform.stop()
        later.start()
        async with later.client() as admin:
            async with admin.get(f"/w/{id_}/healthz") as answer:
                assert answer.status == 200, await answer.text()
            async with admin.get(f"/api/v1/workspaces/{id_}/logs") as answer:
                assert answer.status == 200
            assert (await until(admin, id_, "RUNNING"))["phase_changed_at"] == before["phase_changed_at"]
        for path in ("postgres", "postgres/PG_VERSION", "redis", "run/redis/redis.conf"):
            assert (data_dir / path).stat().st_uid == now.uid, path
        spy = ["setpriv", "--reuid=daemon", "--regid=daemon", "--clear-groups", "cat"]
        if shutil.which("setpriv"):
            seen = subprocess.run([*spy, str(data_dir / "run/redis/redis.conf")], capture_output=True, check=False)
            assert seen.returncode != 0
    finally:
        platform.stop()
        later.stop()
        later.end_workspaces()


def test_the_redis_configuration_is_closed_to_whatever_runs_as_nobody(data_dir: pathlib.Path) -> None:
    account = ensure_account(None)
    assert account
    assert account.name != "nobody"
    spy = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "cat"]
    with running(data_dir):
        for path in ("run/redis/redis.conf", "run/pg/.s.PGSQL.5432.lock", "postgres/PG_VERSION"):
            seen = subprocess.run([*spy, str(data_dir / path)], capture_output=True, text=True, check=False)
            assert (seen.returncode, "Permission denied" in seen.stderr) == (1, True), path
