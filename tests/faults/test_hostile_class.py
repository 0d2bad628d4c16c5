"""Fifteen hostile workspaces and thousands of strangers at once: a sixteenth person works on and notices little.

On a disk of its own that is small enough to be filled, where root can make one; as an ordinary user the figures are
printed and only what must hold there is asked.
"""

import asyncio
import contextlib
import os
import pathlib
import resource
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.hostile_class import Attack, write_templates
from tests.places import a_place
from tests.platform import Platform, running

AS_ROOT = os.geteuid() == 0
DISK_BYTES = 6 << 30
LEAST_FREE = 64 << 20  # bytes that PostgreSQL must always be left with


@contextlib.contextmanager
def a_small_disk() -> Iterator[pathlib.Path]:
    """A file system that ends: a file with one in it, mounted."""
    with a_place(on_disk=True) as folder:
        disk = folder / "disk"
        disk.mkdir()
        if AS_ROOT:
            image = folder / "image"
            image.touch()
            os.truncate(image, DISK_BYTES)
            subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=1", str(image)], check=True)
            subprocess.run(["mount", "-o", "loop", str(image), str(disk)], check=True)
        try:
            disk.chmod(0o755)
            yield disk
        finally:
            if AS_ROOT:
                subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize(
    ("count", "seconds"), [(8, 6), pytest.param(15, 120, marks=pytest.mark.soak, id="two minutes")]
)
def test_a_sixteenth_person_works_on(count: int, seconds: float, capsys: pytest.CaptureFixture[str]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with a_small_disk() as disk:
        environment: dict[str, Any] = {
            "CODEHUB_TEMPLATES_DIR": str(write_templates(disk / "templates")),
            "CODEHUB_MAX_RUNNING_GLOBAL": "0",
        }
        with running(disk / "data", **environment) as platform:
            before = platform.children()
            report = asyncio.run(Attack(platform, count, seconds).run())
            with capsys.disabled():
                print(report)
            said = _log_of_postgres(platform)
            after = platform.children()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert before == after, "something of the platform was ended"
    assert not report.visits.failed
    assert not report.health.failed
    assert "No space left" not in said
    if seconds > 60 and AS_ROOT:
        assert report.visits.p99 <= 1000
        assert report.health.p99 <= 1000
        assert report.least_free >= LEAST_FREE


def _log_of_postgres(platform: Platform) -> str:
    logs = [*(platform.data_dir / "logs").glob("*postgres*"), *(platform.data_dir / "postgres").glob("**/*.log")]
    return platform.errors() + "".join(path.read_text(errors="replace") for path in logs)
