"""Which directories stand in an account's way, and what it sees instead."""

import asyncio
import os
import pathlib

import pytest

from codehub.embedded.datadir import LONGEST_RUN_DIR, DataDir, InUseError
from codehub.errors import StartError
from codehub.system.forking import Spec, spawn
from codehub.system.privileges import Account, service_account, view_for

SOMEBODY = Account("somebody", 65533, 65533)


def test_an_ordinary_user_has_no_account_to_give_and_root_gives_an_unprivileged_one() -> None:
    account = service_account(None)
    assert account is None if os.geteuid() else account is not None and account.uid != 0


def test_the_highest_closed_directory_is_the_one_to_open(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o755)
    closed = tmp_path / "closed"
    tree = closed / "inner" / "tree"
    tree.mkdir(parents=True)
    closed.chmod(0o700)
    (closed / "inner").chmod(0o700)
    shown = dict(view_for(SOMEBODY, [tree]).closed)
    # pytest's own folders above may be closed too: then the highest of those is what counts.
    assert list(shown.values()) == [(tree,)]
    assert closed.is_relative_to(next(iter(shown)))


def test_nothing_is_in_the_way_of_what_everybody_may_read() -> None:
    assert view_for(SOMEBODY, [pathlib.Path("/usr/bin")]).closed == ()
    assert view_for(None, [pathlib.Path("/root")]).closed == ()


async def test_a_child_sees_the_needed_tree_and_nothing_else_of_a_closed_directory(tmp_path: pathlib.Path) -> None:
    """As root for real; as an ordinary user there is no other account, and the child sees what we see."""
    tree = tmp_path / "needed"
    tree.mkdir()
    (tree / "file").write_text("here")
    (tmp_path / "secret").write_text("not for you")
    tmp_path.chmod(0o700)
    account = service_account(None)
    script = f"cat {tree}/file; ls {tmp_path} {tmp_path.parent}; id -u; grep NoNewPrivs /proc/self/status"
    log = tmp_path / "out"
    spec = Spec("ls", ("/bin/sh", "-c", script), account, view_for(account, [tree]), {"PATH": os.defpath}, log_file=log)
    await spawn(spec).wait()
    out = log.read_text()
    assert out.startswith("here")
    if account:
        assert "secret" not in out
        assert f"\n{account.uid}\n" in out
        assert "NoNewPrivs:\t1" in out
    assert (tmp_path / "secret").read_text() == "not for you"  # our own view is as before


def test_a_data_directory_is_held_by_one(tmp_path: pathlib.Path) -> None:
    lock = DataDir(tmp_path / "data").lock()
    with pytest.raises(InUseError, match=f"process {os.getpid()}"):
        DataDir(tmp_path / "data").lock()
    os.close(lock)
    os.close(DataDir(tmp_path / "data").lock())


def test_sockets_have_short_paths_wherever_the_data_is(tmp_path: pathlib.Path) -> None:
    deep = DataDir(tmp_path / ("x" * 120))
    assert len(os.fsencode(deep.run)) <= LONGEST_RUN_DIR
    assert deep.run != DataDir(tmp_path / ("y" * 120)).run


def test_a_run_directory_of_somebody_else_is_refused(tmp_path: pathlib.Path) -> None:
    data = DataDir(tmp_path / ("x" * 120))
    data.root.mkdir()
    data.run.symlink_to(tmp_path)
    try:
        with pytest.raises(StartError, match="belongs to another user"):
            data.prepare(None)
    finally:
        data.run.unlink()


async def test_a_secret_is_made_once_and_kept_from_others(tmp_path: pathlib.Path) -> None:
    data = DataDir(tmp_path)
    data.secrets.mkdir()
    first = await asyncio.to_thread(data.secret, "signing-key")
    assert data.secret("signing-key") == first
    assert len(first) >= 40
    assert (data.secrets / "signing-key").stat().st_mode & 0o777 == 0o600
