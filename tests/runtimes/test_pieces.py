"""The pure pieces of the process runtime: mounts, limits, names, numbers, paths."""

import asyncio
import os
import pathlib

import pytest

from codehub.errors import NotFoundError
from codehub.runtimes import cgroups, files, sandbox, uids
from codehub.runtimes.layout import Layout
from codehub.runtimes.limits import Limits
from codehub.runtimes.sandbox import Machine, SandboxSpec
from codehub.runtimes.shepherd.log_files import LogFiles
from codehub.runtimes.shepherd.spec import HOST_NETWORK, Mount, NetworkSpec, Spec

MACHINE = Machine(
    system=(("/usr", None), ("/bin", "usr/bin"), ("/opt", None)),
    etc=("ssl",),
    trees=("/root/venv", "/usr/lib/python3"),
    hidden=("/opt/codehub/data", "/srv/data"),
)
SANDBOX = SandboxSpec("w1", "alice", 200_000, "/data/home", "/data/run/w/w1", "/data/etc")


def test_a_sandbox_shows_what_is_named_and_hides_data_inside_of_it() -> None:
    steps = sandbox.mounts(MACHINE, SANDBOX)
    binds = {step.target: step.source for step in steps if step.kind in {"bind", "read-only"}}
    assert binds == {
        "/usr": "/usr",
        "/opt": "/opt",
        "/etc/ssl": "/etc/ssl",
        **{f"/etc/{name}": f"/data/etc/{name}" for name in ("passwd", "group", "hosts", "hostname", "profile")},
        "/root/venv": "/root/venv",
        "/run/ide": "/data/run/w/w1",
        "/home/alice": "/data/home",
    }
    assert [step.target for step in steps if step.kind == "bind"] == ["/run/ide", "/home/alice"]
    assert [step.target for step in steps if step.kind == "hide"] == ["/opt/codehub/data"]
    hidden_at = steps.index(Mount("hide", "/opt/codehub/data"))
    assert hidden_at > steps.index(Mount("read-only", "/opt", "/opt"))


def test_an_ide_inside_the_hidden_data_is_shown_on_top() -> None:
    box = SandboxSpec("w1", "alice", None, "/h", "/s", "/e", paths=("/opt/codehub/data/ide",))
    machine = Machine((("/srv", None),), (), (), ("/opt/codehub/data",))
    targets = [step.target for step in sandbox.mounts(machine, box)]
    assert "/opt/codehub/data/ide" in targets


def test_bubblewrap_is_told_the_same_in_its_own_words() -> None:
    options = " ".join(sandbox.bubblewrap("bwrap", sandbox.mounts(MACHINE, SANDBOX), SANDBOX))
    for part in (
        "--unshare-pid",
        "--ro-bind /usr /usr",
        "--symlink usr/bin /bin",
        "--bind /data/home /home/alice",
        "--tmpfs /opt/codehub/data --remount-ro /opt/codehub/data",
        "--remount-ro /dev --remount-ro / ",
        "--hostname w1",
    ):
        assert part in options
    assert "--unshare-net" not in options  # as root it begins in a network of its own: the shepherd makes it
    assert "--unshare-user" not in options
    alone = SandboxSpec("w1", "alice", None, "/h", "/s", "/e")
    assert {"--unshare-net", "--unshare-user"} <= set(sandbox.bubblewrap("bwrap", [], alone))
    exposed = SandboxSpec("w1", "alice", None, "/h", "/s", "/e", network=NetworkSpec(HOST_NETWORK))
    assert "--unshare-net" not in sandbox.bubblewrap("bwrap", [], exposed)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("alice", "alice"),
        ("root", "learner"),
        ("nobody", "learner"),
        ("7of9", "learner"),
        ("a:b", "learner"),
        ("", "learner"),
    ],
)
def test_a_user_is_called_like_its_owner_where_that_can_be(owner: str, name: str) -> None:
    assert sandbox.user_name(owner) == name


def test_a_spec_survives_its_journey() -> None:
    spec = Spec(
        "w1", "none", ["a"], {"A": "ü"}, "alice", "/home/alice", None, None,
        NetworkSpec("relay", ["a.b"], ["10.0.0.0/8"]),
        [Mount("tmpfs", "/tmp", size=4)], [], "/h", "/l", "/r", "/e", "/s", 5, "/log", 7,
    )  # fmt: skip
    assert Spec.loads(spec.dumps()) == spec


