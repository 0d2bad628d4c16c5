"""In the place of an ingress: TLS ends here, a request without it is sent to where there is, and a browser that finds
both by the names of the chart.
"""

import asyncio
import contextlib
import pathlib
import ssl
import subprocess
from collections.abc import AsyncIterator

from playwright.async_api import Browser, async_playwright

from codehub.runtimes.shepherd.relay import copy
from tests.browser.conftest import FLAGS, SHELL, WHOLE, find_chromium


@contextlib.asynccontextmanager
async def browser_of(address: str, folder: pathlib.Path, port: int = 80) -> AsyncIterator[Browser]:
    """Every name below `example.org` is the service at this address."""
    async with _listening(address, port, folder) as (secure, plain):
        names = f"MAP *.example.org:443 127.0.0.1:{secure}, MAP *.example.org:80 127.0.0.1:{plain}"
        flags = [*FLAGS, f"--host-resolver-rules={names}", "--ignore-certificate-errors"]
        async with async_playwright() as playwright:
            found = find_chromium(SHELL, *WHOLE)
            browser = await playwright.chromium.launch(executable_path=found, args=flags)
            yield browser
            await browser.close()


@contextlib.asynccontextmanager
async def _listening(address: str, port: int, folder: pathlib.Path) -> AsyncIterator[tuple[int, int]]:
    under_way: set[asyncio.Task[None]] = set()

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            there, back = await asyncio.open_connection(address, port)
            ends.append(back)
            await asyncio.gather(copy(reader, back), copy(there, writer))
        except OSError:
            pass
        finally:
            for end in ends:
                end.transport.abort()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(passed_on(reader, writer))
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    context = await asyncio.to_thread(_certified, folder)
    secure = await asyncio.start_server(served, "127.0.0.1", 0, ssl=context)
    plain = await asyncio.start_server(_sent_to_tls, "127.0.0.1", 0)
    try:
        yield _port(secure), _port(plain)
    finally:
        for server in (secure, plain):
            server.close()
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def _sent_to_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, EOFError):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        host = next(line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:"))
        where = f"https://{host}{lines[0].split()[1]}"
        writer.write(f"HTTP/1.1 308 Permanent Redirect\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
    writer.close()


def _certified(folder: pathlib.Path) -> ssl.SSLContext:
    """By itself: the browser is told to believe it."""
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subject = [
        "-subj",
        "/CN=labs.example.org",
        "-addext",
        "subjectAltName=DNS:*.example.org,DNS:*.labs-ide.example.org",
    ]
    command = ["openssl", "req", "-x509", *curve, *subject, "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _port(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])
