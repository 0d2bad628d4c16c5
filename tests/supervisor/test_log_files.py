"""Logs stay bounded while several processes write to them, and no line is lost on the way."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import textwrap
from itertools import pairwise

from codehub.supervisor import log_files

WRITER = """
    import sys, pathlib
    from codehub import logs
    from codehub.settings import LogConfig
    logs.use_file(pathlib.Path(sys.argv[1]), quiet=True)
    logs.configure(LogConfig(), sys.argv[2])
    for number in range(3000):
        logs.get().info("Line", number=number)
"""


def written_to(*paths: pathlib.Path) -> list[tuple[str, int]]:
    text = "".join(path.read_text() for path in paths)
    return [(line["role"], line["number"]) for line in map(json.loads, text.splitlines())]


def test_no_line_is_lost_when_a_log_is_shortened_under_its_writers(tmp_path: pathlib.Path) -> None:
    path, kept = tmp_path / "codehub.log", tmp_path / "kept"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    writers = [subprocess.Popen([*command, role], stderr=subprocess.DEVNULL) for role in ("api", "proxy")]
    found: list[tuple[str, int]] = []
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            log_files.shorten(path, 10_000)
        if (copy := path.with_suffix(".log.1")).exists():
            copy.replace(kept)
            found += written_to(kept)
    found += written_to(path)
    assert sorted(found) == sorted((role, number) for role in ("api", "proxy") for number in range(3000))
    for role in ("api", "proxy"):
        assert all(a < b for a, b in pairwise(number for whose, number in found if whose == role))


def test_what_is_too_long_becomes_the_older_one_and_is_read_by_nobody_else(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "postgres.log"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, b"x" * 100)
    log_files.shorten(path, 100)
    assert not path.with_suffix(".log.1").exists()
    os.write(fd, b"y")
    log_files.shorten(path, 100)
    os.write(fd, b"z")
    os.close(fd)
    assert path.read_bytes() == b"z"
    older = path.with_suffix(".log.1")
    assert older.read_bytes() == b"x" * 100 + b"y"
    assert stat.S_IMODE(older.stat().st_mode) == 0o600
