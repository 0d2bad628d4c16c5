"""Where the platform listens: on both loopbacks or on none, and nobody beside it."""

import contextlib
import os
import socket
from collections.abc import Iterator

import pytest

from codehub import settings as config
from codehub.errors import StartError
from codehub.supervisor.listeners import addresses, open_sockets

V4, V6 = socket.AF_INET, socket.AF_INET6
OPTIONS = (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT)


@contextlib.contextmanager
def listening(host: str, port: int = 0) -> Iterator[list[socket.socket]]:
    env = {"CODEHUB_HOST": host, "CODEHUB_PORT": str(port), "CODEHUB_DATA_DIR": "/nonexistent"}
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(listener) for listener in open_sockets(config.load(env))]


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=V6).close()
    except OSError:
        return False
    return True


# Where a machine has no IPv6 nobody can listen there.
HOSTS = ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::"] if has_ipv6() else []
PAIRS = [("127.0.0.1", "::1"), ("::1", "127.0.0.1"), ("0.0.0.0", "::1")] if has_ipv6() else []


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", ["127.0.0.1", "::1"]),
        ("::1", ["::1", "127.0.0.1"]),
        ("127.0.0.9", ["127.0.0.9", "127.0.0.1", "::1"]),
        ("0.0.0.0", ["0.0.0.0", "::1"]),
        ("::", ["::"]),  # which is both
        ("192.0.2.7", ["192.0.2.7"]),
        ("fe80::1%eth0", ["fe80::1%eth0"]),
    ],
)
def test_one_loopback_means_both(host: str, expected: list[str]) -> None:
    assert addresses(host) == expected


@pytest.mark.parametrize("host", HOSTS)
def test_a_free_port_is_the_same_everywhere_and_nobody_else_can_have_it(host: str) -> None:
    with listening(host) as sockets:
        (port,) = {listener.getsockname()[1] for listener in sockets}
        for there in ("127.0.0.1", "::1"):
            socket.create_connection((there, port), 5).close()
        assert list(taken(port)) == []


def taken(port: int) -> Iterator[str]:
    """What somebody else on this machine gets who wants a part of it."""
    for family, hosts in ((V4, ("127.0.0.1", "0.0.0.0")), (V6, ("::1", "::", "::ffff:127.0.0.1"))):
        for host in hosts:
            for option in OPTIONS:
                for only in (0, 1) if family == V6 else (0,):
                    with socket.socket(family) as thief, contextlib.suppress(OSError):
                        if family == V6:
                            thief.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
                        if option:
                            thief.setsockopt(socket.SOL_SOCKET, option, 1)
                        thief.bind((host, port))
                        thief.listen()
                        yield f"{host} {option} {only}"


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(("host", "other"), PAIRS)
def test_what_somebody_else_has_is_named_and_we_do_not_start_beside_it(
    host: str, other: str, option: int | None
) -> None:
    with socket.socket(V6 if ":" in other else V4) as foreign:
        if option:
            foreign.setsockopt(socket.SOL_SOCKET, option, 1)
        foreign.bind((other, 0))
        foreign.listen()
        port = foreign.getsockname()[1]
        with pytest.raises(StartError) as refused, listening(host, port):
            pass
    shown = f"[{other}]:{port}" if ":" in other else f"{other}:{port}"
    detail = refused.value.detail
    assert detail.startswith(f"cannot listen on {shown}: Address already in use (process {os.getpid()}, ")
    assert detail.endswith("Set CODEHUB_PORT to a free port.")


def test_an_address_that_is_not_this_machines_is_one_clear_line() -> None:
    complaint = r"CODEHUB_HOST=192\.0\.2\.7: this machine has no such address"
    with pytest.raises(StartError, match=complaint), listening("192.0.2.7"):
        pass
