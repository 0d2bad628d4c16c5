"""The chart, rendered by helm."""

import functools
import json
import pathlib
import subprocess
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/codehub"
Objects = list[dict[str, Any]]


@functools.cache
def binary() -> str:
    found = subprocess.run([ROOT / "scripts/find-helm"], check=True, stdout=subprocess.PIPE, text=True)
    return found.stdout.strip()


def helm(*words: str, values: dict[str, Any] | None = None) -> "subprocess.CompletedProcess[str]":
    given = ["--values", "-"] if values is not None else []
    said = json.dumps(values or {})
    return subprocess.run([binary(), *words, *given], input=said, capture_output=True, text=True, check=False)


def render(values: dict[str, Any] | None = None, *, version: str = "1.34", namespace: str = "codehub") -> Objects:
    words = ("template", "codehub", str(CHART), "--namespace", namespace, "--kube-version", version)
    done = helm(*words, values=values)
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


def of_kind(objects: Objects, kind: str) -> dict[str, dict[str, Any]]:
    return {found["metadata"]["name"]: found for found in objects if found["kind"] == kind}
