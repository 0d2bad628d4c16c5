"""The real `codehub serve` as a subprocess, with a client: what a person's machine runs."""

import asyncio
import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, ClassVar

import aiohttp

from codehub.runtimes import records
from codehub.runtimes.layout import Layout
from tests.servers import copy_seed

CODEHUB = (sys.executable, "-m", "codehub")
ADMIN_TOKEN = "an-admin-token-for-tests"
START_SECONDS = 90.0


def clean_environment(**more: str) -> dict[str, str]:
    """What the shell would have: nothing of ours from outside gets in."""
    ours = ("CODEHUB_", "COORDINATOR_", "PYTEST", "PROMETHEUS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "CODEHUB_ADMIN_TOKEN": ADMIN_TOKEN, "CODEHUB_PORT": "0", **more}


def codehub(*arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    command, environment = [*CODEHUB, *arguments], clean_environment(**env)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)


class Platform:
    """One `codehub serve` on a data directory.

    Unless the very first start is what matters, a new directory begins as a copy of the seed: a database cluster that
    is set up and migrated, and nothing in it.
    """

    seed: ClassVar[pathlib.Path | None] = None  # of this test run
    before: Callable[[], None] | None = None  # called in its first process, before anything else
    on_a_terminal = False  # as when a person starts it

    def __init__(self, data_dir: pathlib.Path, *, first_start: bool = False, **env: str) -> None:
        self.data_dir = data_dir
        self._seeded = not first_start and "CODEHUB_DATABASE_URL" not in env
        self._env = clean_environment(CODEHUB_DATA_DIR=str(data_dir), **env)
        self._output = data_dir.parent / f"{data_dir.name}.out"
        self._errors = data_dir.parent / f"{data_dir.name}.err"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> "Platform":
        """Start and wait until it says that it is ready."""
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        while not (found := re.search(r"CodeHub is ready: (\S+)[\s\S]*Stop with", self.output())):
            assert self.process
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.errors()}"
            assert time.monotonic() < deadline, f"not ready in time:\n{self.errors()}"
            time.sleep(0.05)
        self.url = found[1]
        return self

    def prepare(self) -> None:
        if self._seeded and self.seed and not self.data_dir.exists():
            copy_seed(self.seed, self.data_dir)

    def launch(self) -> None:
        self.prepare()
        with self._output_of_its_own() as out, self._errors.open("ab") as errors:
            err = out if self.on_a_terminal else errors.fileno()
            # A session of its own, so that the whole tree can be found and nothing else is hit.
            self.process = subprocess.Popen(
                [*CODEHUB, "serve"],
                env=self._env,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=self.before,  # noqa: PLW1509 (there is one thread)
            )

    @contextlib.contextmanager
    def _output_of_its_own(self) -> Iterator[int]:
        """A file, or a terminal whose words are copied into it."""
        with self._output.open("wb", buffering=0) as file:
            if not self.on_a_terminal:
                yield file.fileno()
                return
            ours, theirs = pty.openpty()
            threading.Thread(target=_copy, args=(ours, os.dup(file.fileno())), daemon=True).start()
            yield theirs
            os.close(theirs)

    def output(self) -> str:
        return self._output.read_text() if self._output.exists() else ""

    def errors(self) -> str:
        return self._errors.read_text() if self._errors.exists() else ""

    def login_link(self) -> str:
        """As somebody gets one in another terminal."""
        made = codehub("user", "login-link", "admin", CODEHUB_DATA_DIR=str(self.data_dir))
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def printed_link(self) -> str | None:
        found = re.search(r"http\S+/login/\S+", self.output())
        return found[0] if found else None

    def children(self) -> dict[str, int]:
        """Name → pid of the supervisor's children, as it noted them."""
        noted = json.loads((self.data_dir / "run" / "children.json").read_text())
        return {name: identity["pid"] for name, (identity, _) in noted.items()}

    def stop(self) -> int:
        """As Ctrl-C or systemd would; returns the exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.process = None
        return code

    def end_workspaces(self) -> None:
        """They outlive the platform, and would outlive its directory. For the end of a test, whatever became of it."""
        layout = Layout(self.data_dir)
        for workspace in [found for id_ in records.read_all(layout) if (found := records.read(layout.of(id_)))]:
            workspace.first.signal(signal.SIGKILL)
            while workspace.alive or workspace.shepherd.alive():  # it still writes down how that went
                time.sleep(0.01)

    def kill_tree(self) -> None:
        """kill -9 of the supervisor and everything below it, all at once as far as that is possible."""
        assert self.process
        tree = descendants(self.process.pid)
        for pid in [self.process.pid, *tree]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)
        self.process = None

    @contextlib.asynccontextmanager
    async def client(
        self, token: str | None = ADMIN_TOKEN, *, seconds: float = 30
    ) -> AsyncIterator[aiohttp.ClientSession]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = aiohttp.ClientTimeout(total=seconds)
        jar = aiohttp.CookieJar(unsafe=True)  # cookies for an address without a name
        async with aiohttp.ClientSession(self.url, headers=headers, timeout=timeout, cookie_jar=jar) as session:
            yield session

    async def wait_for(self, path: str, status: int, seconds: float = 30) -> dict[str, Any]:
        """Ask until the answer has this status; a refused or broken connection is no answer."""
        async with asyncio.timeout(seconds), self.client() as client:
            while True:
                with contextlib.suppress(aiohttp.ClientError, ConnectionError):
                    async with client.get(path) as answer:
                        if answer.status == status:
                            body: dict[str, Any] = await answer.json()
                            return body
                await asyncio.sleep(0.05)


def _copy(terminal: int, into: int) -> None:
    """Until the last who has the other side is gone."""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 65536):
            os.write(into, piece)
    os.close(terminal)
    os.close(into)


def descendants(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat[stat.rindex(")") + 2 :].split()[1])
    found, frontier = [], {pid}
    while frontier:
        frontier = {child for child, parent in parents.items() if parent in frontier}
        found += sorted(frontier)
    return found


@contextlib.contextmanager
def running(data_dir: pathlib.Path, *, first_start: bool = False, **env: str) -> Iterator[Platform]:
    platform = Platform(data_dir, first_start=first_start, **env)
    try:
        yield platform.start()
    finally:
        platform.stop()
        platform.end_workspaces()
