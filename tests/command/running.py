"""Commands as a person types them beside a running platform: they are told its data directory, and nothing else."""

import json
import pathlib
import subprocess
from typing import Any

from tests.platform import CODEHUB, Platform, clean_environment


def run(
    platform: Platform, *words: str, folder: pathlib.Path | None = None, **env: str
) -> "subprocess.CompletedProcess[str]":
    """To its end; in `folder`, if that matters."""
    environment = clean_environment(CODEHUB_DATA_DIR=str(platform.data_dir), **env)
    return subprocess.run(
        [*CODEHUB, *words], env=environment, cwd=folder, capture_output=True, text=True, timeout=90, check=False
    )


def said(platform: Platform, *words: str, **env: str) -> str:
    """What it printed, once it went well."""
    done = run(platform, *words, folder=None, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def found(platform: Platform, *words: str) -> Any:
    return json.loads(said(platform, *words, "--json"))


def refused(platform: Platform, *words: str) -> str:
    done = run(platform, *words)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    return done.stderr.strip()


def in_a_shell(platform: Platform, line: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
    """`codehub` stands for the command."""
    environment = clean_environment(CODEHUB_DATA_DIR=str(platform.data_dir), **env)
    script = f'codehub() {{ {" ".join(CODEHUB)} "$@"; }}; set -o pipefail; {line}'
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, timeout=90, check=False)
