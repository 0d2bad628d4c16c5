"""A start that cannot work names everything that is wrong at once, each with its true reason."""

import os
import pathlib
import socket

import pytest

from codehub import settings as config
from codehub.embedded.datadir import DataDir, InUseError
from codehub.errors import StartError
from codehub.supervisor import listeners
from tests.platform import codehub


def test_all_that_is_wrong_is_named_at_once(tmp_path: pathlib.Path) -> None:
    wrong = {
        "CODEHUB_PORT": "http",
        "CODEHUB_LOG_LEVEL": "loud",
        "CODEHUB_HOST": "192.0.2.7",  # nobody's: reserved for documentation
        "CODEHUB_DATA_DIR": str(tmp_path / "mistyped" / "data"),
        "CODEHUB_TEMPLATES_DIR": str(tmp_path / "nowhere"),
    }
    ended = codehub("serve", **wrong)
    assert ended.returncode == 1
    named = [line.removeprefix("codehub: ").partition("=")[0] for line in ended.stderr.splitlines()]
    assert sorted(named) == sorted(wrong)
    assert not (tmp_path / "mistyped").exists()


def test_without_a_docker_engine_it_is_said_what_to_do(tmp_path: pathlib.Path) -> None:
    chosen = {"CODEHUB_RUNTIME": "docker", "CODEHUB_DOCKER_SOCKET": str(tmp_path / "none.sock")}
    ended = codehub("serve", CODEHUB_DATA_DIR=str(tmp_path / "data"), **chosen)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "CODEHUB_RUNTIME=docker: " in ended.stderr
    assert "apt install docker.io" in ended.stderr or os.geteuid() != 0


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("192.0.2.7", "CODEHUB_HOST=192.0.2.7: this machine has no such address"),
        ("no-such-host.invalid", "CODEHUB_HOST=no-such-host.invalid: there is no such host"),
    ],
)
def test_a_wrong_host_is_not_about_the_port(host: str, said: str) -> None:
    (problem,) = listeners.problems(config.load({"CODEHUB_HOST": host}))
    assert problem.startswith(said)
    assert "port" not in problem


def test_a_port_of_the_administrators_is_said_to_be_one() -> None:
    """In a process without the right to listen there."""
    settings = config.load({"CODEHUB_PORT": "80"})
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            os.write(write, "\n".join(listeners.problems(settings)).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read) as answer:
        said = answer.read()
    free = int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80
    assert said.startswith("CODEHUB_PORT=80: an ordinary user may not listen on this port") is not free
    assert "free port" not in said


def test_a_taken_port_may_become_free_before_we_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = config.load({"CODEHUB_PORT": str(taken.getsockname()[1])})
        assert listeners.problems(settings) == []
        with pytest.raises(StartError, match="Set CODEHUB_PORT to a free port"):
            listeners.open_sockets(settings)


@pytest.mark.parametrize("beside", ["notes.txt", "lib"])
def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: pathlib.Path, beside: str) -> None:
    """As it would be with `CODEHUB_DATA_DIR=/var`: we would change who may enter it."""
    (tmp_path / "log").mkdir()
    (tmp_path / beside).touch()
    mode = tmp_path.stat().st_mode
    with pytest.raises(StartError, match="give CodeHub a folder of its own"):
        DataDir(tmp_path).lock()
    assert tmp_path.stat().st_mode == mode
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["log", beside])


@pytest.mark.parametrize("there", [(), ("ide", "templates", "codehub.toml"), ("lock", "run"), ("secrets", "anything")])
def test_an_empty_a_prepared_and_an_old_one_are_used(tmp_path: pathlib.Path, there: tuple[str, ...]) -> None:
    for name in there:
        (tmp_path / name).mkdir() if name != "lock" else (tmp_path / name).touch()
    held = DataDir(tmp_path).lock()
    assert {path.name for path in tmp_path.iterdir()} == {*there, "lock"}
    with pytest.raises(InUseError):
        DataDir(tmp_path).lock()
    os.close(held)


def test_a_missing_parent_is_a_mistake_except_below_the_default(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StartError, match=f"there is no folder {tmp_path}/mnt"):
        DataDir(tmp_path / "mnt" / "data").lock()
    if os.geteuid() != 0:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
        os.close(DataDir(tmp_path / "share" / "codehub").lock())
    assert not (tmp_path / "mnt").exists()


def test_a_new_data_directory_is_announced(data_dir: pathlib.Path) -> None:
    said = codehub("user", "add", "mina", CODEHUB_DATA_DIR=str(data_dir)).stderr
    assert "Made a new data directory" in said
    assert str(data_dir) in said
    assert "Made" not in codehub("user", "ls", CODEHUB_DATA_DIR=str(data_dir)).stderr
