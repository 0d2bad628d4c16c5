"""Without logging in, nobody keeps others out of the front door, or fills its memory: API, gate and proxy together."""

import asyncio
import contextlib
import pathlib
import socket
from collections.abc import AsyncIterator

from codehub.errors import UnavailableError
from codehub.gate.director import TOKENS_AT_ONCE, TOKENS_WAITING
from codehub.gate.principals import ASK_AT_ONCE
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.startup import allow_many_connections
from tests.gate.lab import PAGE, Lab

CONNECTIONS = 5000
AT_ONCE = 200
SLOW_POST = b"POST /api/v1/workspaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
SLOW_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


@contextlib.asynccontextmanager
async def strangers(lab: Lab, count: int) -> AsyncIterator[None]:
    """Every second one sends a body that does not go on, the others a head that does not."""
    loop, port = asyncio.get_running_loop(), int(lab.url.rpartition(":")[2])

    async def one(client: socket.socket, number: int) -> None:
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", port))
        with contextlib.suppress(OSError):  # it may have made room already
            await loop.sock_sendall(client, (SLOW_POST, SLOW_HEAD)[number % 2])

    with contextlib.ExitStack() as stack:
        for begin in range(0, count, AT_ONCE):
            clients = [stack.enter_context(socket.socket()) for _ in range(AT_ONCE)]
            await asyncio.gather(*(one(client, begin + n) for n, client in enumerate(clients)))
        await asyncio.sleep(0.2)  # so that the last of them are read as well
        yield


async def test_thousands_of_slow_strangers_keep_nobody_out(lab: Lab) -> None:
    allow_many_connections()
    w = await lab.running()
    async with lab.browser("admin") as before, strangers(lab, CONNECTIONS):
        async with before.get(f"{lab.url}/w/{w.id}/lab", headers=PAGE) as answer:
            assert answer.status == 200
        async with lab.browser("admin") as browser:  # logs in now
            async with browser.get(f"{lab.url}/api/v1/me") as answer:
                assert answer.status == 200
            async with browser.get(f"{lab.url}/w/{w.id}/lab", headers=PAGE) as answer:
                assert answer.status == 200
        async with lab.browser() as nobody:
            for path in ("/healthz", "/readyz", "/"):
                async with nobody.get(f"{lab.url}{path}", headers=PAGE) as answer:
                    assert answer.status == 200, path


def resident() -> int:
    return int(pathlib.Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) * 1024


async def test_cookies_of_strangers_are_not_remembered(lab: Lab) -> None:
    w = await lab.running()
    host, port = lab.origin(w.id).removeprefix("http://"), int(lab.url.rpartition(":")[2])

    async def ask(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        cookie = f"n={number:030000d}; codehub-pass=x"
        writer.write(f"GET /w/{w.id}/api HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode())
        assert b" 401 " in await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b"}")
        writer.close()

    for number in range(100):
        await ask(number)
    before = resident()
    for number in range(100, 2100):
        await ask(number)
    assert resident() - before < 16 << 20  # a quarter of what came


async def test_the_limits_of_those_who_are_logged_in_are_their_own(lab: Lab) -> None:
    principals = lab.director._principals
    async with lab.browser("admin") as browser, browser.get(f"{lab.url}/api/v1/me") as answer:
        assert answer.status == 200
        cookie = "; ".join(f"{c.key}={c.value}" for c in browser.cookie_jar).encode()
    caller = Principal("admin", Role.ADMIN, ALL_SCOPES)
    made = await lab.services.people.create_token(caller, "admin", label="t", scopes=None, days=None)
    known = ((cookie, b""), (b"", f"Bearer {made.secret}".encode()))
    async with asyncio.timeout(20):
        # The database is asked on the side; and what was learnt is forgotten whenever the listener connects anew.
        while [principals.of(*credential) for credential in known] != ["admin", "admin"]:
            await asyncio.sleep(0.005)
    assert principals.of(cookie + b"x", b"") == ""
    assert principals.of(b"codehub=forged.1.signature", b"") == ""
    for number in range(100):
        assert principals.of(b"", b"Bearer chp_abc_%d" % number) == ""
    assert len(principals._asking) <= ASK_AT_ONCE
    assert len(principals._names) == 2
    async with asyncio.timeout(20):
        while principals._asking:
            await asyncio.sleep(0.005)
    assert len(principals._names) <= 2  # what was invented is not remembered


async def test_invented_tokens_do_not_stand_before_real_ones(lab: Lab) -> None:
    """They wait for the database, a few at a time; one that was good a moment ago passes them by."""
    w = await lab.running()
    director, credentials = lab.director, lab.director._credentials
    made = await lab.services.people.create_token(
        Principal("admin", Role.ADMIN, ALL_SCOPES), "admin", label="t", scopes=None, days=None
    )
    assert (await director._caller(made.secret, "@1")).name == "admin"
    credentials._known[made.secret] = (0.0, credentials._known[made.secret][1])  # it has to be looked at again
    database = lab.services.database
    async with database.transaction() as c, asyncio.timeout(20):
        await c.execute("LOCK TABLE access_tokens")
        invented = [asyncio.create_task(director._caller(f"chp_{w.id}_{n}", "@2")) for n in range(100)]
        refused, _ = await asyncio.wait(invented, return_when=asyncio.FIRST_COMPLETED)
        assert all(isinstance(task.exception(), UnavailableError) for task in refused)
        assert len(director._unknown_tokens._inside) == TOKENS_AT_ONCE // 2
        real = asyncio.create_task(director._caller(made.secret, "@2"))
        await asyncio.sleep(0)
        assert len(director._unknown_tokens) == TOKENS_WAITING // 2  # it is not among them
    assert (await real).name == "admin"
    await asyncio.gather(*invented, return_exceptions=True)
    assert len(credentials._bad) == TOKENS_WAITING // 2 + TOKENS_AT_ONCE // 2
    assert not director._unknown_tokens._inside
