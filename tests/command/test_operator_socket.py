"""The operator's socket: who gets in there may do everything, so who gets in there is what matters."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from codehub.embedded.datadir import DataDir
from codehub.system.privileges import enter, needed_trees, service_account, view_for
from tests.command.running import found, said
from tests.places import a_place
from tests.platform import CODEHUB, Platform, clean_environment, running

# Whom the kernel may call by, beside us: as root there are others to be.
OTHERS = [("nobody", 65534), ("the service's own account", -1)] if os.geteuid() == 0 else []
ASK = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
try:
    s.connect(sys.argv[1])
    s.sendall(b"GET /api/v1/users HTTP/1.0\\r\\nHost: localhost\\r\\nCodehub-Operator: root\\r\\n\\r\\n")
    while piece := s.recv(65536): sys.stdout.write(piece.decode())
except OSError as e: print(type(e).__name__)
"""


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with a_place() as folder, running(folder / "data") as started:
        yield started


def ask(path: pathlib.Path, target: str = "/api/v1/users", **headers: str) -> tuple[int, Any]:
    """One request by this process, on a socket of the platform's."""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(30)
        door.connect(str(path))
        lines = [f"GET {target} HTTP/1.1", "Host: localhost", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        door.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head, _, body = b"".join(iter(lambda: door.recv(65536), b"")).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body) if body.startswith(b"{") else body


def sockets(platform: Platform) -> tuple[pathlib.Path, pathlib.Path]:
    data = DataDir(platform.data_dir)
    return data.operator_socket, data.api_socket


def last_actor(platform: Platform) -> str:
    status, page = ask(sockets(platform)[0], "/api/v1/admin/audit?limit=1")
    assert status == 200
    actor: str = page["items"][0]["actor"]
    return actor


def test_who_comes_there_is_the_operator_and_needs_no_login(platform: Platform) -> None:
    operators, front_doors = sockets(platform)
    assert ask(operators)[0] == 200
    assert ask(front_doors)[0] == 401


def test_only_the_account_that_runs_the_platform_may_enter_its_folder(platform: Platform) -> None:
    folder = sockets(platform)[0].parent.stat()
    assert (folder.st_mode & 0o777, folder.st_uid) == (0o700, os.geteuid())


@pytest.mark.parametrize(("who", "uid"), OTHERS, ids=lambda value: str(value).replace(" ", "-"))
def test_somebody_else_is_sent_away_by_the_folder_and_by_the_kernels_word(
    platform: Platform, who: str, uid: int
) -> None:
    """The front door runs as the service's own account: what tricked it would be sent away, too."""
    account = service_account(None)
    uid = account.uid if uid < 0 and account else uid
    path, _ = sockets(platform)
    with opened(path, modes=()):
        assert ask_as(uid, path) == "PermissionError\n"
    with opened(path, modes=((path.parent, 0o711), (path, 0o666))):
        assert ask_as(uid, path) in {"", "ConnectionResetError\n", "BrokenPipeError\n"}
    assert ask(path)[0] == 200


@contextlib.contextmanager
def opened(path: pathlib.Path, modes: tuple[tuple[pathlib.Path, int], ...]) -> Iterator[None]:
    for where, mode in modes:
        where.chmod(mode)
    try:
        yield
    finally:
        path.chmod(0o600)
        path.parent.chmod(0o700)


