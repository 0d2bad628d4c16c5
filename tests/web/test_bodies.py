"""Reading what was sent costs little, whoever sends it: it is refused by its size and its number, before it is read."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from prometheus_client import REGISTRY

from codehub.web import forms
from tests.web.server import Site

FORM = {"content-type": "application/x-www-form-urlencoded"}


@contextlib.asynccontextmanager
async def sending(
    site: Site, path: str, *headers: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The head of a POST; its body is the test's."""
    host, port = site.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/x-www-form-urlencoded", *headers]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        yield reader, writer
    finally:
        writer.close()


async def status_of(reader: asyncio.StreamReader) -> int:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
    return int(head.split()[1])


@pytest.mark.parametrize("path", ["/login/x", "/_codehub/understood/x"])
async def test_a_large_form_is_refused_by_what_it_announces_before_any_of_it_has_come(site: Site, path: str) -> None:
    async with sending(site, path, f"Content-Length: {forms.LARGEST + 1}") as (reader, _):
        assert await status_of(reader) == 413


async def test_a_form_that_turns_out_large_is_refused_before_its_end(site: Site) -> None:
    async with sending(site, "/login/x", "Transfer-Encoding: chunked") as (reader, writer):
        for _ in range(forms.LARGEST // 4096 + 1):
            writer.write(b"1000\r\n" + b"a=b&" * 1024 + b"\r\n")
        assert await status_of(reader) == 413  # its last chunk never comes


async def test_a_form_of_many_fields_is_refused_by_their_number(nobody: aiohttp.ClientSession) -> None:
    async with nobody.post("/login/x", data="a=b&" * forms.FIELDS, headers=FORM) as answer:
        problem = await answer.json()
        assert (answer.status, problem["errors"][0]["field"]) == (400, "body")
    async with nobody.post("/login/x", data="&".join(["a=b"] * forms.FIELDS), headers=FORM) as answer:
        assert answer.status == 410  # read, and the link is no good


@pytest.mark.parametrize(("path", "status"), [("/do/create", 303), ("/do/x/start", 303), ("/_codehub/act/x", 404)])
async def test_a_strangers_form_is_not_waited_for_where_a_login_is_needed(site: Site, path: str, status: int) -> None:
    async with sending(site, path, "Content-Length: 100") as (reader, _):
        assert await status_of(reader) == status


async def test_a_body_that_its_client_broke_off_is_no_mistake_of_ours(site: Site) -> None:
    def counted(status: str) -> float:
        labels = {"method": "POST", "route": "/login/{secret}", "status": status}
        return REGISTRY.get_sample_value("codehub_http_requests_total", labels) or 0

    left, mistakes = counted("499"), counted("500")
    async with sending(site, "/login/x", "Content-Length: 100") as (_, writer):
        writer.write(b"a=b")
        await writer.drain()
    async with asyncio.timeout(20):
        while (counted("499"), counted("500")) == (left, mistakes):
            await asyncio.sleep(0.01)
    assert (counted("499"), counted("500")) == (left + 1, mistakes)
