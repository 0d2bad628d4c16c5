"""Listening sockets: opened by the supervisor, or inherited from it by a role. A light module: every role loads it."""

import os
import pathlib
import socket

from codehub.errors import StartError
from codehub.settings import Settings
from codehub.supervisor.privileges import Account


def open_socket(settings: Settings) -> socket.socket:
    """The listening socket. It is ours, not the API's: a role that restarts loses no connection that waits."""
    host, port = settings.server.host, settings.server.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as e:
        raise StartError(f"CODEHUB_HOST={host}: {e.strerror}") from e
    family, kind, _, _, address = found[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as e:
        listener.close()
        raise StartError(f"cannot listen on {host}:{port}: {e.strerror}. Set CODEHUB_PORT to a free port.") from e
    listener.setblocking(False)
    return listener


def open_unix_socket(path: pathlib.Path, account: Account | None) -> socket.socket:
    """Where the API listens for the front door, in a folder that nobody else may enter."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    if account:
        os.chown(path, account.uid, account.gid)
    listener.listen(2048)
    listener.setblocking(False)
    return listener


def inherited(fd: int) -> socket.socket:
    listener = socket.socket(fileno=fd)
    os.set_inheritable(fd, False)
    return listener