def ask_as(uid: int, path: pathlib.Path) -> str:
    python = "/usr/bin/python3" if pathlib.Path("/usr/bin/python3").exists() else sys.executable
    done = subprocess.run(
        [python, "-c", ASK, str(path)], user=uid, group=uid, cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


TRICKS: list[dict[str, str]] = [
    {"Codehub-Operator": "root"},
    {"Codehub-Operator": "root", "X-Codehub-Operator-Uid": "0", "Codehub.operator_uid": "0"},
    {"Authorization": "Bearer operator"},
    {"Authorization": "Operator root"},
    {"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1", "Forwarded": "for=unix:"},
    {"Cookie": "codehub.operator_uid=0; codehub-session=operator"},
]


@pytest.mark.parametrize("headers", TRICKS, ids="+".join)
async def test_nothing_that_a_stranger_sends_makes_them_the_operator(
    platform: Platform, headers: dict[str, str]
) -> None:
    async with platform.client(None) as stranger, stranger.get("/api/v1/users", headers=headers) as answer:
        assert answer.status == 401
    assert ask(sockets(platform)[1], **{name.replace("-", "_"): value for name, value in headers.items()})[0] == 401


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/users?operator_uid=0",
        "http://operator/api/v1/users",
        "http+unix://{quoted}/api/v1/users",
        "unix:{path}:/api/v1/users",
        "/../../operator/api.sock/api/v1/users",
        "//{path}/api/v1/users",
        "/w/..%2f..%2foperator%2fapi.sock/api/v1/users",
    ],
)
def test_no_address_that_a_stranger_asks_for_leads_there(platform: Platform, target: str) -> None:
    path = sockets(platform)[0]
    asked = target.format(path=path, quoted=quote(str(path), safe=""))
    host, port = platform.url.removeprefix("http://").split(":")
    for name in (host, "operator", str(path)):
        with socket.create_connection((host, int(port)), timeout=30) as door:
            door.sendall(f"GET {asked} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: door.recv(65536), b""))
        assert b'"items"' not in answer
        assert b" 200 " not in answer.partition(b"\r\n")[0]


def test_history_names_the_person_behind_the_command(platform: Platform) -> None:
    said(platform, "user", "add", "mina", SUDO_USER="kim")
    assert last_actor(platform) == ("cli:kim" if os.geteuid() == 0 else f"cli:{found_name()}")
    said(platform, "user", "deactivate", "mina")
    assert last_actor(platform) == f"cli:{found_name()}"


def found_name() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", ["two words", "x" * 65, "a\u202eb", "a\nb", ""], ids=ascii)
def test_a_name_that_is_none_is_replaced_by_the_accounts(platform: Platform, name: str) -> None:
    path = sockets(platform)[0]
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(str(path))
        body = json.dumps({"name": f"u{abs(hash(name)) % 10**9}"}).encode()
        head = f"POST /api/v1/users HTTP/1.1\r\nHost: localhost\r\nCodehub-Operator: {quote(name)}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        door.sendall(head.encode() + body)
        assert b" 201 " in door.makefile("rb").readline()
    assert last_actor(platform) == f"cli:{found_name()}"


def test_what_the_operator_follows_stays_open_as_long_as_it_is_read(platform: Platform) -> None:
    """Others' streams end with their login; this one has none that could end."""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(30)
        door.connect(str(sockets(platform)[0]))
        door.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        file = door.makefile("rb")
        assert b" 200 " in file.readline()
        said(platform, "user", "add", "jun")
        said(platform, "user", "deactivate", "jun")  # which makes every process look who may still listen
        assert found(platform, "user", "ls")["items"]
        door.settimeout(0.5)
        with pytest.raises(TimeoutError):
            while file.readline():
                pass


def test_who_may_not_use_the_socket_is_told_what_to_do(platform: Platform) -> None:
    """Another account, where we are root; where we are not, a folder that is closed to us."""
    account, parent = service_account(None), os.getpid()
    view = view_for(account, [*needed_trees(), pathlib.Path(__file__).parents[2]])
    folder = sockets(platform)[0].parent
    folder.chmod(0o700 if account else 0)
    try:
        done = subprocess.run(
            [*CODEHUB, "user", "ls"],
            env=clean_environment(CODEHUB_DATA_DIR=str(platform.data_dir)),
            preexec_fn=lambda: enter(account, view, parent, signal.SIGKILL),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        folder.chmod(0o700)
    assert (done.returncode, done.stdout) == (1, "")
    assert "run this as the user that runs CodeHub, or with sudo" in done.stderr
