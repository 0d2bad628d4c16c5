"""`codehub doctor` in real trouble: it names it, says what to do, never hangs, and tells no secrets."""

import asyncio
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
from typer.testing import CliRunner

from codehub import invocation
from codehub.command import output
from codehub.db import Database
from codehub.doctor.cli import doctor
from codehub.doctor.service import BOUND_SECONDS
from tests.archives import s3
from tests.platform import CODEHUB, clean_environment, codehub, running

Check = dict[str, str]
SECRET = "hunter2hunter2"
COMMAND = typer.Typer()
COMMAND.command()(output.with_json(doctor))


def examine(
    data_dir: pathlib.Path, *, apart: bool = False, user: int | None = None, **env: str
) -> tuple[int, dict[str, Check], str]:
    """Exit code, findings by name, and everything it printed.

    In this process, where it can be: starting Python takes longer than most examinations. `apart` runs it as a program,
    which may leave behind what hangs; `user` as somebody else's.
    """
    environment = clean_environment(CODEHUB_DATA_DIR=str(data_dir), **env)
    code, output, errors = _run(environment, user) if apart or user is not None else _call(environment)
    assert "Traceback" not in errors, errors
    report: dict[str, Any] = json.loads(output)
    findings = {check["name"]: check for check in report["checks"]}
    failed = any(check["level"] == "fail" for check in findings.values())
    assert code == (1 if failed else 0)
    assert report["ok"] is not failed
    for check in findings.values():
        assert check["level"] == "ok" or check["advice"], check
    return code, findings, output + errors


def _call(environment: dict[str, str]) -> tuple[int, str, str]:
    forgotten = dict.fromkeys(os.environ)
    result = CliRunner().invoke(COMMAND, ["--json"], env={**forgotten, **environment})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def _run(environment: dict[str, str], user: int | None) -> tuple[int, str, str]:
    result = subprocess.run(
        [*CODEHUB, "doctor", "--json"],
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        user=user,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return result.returncode, result.stdout, result.stderr


def tree(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.rglob("*"))


def test_on_a_good_machine_nothing_fails_and_nothing_is_made(data_dir: pathlib.Path) -> None:
    code, findings, _ = examine(data_dir, apart=True)
    assert code == 0, findings
    assert list(findings) == [
        *("settings", "python", "service account", "data directory", "disk space", "port", "database", "redis"),
        *(
            "background work",
            "object store",
            "isolation",
            "network",
            "templates",
            "bubblewrap",
            "user namespaces",
            "shares",
        ),
        *("system calls", "kernel tables", "control groups"),
    ]
    assert "embedded PostgreSQL 18" in findings["database"]["detail"]
    assert tree(data_dir.parent) == []


def test_a_person_gets_a_table(data_dir: pathlib.Path) -> None:
    result = codehub("doctor", CODEHUB_DATA_DIR=str(data_dir), CODEHUB_PORT="eighty", COLUMNS="200")
    assert result.returncode == 1
    assert "✗ fail" in result.stdout
    assert "CODEHUB_PORT='eighty': must be a whole number" in result.stdout
    assert "→ Correct it" in result.stdout
    assert "1 of 19 checks failed." in result.stdout


def test_wrong_settings_are_all_named_and_the_other_checks_still_run(data_dir: pathlib.Path) -> None:
    _, findings, output = examine(
        data_dir, CODEHUB_PORT="eighty", CODEHUB_LOG_LEVEL="loud", CODEHUB_SECRET_KEY="short-secret"
    )
    assert findings["settings"]["level"] == "fail"
    for name in ("CODEHUB_PORT", "CODEHUB_LOG_LEVEL", "CODEHUB_SECRET_KEY"):
        assert name in findings["settings"]["detail"]
    assert findings["database"]["level"] == "ok"
    assert str(data_dir) in findings["data directory"]["detail"]
    assert "short-secret" not in output


def test_a_broken_settings_file_is_named(data_dir: pathlib.Path) -> None:
    file = data_dir.parent / "codehub.toml"
    for content, complaint in (("CODEHUB_PORT = ", "not valid TOML"), ("CODEHUB_PORT = 99999", "between 0 and 65535")):
        file.write_text(content)
        _, findings, _ = examine(data_dir, CODEHUB_SETTINGS=str(file), CODEHUB_PORT="")
        assert findings["settings"]["level"] == "fail"
        assert complaint in findings["settings"]["detail"]


def test_a_misspelt_setting_is_a_warning_with_the_right_name(data_dir: pathlib.Path) -> None:
    _, findings, _ = examine(data_dir, CODEHUB_HOTS="0.0.0.0")
    assert findings["settings"]["level"] == "warn"
    assert "did you mean CODEHUB_HOST?" in findings["settings"]["detail"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (f"postgresql://codehub:{SECRET}@127.0.0.1:1/codehub", "no server answers at 127.0.0.1:1"),
        (f"postgresql://codehub:{SECRET}@no-such-host.invalid/codehub", "at no-such-host.invalid"),
        (f"postgresql://codehub:a/{SECRET}@127.0.0.1/codehub", "not a valid URL"),
        (f"postgresql://codehub@127.0.0.1:{SECRET}/codehub", "not a valid URL"),
        ("mysql://codehub@127.0.0.1/codehub", "must be a URL beginning with postgresql://"),
    ],
)
def test_a_wrong_database_url_is_named_without_its_secrets(data_dir: pathlib.Path, url: str, reason: str) -> None:
    code, findings, output = examine(data_dir, CODEHUB_DATABASE_URL=url)
    assert code == 1
    check = findings["database" if reason.startswith(("no server", "at ")) else "settings"]
    assert check["level"] == "fail"
    assert "CODEHUB_DATABASE_URL" in check["detail"]
    assert reason in check["detail"]
    assert SECRET not in output