LIMITS = Limits(memory_mb=64, processes=10, cpus=1.5, cpu_weight=50)


@pytest.mark.parametrize(
    ("version", "controller", "expected"),
    [
        (
            1,
            "memory",
            [
                ("memory.limit_in_bytes", "67108864"),
                ("memory.memsw.limit_in_bytes", "67108864"),
                ("memory.kmem.tcp.limit_in_bytes", "16777216"),
            ],
        ),
        (1, "pids", [("pids.max", "10")]),
        (1, "cpu", [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "150000"), ("cpu.shares", "512")]),
        (
            2,
            "all",
            [
                ("memory.max", "67108864"),
                ("memory.swap.max", "0"),
                ("pids.max", "10"),
                ("cpu.max", "150000 100000"),
                ("cpu.weight", "50"),
            ],
        ),
    ],
)
def test_limits_are_written_in_the_words_of_each_version(
    version: int, controller: str, expected: list[tuple[str, str]]
) -> None:
    assert cgroups.settings(version, controller, LIMITS) == expected
    assert cgroups.settings(version, controller, Limits(0, 0, 0.0)) == []


def test_groups_that_can_not_be_made_are_reported(tmp_path: pathlib.Path) -> None:
    nowhere = tmp_path / "no" / "such" / "mount"
    found = cgroups.find(tmp_path, nowhere)
    assert not found.available
    assert "cannot be made" in found.reason
    assert found.create("w1", LIMITS) == []


def test_a_user_number_is_given_out_once(tmp_path: pathlib.Path) -> None:
    (tmp_path / "homes").mkdir()
    counter = tmp_path / "counter"
    assert [uids.allocate(counter, 5000) for _ in range(3)] == [5000, 5001, 5002]
    assert uids.allocate(counter, 7000) == 7000
    assert uids.allocate(counter, 5000) == 7001


def test_a_lost_counter_does_not_give_out_a_number_in_use(tmp_path: pathlib.Path) -> None:
    home = tmp_path / "homes" / "w1" / "volume" / "home"
    home.mkdir(parents=True)
    assert uids.allocate(tmp_path / "counter", 0) == home.stat().st_uid + 1


async def test_two_hundred_at_once_get_two_hundred_numbers(tmp_path: pathlib.Path) -> None:
    (tmp_path / "homes").mkdir()
    ask = [asyncio.to_thread(uids.allocate, tmp_path / "counter", 5000) for _ in range(200)]
    assert sorted(await asyncio.gather(*ask)) == list(range(5000, 5200))


@pytest.mark.parametrize("data", ["/d", "/var/lib/codehub", "/" + "long/" * 40])
@pytest.mark.parametrize("workspace_id", ["a", "abcdefghijkl", "x" * 63])
def test_a_sockets_path_always_fits(data: str, workspace_id: str) -> None:
    assert len(os.fsencode(Layout(pathlib.Path(data)).of(workspace_id).socket)) <= 107


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-a", "x" * 64, "a\n"])
def test_what_is_no_id_never_becomes_a_path(name: str) -> None:
    with pytest.raises(NotFoundError):
        Layout(pathlib.Path("/d")).of(name)


def test_a_log_keeps_its_end_within_its_bound(tmp_path: pathlib.Path) -> None:
    log = LogFiles(str(tmp_path), 1000)
    for number in range(500):
        log.write(f"line {number}\n".encode())
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000
    assert (tmp_path / "current").read_text().endswith("line 499\n")
    log.write(b"y" * 5000)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000 + 5000


def test_folders_that_their_owner_has_closed_are_removed_all_the_same(tmp_path: pathlib.Path) -> None:
    """Root is not stopped by them, an ordinary user is: this file runs as both."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    home = tmp_path / "home"
    (home / "closed" / "deeper").mkdir(parents=True)
    (home / "closed" / "deeper" / "note").write_text("x")
    (home / "closed" / "link").symlink_to(outside)
    for folder, mode in ((home / "closed" / "deeper", 0o000), (home / "closed", 0o444), (home, 0o000)):
        folder.chmod(mode)
    files.remove_tree(home)
    assert not home.exists()
    assert outside.stat().st_mode & 0o777 == 0o500  # what a link points at keeps its rights
    files.remove_tree(home)  # gone already
