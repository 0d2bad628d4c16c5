"""Puts an IDE below the data directory, where templates find it: for `codehub ide install`, and for the loop of `ides`.

It is built aside, by `ide_build`, under a user that owns nothing else: what is fetched is other people's code. One
rename makes it visible, whole. Workspaces that run an older one keep it until they stop.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from codehub.errors import StartError
from codehub.runtimes import code_server, files
from codehub.system.privileges import Account, View, enter, needed_trees, view_for

NAME = "code-server"  # the only one that needs this: JupyterLab comes with the package
# Of our environment: where to fetch from, and nothing of the platform's own.
PASSED_ON = ("LANG", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
PASSED_ON_PREFIXES = ("PIP_", "npm_config_", "http", "https", "HTTP", "no_proxy", "NO_PROXY")
# The same, of the operator's home.
CONFIG = (".npmrc", ".config/pip/pip.conf", ".pip/pip.conf")
LARGEST_CONFIG = 65536
LONGEST_LINE = 65536
ENDING_SECONDS = 10.0
ROUNDS, ROUND_SECONDS = 200, 0.05
# User numbers that no workspace gets before forty million were made, one for each data directory; below 2³¹, beyond
# which some programs lose their way.
FIRST_USER, USERS = 2_040_000_000, 100_000_000


class MissingToolsError(StartError):
    code = "TOOLS_MISSING"

    def __init__(self, missing: list[str]) -> None:
        super().__init__(f"{' and '.join(missing)} must be installed first ({code_server.HOW_TO_GET_TOOLS})")
        self.missing = missing


class InstallingAlreadyError(StartError):
    code = "INSTALLING_ALREADY"


class BuildFailedError(StartError):
    """`step` as it was told, if it was one; `said` is the tool's own line."""

    code = "BUILD_FAILED"

    def __init__(self, detail: str, step: "Told | None", said: str) -> None:
        super().__init__(detail)
        self.step, self.said = step, said


@dataclass(frozen=True)
class Told:
    """A step that has begun, or was done in an earlier try."""

    code: str
    title: str
    data: Mapping[str, Any] = field(default_factory=dict)
    before: bool = False

    @property
    def text(self) -> str:
        return f"{self.title}: done before" if self.before else self.title


Say = Callable[[Told], None]


def log_of(data_dir: pathlib.Path) -> pathlib.Path:
    return data_dir / "ide" / "install.log"


def require_known(name: str) -> None:
    if name != NAME:
        raise StartError(f"{name} cannot be installed by this command; {NAME} can")


async def install(name: str, data_dir: pathlib.Path, say: Say, uid_base: int) -> pathlib.Path:
    """Returns its folder. Ended in the middle, it leaves no process behind; the next one goes on from there."""
    require_known(name)
    if missing := [tool for tool in code_server.TOOLS if shutil.which(tool) is None]:
        raise MissingToolsError(missing)
    ide = data_dir / "ide"
    ide.mkdir(mode=0o755, parents=True, exist_ok=True)
    ide.chmod(0o755)  # workspaces read it
    with _alone(ide / ".lock"):
        aside, log = ide / f".{NAME}", log_of(data_dir)
        aside.mkdir(mode=0o755, exist_ok=True)
        account = await asyncio.to_thread(_prepare, ide, aside, uid_base)
        try:
            await _build(aside, log, account, say)
        finally:
            await asyncio.to_thread(end_all_of, account)
        await _to_the_end(asyncio.to_thread(_take_over, aside, ide / NAME, account))
    return ide / NAME


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """A thread cannot be stopped: who is told to stop waits for it, and holds the lock meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


# --- who builds it --------------------------------------------------------------------------------------------------


def _prepare(ide: pathlib.Path, aside: pathlib.Path, uid_base: int) -> Account | None:
    """Its folder, and whose it is. None: we are an ordinary user, who cannot be another one."""
    if os.geteuid() != 0:
        return None
    own = FIRST_USER + ide.stat().st_ino % USERS  # in every try the same
    for number in (own, uid_base - 1):
        account = Account(f"{NAME} build", number, number)
        end_all_of(account)
        with contextlib.suppress(OSError):  # a container may have fewer numbers
            os.chown(aside, number, number)
            files.give_tree(aside, number, number)
            return account
    raise StartError("there is no user number to build it with: set CODEHUB_UID_BASE")


def end_all_of(account: Account | None) -> None:
    """Whatever runs under this number is of an installation: it ends, however it came to be."""
    for _ in range(ROUNDS if account else 0):
        found = [pid for pid in _processes() if account and _user_of(pid) == account.uid]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(ROUND_SECONDS)
    if account:
        raise StartError("a process of an earlier installation does not end")


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 (names alone)


def _user_of(pid: int) -> int | None:
    """Of one that lives; the dead wait for their parents only."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return None if fields["State"].split()[0] in "ZX" else int(fields["Uid"].split()[0])


