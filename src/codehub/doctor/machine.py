"""This machine: Python, the data directory, its disk, the port."""

import asyncio
import contextlib
import errno
import fcntl
import os
import pathlib
import pwd
import shutil
import socket
import sys
import tempfile

from codehub import __version__
from codehub.doctor import rules
from codehub.doctor.model import Finding, Level, fail, ok, warn
from codehub.doctor.threads import in_thread
from codehub.settings import ServerConfig

ANOTHER_FOLDER = "Give this user write permission, or set CODEHUB_DATA_DIR to a folder of its own."


def python() -> Finding:
    return ok("python", f"codehub {__version__} on Python {sys.version.split()[0]}, {sys.executable}")


def existing(path: pathlib.Path) -> pathlib.Path:
    """The path, or the nearest parent there is."""
    return next(p for p in (path, *path.parents) if os.path.exists(p) or p == p.parent)  # noqa: PTH110 (no error when we may not look)


def try_to_write(folder: pathlib.Path) -> str | None:
    """Why this user cannot write there. Permission bits do not tell: file systems can be read-only, or full."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as e:
        return e.strerror or str(e)
    return None


def data_directory(root: pathlib.Path) -> Finding:
    folder = existing(root)
    if not folder.is_dir():
        return fail("data directory", f"{folder} is not a folder", "Set CODEHUB_DATA_DIR to a folder.")
    if (reason := try_to_write(folder)) is not None:
        who = account_name(os.geteuid())
        return fail("data directory", f"{who} cannot write in {folder}: {reason}", ANOTHER_FOLDER)
    if folder != root:
        return ok("data directory", f"{root} will be made at the first start")
    for path in (root, root / "secrets"):
        owner = path.stat().st_uid if path.exists() else os.geteuid()
        if owner != os.geteuid():
            advice = f"Run CodeHub as {account_name(owner)}, or set CODEHUB_DATA_DIR to a folder of its own."
            return fail("data directory", f"{path} belongs to {account_name(owner)}", advice)
    return ok("data directory", f"{root} is ours and can be written")


def account_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def disk(root: pathlib.Path) -> Finding:
    usage = shutil.disk_usage(existing(root))
    level = rules.disk_level(usage.free, usage.total)
    detail = f"{rules.size(usage.free)} of {rules.size(usage.total)} free for {root}"
    if level is Level.OK:
        return ok("disk space", detail)
    return Finding(
        "disk space", level, f"nearly full: {detail}", "Make room, or move CODEHUB_DATA_DIR to a larger disk."
    )


def holder(root: pathlib.Path) -> str | None:
    """The process that runs CodeHub on this data directory. A shared lock, for an instant, disturbs no process."""
    try:
        fd = os.open(root / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(fd, 32).decode(errors="replace").strip()
    finally:
        os.close(fd)
    return None


async def port(server: ServerConfig, root: pathlib.Path) -> Finding:
    where = f"{server.host}:{server.port}"
    if server.port == 0:
        return ok("port", "any free one")
    try:
        _bind(server)
    except socket.gaierror as e:
        return fail(
            "port", f"CODEHUB_HOST={server.host}: {e.strerror}", "Set CODEHUB_HOST to an address of this machine."
        )
    except OSError as e:
        return await _port_taken(e, server, where, root)
    return ok("port", f"{where} is free")


def _bind(server: ServerConfig) -> None:
    """As `serve` does, without listening: no client notices."""
    found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, _, _, address = found[0]
    with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


async def _port_taken(error: OSError, server: ServerConfig, where: str, root: pathlib.Path) -> Finding:
    if error.errno == errno.EACCES:
        return fail("port", f"{where} is for root only", "Set CODEHUB_PORT to 1024 or more.")
    if error.errno != errno.EADDRINUSE:
        return fail("port", f"cannot listen on {where}: {error.strerror}", "Set CODEHUB_HOST to an address we have.")
    is_codehub, pid = await _answers_as_codehub(server), await in_thread(lambda: holder(root))
    if is_codehub and pid:
        return ok("port", f"{where} is used by the CodeHub that runs on this data directory (process {pid})")
    if is_codehub:
        return warn(
            "port",
            f"{where} is used by another CodeHub, not on {root}",
            "If that is not the one you mean, stop it, or set CODEHUB_PORT to a free port.",
        )
    return fail(
        "port", f"{where} is taken by another program", "Stop that program, or set CODEHUB_PORT to a free port."
    )


async def _answers_as_codehub(server: ServerConfig) -> bool:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)
    try:
        async with asyncio.timeout(3):
            reader, writer = await asyncio.open_connection(host, server.port)
            with contextlib.closing(writer):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = await reader.read(4096)
                while part := await reader.read(4096):
                    answer += part[: 65536 - len(answer)]
    except (OSError, TimeoutError):
        return False
    return answer.startswith(b"HTTP/1.1 200") and b'"alive"' in answer
