"""Which way of keeping workspaces apart works here, found out by doing it. For `process` at a start, and `doctor`."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

import codehub
from codehub.runtimes import files, launch, sandbox
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.sandbox import Machine, SandboxSpec
from codehub.runtimes.shepherd.spec import BUBBLEWRAP, NAMESPACES, PLAIN, Spec
from codehub.system.privileges import needed_trees

PROBE_SECONDS = 15
# The courses that come with the package, with the answers to what they ask: their learners work in workspaces.
ANSWERS = pathlib.Path(codehub.__file__).parent / "courses" / "shipped"


@dataclass(frozen=True)
class Isolation:
    kind: str | None  # None: no way works, and nothing will be started
    reason: str
    program: str = ""  # bubblewrap's


def look(data_dir: pathlib.Path, run_dir: pathlib.Path) -> Machine:
    """What of this machine a workspace may see."""
    system: list[tuple[str, str | None]] = []
    for name in sandbox.SYSTEM:
        path = pathlib.Path(name)
        if path.is_symlink():
            system.append((name, str(path.readlink())))
        elif path.is_dir():
            system.append((name, None))
    etc = [name for name in sandbox.ETC if (pathlib.Path("/etc") / name).exists()]
    trees: dict[str, None] = {}  # in order, each once: as it is called, and as it really is
    for tree in needed_trees():
        trees[str(tree)] = trees[str(tree.resolve())] = None
    kept_back = [data_dir, run_dir, *(path for path in (ANSWERS,) if path.is_dir())]
    hidden = dict.fromkeys(str(path) for given in kept_back for path in (given, given.resolve()))
    venv, venv_files = _venv()
    return Machine(tuple(system), tuple(etc), tuple(trees), tuple(hidden), venv, venv_files)


def _venv() -> tuple[str, tuple[str, ...]]:
    """What the interpreter's environment is to say of itself inside, and in which files."""
    file = pathlib.Path(sys.prefix, sandbox.VENV_FILE)
    text = sandbox.with_user_site(files.text_of(str(file)))
    return text, tuple(dict.fromkeys((str(file), str(file.resolve())))) if text else ()


def find(config: RuntimeConfig, machine: Machine) -> Isolation:
    """The best that works, or the one that is insisted on. Blocks for a moment: two processes are started."""
    if config.isolation == PLAIN:
        return Isolation(PLAIN, "CODEHUB_ISOLATION=none: workspaces can reach each other")
    found = []
    if config.isolation in {"auto", NAMESPACES}:  # first: only there can terminals and files of /tmp be counted
        found.append(_namespaces(config, machine))
    if config.isolation in {"auto", BUBBLEWRAP} and not any(way.kind for way in found):
        found.append(_bubblewrap(config, machine))
    working = next((way for way in found if way.kind), None)
    return working or Isolation(None, "; ".join(way.reason for way in found))


def _bubblewrap(config: RuntimeConfig, machine: Machine) -> Isolation:
    program, setpriv = shutil.which("bwrap"), shutil.which("setpriv")
    if program is None:
        return Isolation(None, "bubblewrap is not installed")
    if setpriv is None:
        return Isolation(None, "setpriv (of util-linux) is not installed")
    with _probe_sandbox(config, machine) as box:
        options = sandbox.bubblewrap(program, sandbox.mounts(machine, box), box)
        command = [*options, *sandbox.drop_rights(setpriv, box.uid), *_what_to_try()]
        trouble = _try(command, b"")
    if trouble:
        return Isolation(None, f"bubblewrap does not work here: {trouble}")
    return Isolation(BUBBLEWRAP, "bubblewrap works", program)


def _namespaces(config: RuntimeConfig, machine: Machine) -> Isolation:
    with _probe_sandbox(config, machine) as box:
        spec = Spec(
            workspace_id=box.workspace_id,
            isolation=NAMESPACES,
            command=_what_to_try(),
            environment={},
            user=box.user,
            directory=box.inside_home,
            uid=box.uid,
            gid=box.uid,
            network=box.network,
            mounts=sandbox.mounts(machine, box),
            bubblewrap=[],
            home=box.home,
            lock="",
            record="",
            exit_file="",
            socket_dir="",
            socket_gid=None,
            log_dir="",
            log_max_bytes=0,
        )
        trouble = _try(launch.helper("namespaces"), spec.dumps())
    if trouble:
        return Isolation(None, f"namespaces cannot be made: {trouble}")
    return Isolation(NAMESPACES, "namespaces work")


def _what_to_try() -> list[str]:
    """The interpreter itself: most IDEs need it, and it is the thing that may lie where others cannot read."""
    return [sys.executable, "-I", "-S", "-c", "open('probe', 'w')"]


@contextlib.contextmanager
def _probe_sandbox(config: RuntimeConfig, machine: Machine) -> Iterator[SandboxSpec]:
    uid = config.uid_base if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="codehub-probe-") as name:
        folder = pathlib.Path(name)
        for part in ("home", "socket", "etc"):
            (folder / part).mkdir(mode=0o700)
        if uid is not None:
            os.chown(folder / "home", uid, uid)
        box = SandboxSpec("probe", "learner", uid, f"{name}/home", f"{name}/socket", f"{name}/etc")
        for file, text in sandbox.etc_files(machine, box, "127.0.0.1 localhost", 0, 0).items():
            (folder / "etc" / file).write_text(text)
        yield box


def _try(command: list[str], given: bytes) -> str:
    """An empty string, or what went wrong."""
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, env={}, timeout=PROBE_SECONDS, cwd="/", check=False
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return "" if done.returncode == 0 else said or f"exit code {done.returncode}"
