"""Runs every mutant against the rules' tables, the model and tests on servers until something notices it.

`make model ARGS=mutants`.

Each runs in a process of its own, with the changed text in place of the module's. A mutant that nothing notices has to
be in `survivors.toml`, with why it changes nothing that matters; one that is listed there and noticed is wrong, too.
"""

import collections
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import pathlib
import pickle
import subprocess
import sys
import time
import tomllib
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

from model import mutations
from model.mutations import Mutant

HERE = pathlib.Path(__file__).parent
TABLES = ["tests/workspaces/test_rules.py"]
# What the model leaves out (an IDE that dies, a recheck, the bytes themselves) has tests on real servers.
ON_SERVERS = {
    "codehub.reconciler": ["tests/reconciler", "tests/coordinator/test_late_leaders.py"],
    "codehub.archives": ["tests/archives/test_service.py", "tests/archives/test_crashes.py"],
}
# Small first: most mutants do not get far.
BOUNDS = ((0, 2), (1, 1), (2, 0), (1, 2), (2, 1))
LONGEST_SECONDS = 900.0


class Verdict(NamedTuple):
    mutant: str
    killer: str | None  # None: it lives
    seconds: float


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from other text."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_loader(name, self, origin="mutant")

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._mutant.source, f"<{self._mutant.name}>", "exec"), module.__dict__)  # noqa: S102


def survivors() -> dict[str, str]:
    """Name → why it is no mistake that it lives."""
    text = (HERE / "survivors.toml").read_text(encoding="utf-8")
    return {entry["mutant"]: entry["why"] for entry in tomllib.loads(text).get("survivor", [])}


def run(wanted: str = "", workers: int = 2) -> list[Verdict]:
    """All whose name contains `wanted`, a few at a time."""
    waiting = [mutant for mutant in mutations.every() if wanted in mutant.name]
    running: list[tuple[subprocess.Popen[bytes], Mutant, float]] = []
    done: list[Verdict] = []
    while waiting or running:
        while waiting and len(running) < workers:
            mutant = waiting.pop(0)
            running.append((start(mutant), mutant, time.monotonic()))
        time.sleep(0.05)
        for entry in [e for e in running if e[0].poll() is not None or _is_late(e[2])]:
            running.remove(entry)
            child, mutant, since = entry
            killer = end(child, late=child.poll() is None)
            done.append(Verdict(mutant.name, killer, time.monotonic() - since))
            print(f"{len(done):4} {killer or 'LIVES':<60.60} {mutant.name}", flush=True)
    return done


def _is_late(since: float) -> bool:
    return time.monotonic() - since > LONGEST_SECONDS


def start(mutant: Mutant) -> "subprocess.Popen[bytes]":
    """In an interpreter of its own: what was imported before would go on as it was."""
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        [sys.executable, "-m", "model.mutants"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    )
    assert child.stdin
    child.stdin.write(pickle.dumps(tuple(mutant)))
    child.stdin.close()
    return child


def end(child: "subprocess.Popen[bytes]", *, late: bool = False) -> str | None:
    """Who noticed it."""
    if late:
        child.kill()
    assert child.stdout
    with child.stdout:
        said = child.stdout.read()
    child.wait()
    if late or not said:
        return "it does not come to an end"
    killer: str | None = pickle.loads(said)  # noqa: S301 (our own child's)
    return killer


def _hunt(mutant: Mutant) -> str | None:
    """Who notices? Nothing of the product may have been imported before."""
    assert mutant.module not in sys.modules
    sys.meta_path.insert(0, Changed(mutant))
    if mutant.module == mutations.RULES and _notice(TABLES, "--noconftest"):
        return "tables"
    from model import doubles, scenarios  # noqa: PLC0415 (with the mutant in place)
    from model.explore import Bounds, Explorer  # noqa: PLC0415

    with doubles.driven():
        for bounds in BOUNDS:
            found = Explorer(Bounds(*bounds)).run(scenarios.beginnings())
            if found:
                return f"model: {found.problem}"
    tests = ON_SERVERS.get(mutant.module.rpartition(".")[0])
    return "tests" if tests and _notice(tests, "-m", "not soak") else None


def _notice(tests: list[str], *more: str) -> bool:
    import pytest  # noqa: PLC0415 (only here)

    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        return pytest.main(["-x", "-q", "-o", "addopts=", "-p", "no:cacheprovider", *more, *tests]) != 0


def report(done: list[Verdict], *, whole: bool) -> int:
    """Prints the figures; 1 when a survivor has no explanation, or an explanation no survivor."""
    known = survivors()
    living = {verdict.mutant for verdict in done if verdict.killer is None}
    by = collections.Counter((verdict.killer or "").partition(":")[0] for verdict in done)
    by_model = len(done) - len(living) - by["tables"] - by["tests"]
    print(f"{len(done)} mutants: {by['tables']} noticed by the tables, {by_model} by the model, {by['tests']} by tests")
    print(f"on real servers, {len(living)} live, {len(living & set(known))} of them explained")
    for name in sorted(living - set(known)):
        print(f"NOT EXPLAINED: {name}")
    wrong = sorted(set(known) - living) if whole else []
    for name in wrong:
        print(f"EXPLAINED, BUT IT DOES NOT LIVE: {name}")
    return 1 if living - set(known) or wrong else 0


def main() -> None:
    """A child: the mutant comes on standard input, who noticed it goes to standard output."""
    mutant = Mutant(*pickle.loads(sys.stdin.buffer.read()))  # noqa: S301 (our own parent's)
    try:
        killer: str | None = _hunt(mutant)
    except BaseException:  # noqa: BLE001 (whatever it does, it is noticed)
        killer = f"it breaks: {traceback.format_exc(limit=0).strip()}"
    sys.stdout.buffer.write(pickle.dumps(killer))


if __name__ == "__main__":
    main()
