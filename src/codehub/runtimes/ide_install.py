"""`codehub ide install`: puts an IDE below the data directory, where templates find it. Called by the command line.

Everything happens aside, step by step, each noted when done, so that a second try goes on where the first one ended;
one rename makes it visible, whole. Workspaces that run an older one keep it until they stop.
"""

import asyncio
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
from collections.abc import Callable, Iterator, Sequence

from codehub.errors import StartError
from codehub.runtimes import code_server, files
from codehub.runtimes.code_server import Step

# Of our environment: where to fetch from, and nothing of the platform's own.
PASSED_ON = ("HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
PASSED_ON_PREFIXES = ("PIP_", "npm_config_", "http", "https", "HTTP", "no_proxy", "NO_PROXY")
COMPLAINT = re.compile(r"(^|\s)(fatal error|error): ")

Say = Callable[[str], None]


async def install(name: str, data_dir: pathlib.Path, say: Say) -> pathlib.Path:
    """Install an IDE; returns its folder. Only code-server needs this: JupyterLab comes with the package."""
    if name != "code-server":
        raise StartError(f"{name} cannot be installed by this command; code-server can")
    if missing := [tool for tool in code_server.TOOLS if shutil.which(tool) is None]:
        raise StartError(f"{' and '.join(missing)} must be installed first ({code_server.HOW_TO_GET_TOOLS})")
    ide = data_dir / "ide"
    ide.mkdir(mode=0o755, parents=True, exist_ok=True)
    ide.chmod(0o755)  # workspaces read it
    with _alone(ide / ".lock"):
        aside, log = ide / ".code-server", ide / "install.log"
        log.unlink(missing_ok=True)
        build = code_server.Build(aside, _environment())
        _write_program(aside / "tools" / "npm", code_server.NPM)
        say(f"Installing code-server takes some minutes; what its tools say goes to {log}.")
        await carry_out(build.fetching(), aside, log, say)
        await carry_out(build.building(), aside, log, say)
        await asyncio.to_thread(build.link)
        _write_program(aside / "bin" / "code-server", code_server.LAUNCHER)
        own = {**_environment(), "HOME": str(aside / "cache")}  # it writes a configuration wherever it finds none
        say("Trying it")
        await _run(Step("try", "Trying it", [str(aside / "bin" / "code-server"), "--version"], own), log)
        await asyncio.to_thread(swap_in, aside, ide / "code-server")
    say(f"code-server {code_server.VERSION} is installed in {ide / 'code-server'}")
    return ide / "code-server"


async def carry_out(steps: Sequence[Step], aside: pathlib.Path, log: pathlib.Path, say: Say) -> None:
    """Do what is not done yet."""
    aside.mkdir(mode=0o755, exist_ok=True)  # noqa: ASYNC240 (a command line of one person)
    for step in steps:
        mark = aside / f".done-{step.name}"
        if mark.exists():
            say(f"{step.title}: done before")
            continue
        say(step.title)
        await _run(step, log)
        mark.touch()


async def _run(step: Step, log: pathlib.Path) -> None:
    """What it prints goes into the log; a failure is an error with the line that says why."""
    with log.open("ab") as output:
        output.write(f"== {step.title}\n".encode())
        output.flush()
        begin = output.tell()
        process = await asyncio.create_subprocess_exec(
            *step.command,
            env=dict(step.environment),
            cwd=step.directory,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: os.umask(0o022),  # workspaces' users read what is installed (uvloop knows no `umask=`)
        )
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if code != 0:
        said = log.read_bytes()[begin:].decode(errors="replace").splitlines()  # noqa: ASYNC240
        raise StartError(f"{step.title} failed (exit code {code}): {reason(said)} (everything it said: {log})")


def reason(lines: Sequence[str]) -> str:
    """The line of a tool's output that says what went wrong: a compiler's first error, or the last word."""
    spoken = [line.strip() for line in lines if line.strip()]
    complaints = [line for line in spoken if COMPLAINT.search(line)]
    return (complaints or spoken[-1:] or ["it said nothing"])[0]


def swap_in(aside: pathlib.Path, final: pathlib.Path) -> None:
    """By renames only: there is an old one, or a new one, or for an instant none; never half of one."""
    for left in (*aside.glob(".done-*"), aside / "cache"):
        files.remove_tree(left)
    old = final.with_name(f".old-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        final.replace(old)
    aside.replace(final)
    for left in final.parent.glob(".old-*"):
        files.remove_tree(left)


def _write_program(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _environment() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }
    return {**kept, "PATH": os.environ.get("PATH", os.defpath)}


@contextlib.contextmanager
def _alone(lock: pathlib.Path) -> Iterator[None]:
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError("another installation is under way") from None
        yield
    finally:
        os.close(fd)
