"""A home, and stores of both kinds: files, and a real S3 server."""

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from codehub.archives.objects import Limits, ObjectStore, open_store
from tests.archives import s3, trees

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
# A test does not wait two minutes for a server that has gone.
IMPATIENT = Limits(connect=1, request=3, retry=1, retries=1, abort=1)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="codehub-archives-"))
    yield made
    # Also what is closed to its owner, or deeper than a path can be long.
    subprocess.run(["chmod", "-R", "u+rwX", str(made)], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(made)


@pytest.fixture
def home(folder: Path) -> Path:
    """One of everything that a home can hold."""
    trees.grow(folder / "home", trees.rich(with_xattrs=trees.has_xattrs(folder)))
    return folder / "home"


@functools.cache
def _noise() -> bytes:
    return os.urandom(40 * 1024 * 1024)


@pytest.fixture
def large_home(folder: Path) -> Path:
    """More than fits into one part of an upload, however it is compressed."""
    (folder / "home").mkdir()
    (folder / "home" / "noise").write_bytes(_noise())
    return folder / "home"


@pytest.fixture
def staging(folder: Path) -> Path:
    (folder / "staging").mkdir()
    return folder / "staging"


def point_at(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def s3_url(s3_server: s3.S3Server, monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    point_at(monkeypatch, s3_server.environment())
    return f"s3://{s3.BUCKET}/tests/{folder.name}"


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, folder: Path) -> ObjectStore:
    if request.param == "s3":
        return open_store(request.getfixturevalue("s3_url"))
    return open_store(f"file://{folder}/objects")


def workers_on(path: Path) -> list[str]:
    """Processes that have this path in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(path) in command:
                found.append(entry.name)
    return found
