"""What every answer carries: security headers, a request id, the right caching; gzip; HEAD; metrics that stay small."""

import asyncio
import gc
import itertools
import re
from collections.abc import AsyncIterator

import aiohttp
import pytest
from starlette.responses import StreamingResponse

from codehub.command import operator
from codehub.policy.model import Role
from codehub.runtimes.logs import POLL_SECONDS
from codehub.runtimes.shepherd.log_files import CURRENT
from codehub.settings import Settings
from codehub.web import static_files
from codehub.web.app import create_app
from codehub.web.middleware import SECURITY_HEADERS
from codehub.web.services import Services
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving, serving_with

EVERYWHERE = [
    ("GET", "/", 200),
    ("GET", "/docs", 200),
    ("GET", "/openapi.json", 200),
    ("GET", "/static/codehub.css", 200),
    ("GET", "/static/nowhere.css", 404),
    ("GET", "/static/v-1/codehub.css", 200),
    ("GET", "/static/v-1/nowhere.css", 404),
    ("GET", "/static/v-1/", 404),
    ("GET", "/static/v-1/..%2f..%2fapp.py", 404),
    ("GET", "/static/%00", 404),
    ("GET", "/static/..%2fapp.py", 404),
    ("GET", "/static/" + "a" * 5000, 404),
    ("GET", "/favicon.ico", 200),
    ("GET", "/healthz", 200),
    ("GET", "/readyz", 200),
    ("GET", "/metrics", 200),
    ("GET", "/nowhere", 404),
    ("GET", "/" + "a" * 10_000, 404),
    ("GET", "/api/v1/me", 401),
    ("POST", "/api/v1/me", 405),
    ("GET", "/login/nothing", 410),
    ("HEAD", "/", 200),
]


async def test_every_answer_has_the_security_headers_and_an_id(nobody: aiohttp.ClientSession) -> None:
    policy = SECURITY_HEADERS["content-security-policy"] + " http://*.localhost:*"  # where a form may lead to
    expected = {**SECURITY_HEADERS, "content-security-policy": policy}
    for method, path, status in EVERYWHERE:
        async with nobody.request(method, path) as answer:
            assert answer.status == status, path[:50]
            assert {name: answer.headers[name] for name in SECURITY_HEADERS} == expected
            assert re.fullmatch(r"[a-z2-7]{16}", answer.headers["x-request-id"])
            assert "server" not in answer.headers
            assert "strict-transport-security" not in answer.headers


async def test_request_ids_are_ours_and_each_is_different(nobody: aiohttp.ClientSession) -> None:
    seen = set()
    for _ in range(5):
        async with nobody.get("/healthz", headers={"X-Request-Id": "theirs"}) as answer:
            seen.add(answer.headers["x-request-id"])
    assert len(seen) == 5
    assert "theirs" not in seen


async def test_answers_are_not_kept_by_anybody_except_files_that_are_asked_for_again(
    nobody: aiohttp.ClientSession,
) -> None:
    async with nobody.get("/api/v1/me") as answer:
        assert answer.headers["cache-control"] == "no-store"
    async with nobody.get("/static/codehub.css") as answer:
        assert answer.headers["cache-control"] == "no-cache"
        tag = answer.headers["etag"]
    async with nobody.get("/static/codehub.css", headers={"If-None-Match": tag}) as answer:
        assert answer.status == 304


async def test_files_that_pages_name_are_kept_for_good_until_one_of_them_changes(nobody: aiohttp.ClientSession) -> None:
    async with nobody.get(f"{static_files.address()}/codehub.css") as answer:
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        kept = await answer.read()
    async with nobody.get("/static/v-ofanotherversion/codehub.css") as answer:
        assert answer.headers["cache-control"] == "no-cache"
        assert await answer.read() == kept


async def test_behind_tls_browsers_are_told_to_stay_there(settings: Settings, clock: ManualClock) -> None:
    async with (
        serving_with(settings, clock, public_url="https://codehub.example") as site,
        site.client() as client,
        client.get("/nowhere") as answer,
    ):
        assert answer.headers["strict-transport-security"] == "max-age=31536000"