def test_a_database_with_wrong_password_or_name_is_told_apart(data_dir: pathlib.Path, database_url: str) -> None:
    password = urlsplit(database_url).password or ""
    _, findings, _ = examine(data_dir, CODEHUB_DATABASE_URL=database_url.replace(password, SECRET))
    assert "user or password are refused" in findings["database"]["detail"]
    missing = database_url.replace("/test_", "/missing_")
    _, findings, output = examine(data_dir, CODEHUB_DATABASE_URL=missing)
    assert "there is no such database" in findings["database"]["detail"]
    assert password not in output


def test_given_servers_are_asked(data_dir: pathlib.Path, database_url: str, redis_url: str, servers: Any) -> None:
    _, findings, output = examine(data_dir, CODEHUB_DATABASE_URL=database_url, CODEHUB_REDIS_URL=redis_url)
    assert findings["database"]["detail"].endswith("up to date")
    assert findings["redis"]["detail"].startswith("Valkey")
    assert "***" not in output
    unused = servers.database("postgres")
    _, findings, _ = examine(data_dir, CODEHUB_DATABASE_URL=unused, CODEHUB_REDIS_URL="redis://:x@127.0.0.1:1")
    assert findings["database"]["level"] == "fail"
    assert findings["database"]["advice"] == f"Run: {invocation.command('migrate')}"
    assert "no server answers at 127.0.0.1:1" in findings["redis"]["detail"]


async def test_work_that_was_set_aside_is_shown_with_its_reason(
    data_dir: pathlib.Path, database: Database, database_url: str
) -> None:
    url = database_url
    _, findings, _ = await asyncio.to_thread(examine, data_dir, CODEHUB_DATABASE_URL=url)
    assert findings["background work"]["detail"] == "nothing is set aside"
    async with database.connection() as c:
        await c.execute("INSERT INTO setbacks VALUES ('workspace', 'w1', 3, 'no such record', now(), now())")
    _, findings, _ = await asyncio.to_thread(examine, data_dir, CODEHUB_DATABASE_URL=url)
    assert findings["background work"]["level"] == "warn"
    assert "workspace w1: no such record (3 times since " in findings["background work"]["detail"]


