"""Listening sockets: opened by the supervisor, or inherited from it by a role. A light module: every role loads it."""

import errno
import os
import pathlib
import socket
from collections.abc import Iterable
from ipaddress import ip_address

from codehub.errors import StartError
from codehub.settings import Settings
from codehub.settings.roles import address_of
from codehub.supervisor import port_holder
from codehub.system.privileges import Account

BACKLOG = 2048
LOOPBACKS = ("127.0.0.1", "::1")
# The machine has no such address, mostly because it has no IPv6: then no other program can listen on it either.
ABSENT = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT}
HOSTS = "take 127.0.0.1 for this machine alone, 0.0.0.0 for every network it is in"
ATTEMPTS = 20  # at a port that is free on every address


def open_sockets(settings: Settings) -> list[socket.socket]:
    """The listening sockets. They are ours, not the API's: a role that restarts loses no connection that waits.

    All have one port. `SO_REUSEPORT` is never set: the kernel refuses every other process that wants it.
    """
    host, port = settings.server.host, settings.server.port
    first, *others = addresses(_resolve(host))
    for attempt in range(1, ATTEMPTS + 1):
        opened: list[socket.socket] = []
        try:
            opened.append(_listen(first, port))
            opened += _listen_where_possible(others, opened[0].getsockname()[1])
        except _TakenError as e:
            _close(opened)
            if port == 0 and attempt < ATTEMPTS:  # taken on one of the addresses: try another free one
                continue
            raise StartError(f"{e}. Set CODEHUB_PORT to a free port.") from e
        except OSError as e:
            _close(opened)
            raise StartError(_refusal(host, port, e)) from e
        return opened
    raise AssertionError  # the last attempt returned or raised


def open_named(listen: str | None) -> list[socket.socket]:
    """What a setting like CODEHUB_PEER_LISTEN names; none where it is unset."""
    if listen is None:
        return []
    host, port = address_of(listen)
    try:
        return [_listen(_resolve(host), port)]
    except _TakenError as e:
        raise StartError(str(e)) from e
    except OSError as e:
        raise StartError(f"cannot listen on {listen}: {e.strerror}") from e


def addresses(address: str) -> list[str]:
    """Everywhere to listen for this one: browsers try one loopback and then the other for the same name.

    Without us, any program on this machine could listen on the second one, and would get users' cookies.
    """
    parsed = ip_address(address.partition("%")[0])
    others = LOOPBACKS if parsed.is_loopback else ("::1",) if address == "0.0.0.0" else ()
    return list(dict.fromkeys([address, *others]))


def problems(settings: Settings) -> list[str]:
    """What is wrong with host and port, before anything is started. That another process listens there may pass."""
    host, port = settings.server.host, settings.server.port
    try:
        _listen(_resolve(host), port).close()
    except StartError as e:
        return [e.detail]
    except OSError as e:
        return [_refusal(host, port, e)]
    except _TakenError:
        return []
    return []


def _resolve(host: str) -> str:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as e:
        raise StartError(f"CODEHUB_HOST={host}: there is no such host; {HOSTS}") from e
    return str(found[0][4][0])


def _refusal(host: str, port: int, error: OSError) -> str:
    """Why the kernel does not let us listen, and what to do about it."""
    if error.errno in ABSENT:
        return f"CODEHUB_HOST={host}: this machine has no such address; {HOSTS}"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return (
            f"CODEHUB_PORT={port}: an ordinary user may not listen on this port: take one from 1024 on, "
            "and let a web server in front of it have the lower one"
        )
    return f"cannot listen on {host}:{port}: {error.strerror}"


class _TakenError(Exception):
    pass


def _listen_where_possible(addresses: Iterable[str], port: int) -> list[socket.socket]:
    opened: list[socket.socket] = []
    for address in addresses:
        try:
            opened.append(_listen(address, port))
        except OSError as e:
            if e.errno not in ABSENT:
                _close(opened)
                raise
        except _TakenError:
            _close(opened)
            raise
    return opened


def _listen(address: str, port: int) -> socket.socket:
    family, kind, _, _, target = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    try:
        # What an earlier run left in TIME_WAIT is no hindrance; what listens is.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address != "::")
        listener.bind(target)
        listener.listen(BACKLOG)
    except OSError as e:
        listener.close()
        if e.errno != errno.EADDRINUSE:
            raise
        shown = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        raise _TakenError(f"cannot listen on {shown}: {e.strerror}{port_holder.described(port)}") from e
    listener.setblocking(False)
    return listener


def _close(sockets: Iterable[socket.socket]) -> None:
    for opened in sockets:
        opened.close()


def open_unix_socket(path: pathlib.Path, account: Account | None) -> socket.socket:
    """Where the API listens for the proxy, in a folder that no other account may enter."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    if account:
        os.chown(path, account.uid, account.gid)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def inherited(fds: Iterable[int]) -> list[socket.socket]:
    for fd in fds:
        os.set_inheritable(fd, False)
    return [socket.socket(fileno=fd) for fd in fds]