# --- the process that does ------------------------------------------------------------------------------------------


async def _build(aside: pathlib.Path, log: pathlib.Path, account: Account | None, say: Say) -> None:
    view = await asyncio.to_thread(view_for, account, [*needed_trees(), aside])
    own_user = account.uid if account else None
    wanted = {"aside": str(aside), "environment": _environment(), "config": _config(), "own_user": own_user}
    failed: Mapping[str, Any] | None = None
    async with _child(log, account, view) as process:
        assert process.stdin  # noqa: S101 (asked for)
        assert process.stdout  # noqa: S101
        process.stdin.write(json.dumps(wanted).encode())
        process.stdin.close()
        while line := await process.stdout.readline():
            found = json.loads(line)
            if "failed" in found:
                failed = found
            else:
                say(Told(**found))
        code = await process.wait()
    if failed:
        step = Told(**failed["step"]) if failed["step"] else None
        raise BuildFailedError(f"{failed['failed']} (everything it said: {log})", step, failed["said"])
    if code != 0:
        raise BuildFailedError(
            f"it was ended from outside (everything it said: {log})", None, "it was ended from outside"
        )


@contextlib.asynccontextmanager
async def _child(log: pathlib.Path, account: Account | None, view: View) -> AsyncIterator["asyncio.subprocess.Process"]:
    """Until the block ends; then nothing of it runs any more."""
    parent = os.getpid()
    await asyncio.to_thread(log.unlink, missing_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    output = os.open(log, flags, 0o644)
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "codehub.runtimes.ide_build"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=output,
            env=_environment(),
            cwd="/",
            start_new_session=True,
            limit=LONGEST_LINE,
            preexec_fn=lambda: enter(account, view, parent, signal.SIGTERM),
        )
    finally:
        os.close(output)
    try:
        yield process
    finally:
        await _end(process)


async def _end(process: "asyncio.subprocess.Process") -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ENDING_SECONDS):
            await process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # those that have not left its session
    await process.wait()


def _environment() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }
    return {**kept, "PATH": os.environ.get("PATH", os.defpath)}


def _config() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in CONFIG:
        with contextlib.suppress(OSError, UnicodeDecodeError, RuntimeError):
            text = (pathlib.Path.home() / name).read_text(encoding="utf-8")
            found |= {name: text} if len(text) <= LARGEST_CONFIG else {}
    return found


# --- when it is whole -----------------------------------------------------------------------------------------------


def _take_over(aside: pathlib.Path, final: pathlib.Path, account: Account | None) -> None:
    if account:
        files.take_tree(aside)
    swap_in(aside, final)


def swap_in(aside: pathlib.Path, final: pathlib.Path) -> None:
    """By renames only: there is an old one, or a new one, or for an instant none; never half of one."""
    for left in (*aside.glob(".done-*"), aside / "cache", aside / "home"):
        files.remove_tree(left)
    old = final.with_name(f".old-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        final.replace(old)
    aside.replace(final)
    for left in final.parent.glob(".old-*"):
        files.remove_tree(left)


@contextlib.contextmanager
def _alone(lock: pathlib.Path) -> Iterator[None]:
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InstallingAlreadyError("another installation is under way") from None
        yield
    finally:
        os.close(fd)