async def test_large_answers_are_compressed_for_those_who_can_read_it(site: Site) -> None:
    async with site.client() as client:
        async with client.get("/openapi.json", headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.headers["content-encoding"] == "gzip"
            assert "accept-encoding" in answer.headers["vary"].lower()
            assert (await answer.json())["info"]["title"] == "CodeHub"
        async with client.get("/openapi.json", headers={"Accept-Encoding": "identity"}) as answer:
            assert "content-encoding" not in answer.headers
        async with client.get("/healthz", headers={"Accept-Encoding": "gzip"}) as answer:
            assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_a_log_that_is_followed_begins_at_once_and_holds_nothing_back(
    site: Site, clock: ManualClock, encoding: str
) -> None:
    """The answer begins before there is a line, and a line is there before the next one."""
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.client(await site.token("mina"), **{"Accept-Encoding": encoding}) as mina:
        new = {"name": "Lab", "template": "terminal", "desired_state": "ARCHIVED"}
        async with mina.post("/api/v1/workspaces", json=new) as answer:
            id_ = (await answer.json())["id"]
        async with asyncio.timeout(15), mina.get(f"/api/v1/workspaces/{id_}/logs/follow") as answer:
            folder = site.services.runtime._layout.of(id_).log  # type: ignore[attr-defined]
            folder.mkdir(parents=True)
            for line in (b"one\n", b"two\n"):
                with (folder / CURRENT).open("ab") as log:
                    log.write(line)
                await clock.advance(POLL_SECONDS)
                assert await answer.content.readany() == line


async def test_head_is_get_without_the_body(admin: aiohttp.ClientSession) -> None:
    for path in ("/", "/docs", "/healthz", "/readyz", "/metrics", "/openapi.json", "/api/v1/users", "/nowhere"):
        async with admin.get(path, headers={"Accept-Encoding": "identity"}) as answer:
            expected = (answer.status, answer.headers["content-type"])
        async with admin.head(path, headers={"Accept-Encoding": "identity"}) as answer:
            assert (answer.status, answer.headers["content-type"]) == expected
            assert await answer.read() == b""


async def test_head_of_a_stream_without_end_ends(services: Services) -> None:
    app = create_app(services)
    closed = []

    @app.get("/endless")
    async def endless() -> StreamingResponse:
        async def numbers() -> AsyncIterator[str]:
            try:
                for number in itertools.count():
                    yield str(number)
            finally:
                closed.append(True)

        return StreamingResponse(numbers())

    async with serving(services, app) as site, site.client() as client:
        async with client.head("/endless") as answer:
            assert answer.status == 200
        async with client.get("/healthz") as answer:
            assert answer.status == 200
    async with asyncio.timeout(10):
        while not closed:  # a generator is closed when the collector comes by
            gc.collect()
            await asyncio.sleep(0.01)
    assert closed == [True]


async def test_a_connection_can_be_used_again_after_head(site: Site) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for method in (b"HEAD", b"GET"):
        writer.write(method + b" /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        assert head.startswith(b"HTTP/1.1 200 ")
    assert await reader.readexactly(18) == b'{"status":"alive"}'
    writer.close()


STRANGE_HOSTS = ["", "a b", "evil.example/path", "x:notaport", "[::1", "[::1]:80", "é", "a" * 5000, "?#@"]
PATHS = ["/", "/docs", "/api/v1/users/admin/login-links", "/api/v1/users/", "/static/"]


async def test_a_strange_host_header_breaks_nothing(site: Site) -> None:
    address, port = site.url.removeprefix("http://").split(":")
    for host, path in itertools.product(STRANGE_HOSTS, PATHS):
        method = "POST" if "links" in path else "GET"
        reader, writer = await asyncio.open_connection(address, int(port))
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer an-admin-token-for-tests\r\n"
        writer.write(head.encode("latin-1") + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
        status = int((await asyncio.wait_for(reader.read(), 10)).split()[1])
        assert status < 500, (host, path)
        writer.close()


async def test_counting_requests_does_not_grow_with_what_strangers_ask_for(nobody: aiohttp.ClientSession) -> None:
    await _ask_for_much(nobody, "before")
    before = await _series(nobody)
    await _ask_for_much(nobody, "after")
    assert await _series(nobody) == before


async def _ask_for_much(client: aiohttp.ClientSession, word: str) -> None:
    for path in (f"/{word}", f"/api/v1/users/{word}", f"/static/{word}", f"/login/{word}"):
        for method in ("GET", "PURGE", "SEARCH", "MKCOL"):
            async with client.request(method, path):
                pass


async def _series(client: aiohttp.ClientSession) -> set[str]:
    async with client.get("/metrics") as answer:
        text = await answer.text()
    series = {line.rpartition(" ")[0] for line in text.splitlines() if line.startswith("codehub_http_requests_total")}
    assert not any("PURGE" in line or "before" in line for line in series)
    return {line for line in series if "/metrics" not in line}