def test_a_port_taken_by_another_program_is_named(data_dir: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, findings, _ = examine(data_dir, CODEHUB_PORT=str(port))
    assert code == 1
    assert findings["port"]["level"] == "fail"
    assert findings["port"]["detail"] == f"127.0.0.1:{port} is taken by another program"


def test_an_address_of_another_machine_is_named(data_dir: pathlib.Path) -> None:
    _, findings, _ = examine(data_dir, CODEHUB_HOST="192.0.2.1", CODEHUB_PORT="8123")
    assert findings["port"]["level"] == "fail"
    assert "192.0.2.1" in findings["port"]["detail"]
    _, findings, _ = examine(data_dir, CODEHUB_HOST="no-such-host.invalid", CODEHUB_PORT="8123")
    assert "CODEHUB_HOST=no-such-host.invalid" in findings["port"]["detail"]


def test_our_own_running_platform_is_no_trouble(data_dir: pathlib.Path) -> None:
    with running(data_dir) as platform:
        port = platform.url.rsplit(":", 1)[1]
        before = platform.children()
        code, findings, _ = examine(data_dir, CODEHUB_PORT=port)
        assert code == 0, findings
        assert platform.process
        assert findings["port"]["detail"].endswith(f"(process {platform.process.pid})")
        assert findings["database"]["detail"].endswith("up to date")
        assert platform.children() == before
        _, findings, _ = examine(data_dir.parent / "other", CODEHUB_PORT=port)
        assert findings["port"]["level"] == "warn"
        assert "another CodeHub" in findings["port"]["detail"]
    _, findings, _ = examine(data_dir, CODEHUB_PORT=port)
    assert findings["port"]["level"] == "ok"
    assert findings["database"]["detail"].endswith("not running now")


@pytest.fixture
def unwritable(data_dir: pathlib.Path) -> Iterator[tuple[pathlib.Path, int | None]]:
    """A folder, and somebody who may not write in it: as root that is `nobody`, otherwise we ourselves."""
    data_dir.mkdir(mode=0o555)
    yield data_dir, pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    data_dir.chmod(0o755)


def test_a_data_directory_without_write_permission_is_named(unwritable: tuple[pathlib.Path, int | None]) -> None:
    folder, user = unwritable
    code, findings, _ = examine(folder, user=user)
    assert code == 1
    assert findings["data directory"]["level"] == "fail"
    assert f"cannot write in {folder}: Permission denied" in findings["data directory"]["detail"]
    assert "CODEHUB_DATA_DIR" in findings["data directory"]["advice"]
    assert findings["object store"]["level"] == "fail"
    _, findings, _ = examine(folder / "below", user=user)
    assert f"cannot write in {folder}: Permission denied" in findings["data directory"]["detail"]


def test_a_data_directory_that_is_a_file_is_named(data_dir: pathlib.Path) -> None:
    data_dir.write_text("")
    _, findings, _ = examine(data_dir)
    assert findings["data directory"]["detail"] == f"{data_dir} is not a folder"


@contextlib.contextmanager
def tiny_disk(folder: pathlib.Path) -> Iterator[list[str]]:
    """A file system of 1 MiB on the folder, and how to run a command that sees it.

    Root mounts it; everybody else in a namespace of their own, where they are root for the length of the command.
    """
    folder.mkdir()
    if os.geteuid() != 0:
        mount = f'mount -t tmpfs -o size=1m tmpfs "{folder}" && exec "$@"'
        yield ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
    try:
        yield []
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_nearly_full_is_named(data_dir: pathlib.Path) -> None:
    with tiny_disk(data_dir) as prefix:
        result = subprocess.run(
            [*prefix, *CODEHUB, "doctor", "--json"],
            env=clean_environment(CODEHUB_DATA_DIR=str(data_dir)),
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 1, result.stderr
    check = next(c for c in json.loads(result.stdout)["checks"] if c["name"] == "disk space")
    assert check["level"] == "fail"
    assert check["detail"] == f"nearly full: 1 MiB of 1 MiB free for {data_dir}"
    assert "Make room" in check["advice"]


def test_an_object_store_is_tried_and_left_as_it_was(data_dir: pathlib.Path) -> None:
    store = data_dir.parent / "store"
    store.mkdir()
    _, findings, _ = examine(data_dir, CODEHUB_ARCHIVE_URL=f"file://{store}")
    assert findings["object store"]["detail"] == f"{store} can be written"
    assert tree(store) == []
    (data_dir.parent / "flat").write_text("")
    _, findings, _ = examine(data_dir, CODEHUB_ARCHIVE_URL=f"file://{data_dir.parent}/flat/store")
    assert findings["object store"]["level"] == "fail"


def test_an_object_store_that_does_not_answer_is_named_without_its_secrets(data_dir: pathlib.Path) -> None:
    with silent_server() as silent:
        _, findings, output = examine(
            data_dir,
            apart=True,
            CODEHUB_ARCHIVE_URL="s3://lab/archives",
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{silent.getsockname()[1]}",
            AWS_ACCESS_KEY_ID="access",
            AWS_SECRET_ACCESS_KEY=SECRET,
            AWS_REGION="here",
        )
    assert findings["object store"]["level"] == "fail"
    assert "s3://lab/archives" in findings["object store"]["detail"]
    assert SECRET not in output


def test_an_object_store_is_asked_for_all_that_archives_need(data_dir: pathlib.Path, s3_server: s3.S3Server) -> None:
    where = f"s3://{s3.BUCKET}/doctor/{data_dir.name}"
    env: Any = s3_server.environment()
    _, findings, _ = examine(data_dir, apart=True, CODEHUB_ARCHIVE_URL=where, **env)
    assert findings["object store"]["level"] == "ok", findings["object store"]
    wrong: Any = s3_server.environment(secret=SECRET)
    _, findings, output = examine(data_dir, apart=True, CODEHUB_ARCHIVE_URL=where, **wrong)
    assert findings["object store"]["level"] == "fail"
    assert SECRET not in output


def silent_server() -> socket.socket:
    """The kernel takes connections for it; nobody ever answers."""
    return socket.create_server(("127.0.0.1", 0))


def test_servers_that_accept_and_stay_silent_do_not_hold_it_up(data_dir: pathlib.Path) -> None:
    with silent_server() as silent:
        port = silent.getsockname()[1]
        begun = time.monotonic()
        _, findings, _ = examine(
            data_dir,
            apart=True,
            CODEHUB_PORT=str(port),
            CODEHUB_DATABASE_URL=f"postgresql://codehub@127.0.0.1:{port}/codehub",
            CODEHUB_REDIS_URL=f"redis://127.0.0.1:{port}",
        )
        took = time.monotonic() - begun
    assert {findings[name]["level"] for name in ("port", "database", "redis")} == {"fail"}
    assert "no answer" in findings["database"]["detail"]
    assert took < BOUND_SECONDS + 20  # of which some are Python's own start on a busy machine


def test_an_account_that_does_not_exist_matters_to_root_alone(data_dir: pathlib.Path) -> None:
    _, findings, _ = examine(data_dir, CODEHUB_USER="no-such-account")
    if os.geteuid() == 0:
        assert findings["service account"]["level"] == "fail"
        assert "CODEHUB_USER=no-such-account" in findings["service account"]["detail"]
    else:
        assert findings["service account"]["level"] == "ok"


def test_an_account_that_is_everybodys_is_warned_of(data_dir: pathlib.Path) -> None:
    _, findings, _ = examine(data_dir, CODEHUB_USER="nobody")
    if os.geteuid() == 0:
        assert findings["service account"]["level"] == "warn"
        assert "useradd --system" in findings["service account"]["advice"]
    else:
        assert findings["service account"]["level"] == "ok"  # only root has an account to give


def test_a_disk_that_hangs_does_not_hold_it_up() -> None:
    """A pipe that nobody writes to stands for it: whoever opens it waits for ever."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-"))
    try:
        (folder / "postgres").mkdir()
        os.mkfifo(folder / "postgres" / "PG_VERSION")
        begun = time.monotonic()
        _, findings, _ = examine(folder, apart=True)
        assert findings["database"]["level"] == "fail"
        assert "no answer within 6 s" in findings["database"]["detail"]
        assert time.monotonic() - begun < BOUND_SECONDS + 20
    finally:
        shutil.rmtree(folder)


def test_ctrl_c_ends_it_without_a_traceback(data_dir: pathlib.Path) -> None:
    with silent_server() as silent:
        port = silent.getsockname()[1]
        process = subprocess.Popen(
            [*CODEHUB, "doctor"],
            env=clean_environment(
                CODEHUB_DATA_DIR=str(data_dir), CODEHUB_DATABASE_URL=f"postgresql://codehub@127.0.0.1:{port}/codehub"
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        asked, _ = silent.accept()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        asked.close()
    assert "Traceback" not in errors
    assert process.returncode in (130, 1)  # 1: it came while the command line itself was still at work
