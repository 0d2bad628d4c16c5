"""Errors over the wire: every one is a problem body with its code, and says what to do or which field is wrong."""

import asyncio
import io
import json
import re
from typing import Any

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role, Scope
from codehub.settings import Settings
from codehub.web.services import Services
from tests.policy.test_routes import BY_WAITING_TOKEN, WAYS_IN
from tests.virtual_time import ManualClock
from tests.web.relay import relayed
from tests.web.server import Site, serving_with

BIG = 65_536


async def problem(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    """The body, after checking that it is a whole problem and agrees with the status line."""
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = await answer.json()
    assert body.keys() >= {"type", "title", "status", "detail", "code"}
    assert body["status"] == answer.status
    return body


@pytest.mark.parametrize(
    ("method", "path", "sent", "field"),
    [
        ("POST", "/api/v1/users", {}, "name"),
        ("POST", "/api/v1/users", {"name": "Not A Name"}, "name"),
        ("POST", "/api/v1/users", {"name": "mina\n"}, "name"),
        ("POST", "/api/v1/users", {"name": "mina", "role": "king"}, "role"),
        ("POST", "/api/v1/users", {"name": "mina", "nmae": 1}, "nmae"),
        ("POST", "/api/v1/users", [], "body"),
        ("PATCH", "/api/v1/users/admin", {"active": "yes"}, "active"),
        ("POST", "/api/v1/users/admin/tokens", {"label": "\0"}, "label"),
        ("POST", "/api/v1/users/admin/tokens", {"scopes": []}, "scopes"),
        ("POST", "/api/v1/users/admin/tokens", {"scopes": ["read", "fly"]}, "scopes.1"),
        ("POST", "/api/v1/users/admin/tokens", {"expires_in_days": 0}, "expires_in_days"),
        ("POST", "/api/v1/users/admin/tokens", {"expires_in_days": "7"}, "expires_in_days"),
        ("POST", "/api/v1/users/admin/tokens", {"expires_in_days": True}, "expires_in_days"),
        ("POST", "/api/v1/users/admin/tokens", {"expires_in_days": 1.5}, "expires_in_days"),
        ("GET", "/api/v1/users?limit=0", None, "limit"),
        ("GET", "/api/v1/users?limit=201", None, "limit"),
        ("GET", "/api/v1/users?limit=many", None, "limit"),
        ("GET", "/api/v1/users?role=king", None, "role"),
        ("GET", "/api/v1/users?cursor=", None, "cursor"),
        ("GET", "/api/v1/admin/audit?actor=%00", None, "actor"),
    ],
)
async def test_invalid_input_is_400_and_names_the_field(
    admin: aiohttp.ClientSession, method: str, path: str, sent: Any, field: str
) -> None:
    async with admin.request(method, path, json=sent) as answer:
        assert answer.status == 400
        body = await problem(answer)
    assert body["code"] == "INVALID_REQUEST"
    assert body["errors"][0]["field"] == field
    assert body["detail"].startswith(f"{field}: ")


@pytest.mark.parametrize(
    "sent",
    [b"", b"{", b"\xff\xfe", b"[" * 60_000, b'{"name": ' + b"9" * 5000 + b"}", b"NaN", b'{"name": "\\ud800"}'],
    ids=["empty", "cut off", "not UTF-8", "deep", "huge number", "NaN", "half a surrogate pair"],
)
async def test_a_body_that_cannot_be_read_is_400(admin: aiohttp.ClientSession, sent: bytes) -> None:
    async with admin.post("/api/v1/users", data=sent, headers={"content-type": "application/json"}) as answer:
        assert answer.status == 400
        body = await problem(answer)
    assert body["errors"][0]["field"] in {"body", "name"}


async def test_names_in_a_body_that_cannot_be_sent_back_are_400_too(admin: aiohttp.ClientSession) -> None:
    sent = b'{"name": "mina", "\\ud800": 1, "' + b"x" * 5000 + b'": 1}'
    async with admin.post("/api/v1/users", data=sent, headers={"content-type": "application/json"}) as answer:
        assert answer.status == 400
        assert len(await answer.read()) < 2000


async def test_a_body_that_is_wrong_everywhere_gets_a_short_answer(admin: aiohttp.ClientSession) -> None:
    sent = io.BytesIO(json.dumps({f"field-{n}": n for n in range(100)}).encode())
    async with admin.post("/api/v1/users", data=sent, headers={"content-type": "application/json"}) as answer:
        assert answer.status == 400
        body = await problem(answer)
    assert len(body["errors"]) == 20
    assert body["detail"].endswith("and 81 more")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer chp_x_y", "Basic YTpi", "Bearer \xe9", "bearer x y"]
)
async def test_bad_credentials_are_401_and_not_ignored(nobody: aiohttp.ClientSession, header: str) -> None:
    async with nobody.get("/api/v1/me", headers={"Authorization": header}) as answer:
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert (await problem(answer))["code"] == "UNAUTHENTICATED"


async def test_without_credentials_nothing_of_the_api_answers(site: Site, nobody: aiohttp.ClientSession) -> None:
    async with nobody.get("/openapi.json") as answer:
        document = await answer.json()
    asked = 0
    for path, operations in document["paths"].items():
        for method in operations if path.startswith("/api/") and path not in {*BY_WAITING_TOKEN, *WAYS_IN} else ():
            url = re.sub(r"\{\w+\}", "x", path.replace("{index}", "0"))
            async with nobody.request(method, url, json={"name": "mina"}) as answer:
                assert answer.status == 401, (method, path)
                asked += 1
    assert asked >= 12


async def test_what_a_tokens_scopes_do_not_allow_is_403(site: Site) -> None:
    reads = await site.token("admin", scopes=frozenset({Scope.READ}))
    writes = await site.token("admin", scopes=frozenset({Scope.READ, Scope.WRITE}))
    async with site.client(reads) as client:
        async with client.get("/api/v1/me") as answer:
            assert (await answer.json())["scopes"] == ["read"]
        async with client.post("/api/v1/users/admin/tokens") as answer:
            assert answer.status == 403
            assert (await problem(answer))["code"] == "FORBIDDEN"
    async with site.client(writes) as client:
        async with client.get("/api/v1/users") as answer:
            assert answer.status == 403
        async with client.post("/api/v1/users", json={"name": "mina"}) as answer:
            assert answer.status == 403
        async with client.post("/api/v1/users/admin/tokens", json={"scopes": ["admin"]}) as answer:
            assert answer.status == 403


async def test_a_malformed_id_is_404_like_an_unknown_one(admin: aiohttp.ClientSession) -> None:
    bodies = []
    for name in ("nobody-here", "Not%20A%20Name", "%00", "%ff", "..%2f..", "a" * 10_000, "%F0%9F%98%80"):
        async with admin.get(f"/api/v1/users/{name}") as answer:
            assert answer.status == 404, name
            bodies.append(await problem(answer))
    # An encoded slash is a slash: there is no such route, rather than no such user.
    assert len({body["detail"] for body in bodies}) == 2
    for path in ("tokens/NOT-AN-ID", "tokens/unknown", "sessions/%00", "sessions/unknown"):
        async with admin.delete(f"/api/v1/users/admin/{path}") as answer:
            assert answer.status == 404, path


async def test_somebody_elses_things_are_404_like_things_that_are_not_there(site: Site) -> None:
    for name in ("mina", "jun"):
        await site.services.people.create_user(operator(), name, Role.TEACHER)
    async with site.client(await site.token("mina")) as mina:
        for path in ("", "/tokens", "/sessions"):
            answers = []
            for name in ("jun", "nobody-here"):
                async with mina.get(f"/api/v1/users/{name}{path}") as answer:
                    answers.append((answer.status, await answer.json()))
            assert answers[0] == answers[1]
            assert answers[0][0] == 404
            async with mina.get(f"/api/v1/users/mina{path}") as answer:
                assert answer.status == 200


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/api/v1/users", "HEAD, GET, POST"),
        ("PUT", "/api/v1/users/admin", "HEAD, GET, PATCH, DELETE"),
        ("GET", "/logout", "POST"),
        ("HEAD", "/logout", "POST"),
        ("POST", "/healthz", "HEAD, GET"),
        ("POST", "/openapi.json", "HEAD, GET"),
        ("POST", "/static/codehub.css", "GET, HEAD"),
        ("OPTIONS", "/api/v1/me", "HEAD, GET"),
    ],
)
async def test_a_method_that_is_not_there_is_405_and_says_which_are(
    nobody: aiohttp.ClientSession, method: str, path: str, allow: str
) -> None:
    async with nobody.request(method, path) as answer:
        assert answer.status == 405
        assert answer.headers["allow"] == allow
        if method != "HEAD":
            assert (await problem(answer))["code"] == "METHOD_NOT_ALLOWED"


async def test_a_slash_too_many_is_404_and_no_redirect_to_wherever_the_host_header_says(
    admin: aiohttp.ClientSession,
) -> None:
    async with admin.get("/api/v1/users/", allow_redirects=False, headers={"Host": "192.0.2.7"}) as answer:
        assert answer.status == 404


async def test_a_whole_number_may_be_written_with_a_point(admin: aiohttp.ClientSession) -> None:
    async with admin.post("/api/v1/users/admin/tokens", json={"expires_in_days": 7.0}) as answer:
        assert answer.status == 201


async def test_a_taken_name_is_409(admin: aiohttp.ClientSession) -> None:
    async with admin.post("/api/v1/users", json={"name": "mina"}) as answer:
        assert answer.status == 201
        assert (await answer.json())["role"] == "learner"
    async with admin.post("/api/v1/users", json={"name": "mina", "role": "teacher"}) as answer:
        assert answer.status == 409
        assert (await problem(answer))["code"] == "USER_EXISTS"


async def test_a_way_in_for_somebody_who_is_locked_out_is_409(admin: aiohttp.ClientSession) -> None:
    async with admin.post("/api/v1/users", json={"name": "mina"}):
        pass
    async with admin.patch("/api/v1/users/mina", json={"active": False}) as answer:
        assert (await answer.json())["active"] is False
    for path in ("login-links", "tokens"):
        async with admin.post(f"/api/v1/users/mina/{path}") as answer:
            assert answer.status == 409
            assert (await problem(answer))["code"] == "USER_DEACTIVATED"


async def test_the_last_admin_is_409(admin: aiohttp.ClientSession) -> None:
    async with admin.patch("/api/v1/users/admin", json={"active": False}) as answer:
        assert answer.status == 409
        assert (await problem(answer))["code"] == "LAST_ADMIN"


async def test_a_body_that_announces_to_be_too_large_is_413(admin: aiohttp.ClientSession) -> None:
    async with admin.post("/api/v1/users", data=io.BytesIO(b" " * (BIG + 1))) as answer:
        assert answer.status == 413
        assert (await problem(answer))["code"] == "TOO_LARGE"


async def test_a_body_that_turns_out_too_large_on_the_way_is_413(site: Site) -> None:
    """Byte by byte, because a client library stops listening while it still sends."""
    host, port = site.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /api/v1/users HTTP/1.1\r\nHost: localhost\r\n")
    writer.write(b"Authorization: Bearer an-admin-token-for-tests\r\n")
    writer.write(b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(BIG // 4096 + 1):
        writer.write(b"1000\r\n" + b" " * 4096 + b"\r\n")
        await writer.drain()
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in head
    body = await asyncio.wait_for(reader.read(), 10)  # and the connection ends
    assert b'"code":"TOO_LARGE"' in body
    writer.close()


async def test_a_database_that_is_away_is_503_with_a_time_to_come_back(
    settings: Settings, clock: ManualClock, database_url: str
) -> None:
    async with relayed(database_url) as (url, relay), serving_with(settings, clock, database_url=url) as site:
        token = await site.token("admin")
        async with site.client(token) as admin:
            await relay.cut()
            async with admin.get("/api/v1/users") as answer:
                assert answer.status == 503
                assert int(answer.headers["retry-after"]) >= 1
                body = await problem(answer)
            assert body["code"] == "UNAVAILABLE"
            assert "relay-" not in body["detail"]  # where our servers are is in the log
            async with admin.get("/", headers={"Accept": "text/html"}) as answer:
                assert answer.status == 503
                assert answer.headers["content-type"] == "text/html; charset=utf-8"
            async with admin.get("/readyz") as answer:
                assert answer.status == 503
                assert (await answer.json())["checks"]["redis"] == "ok"
            async with admin.get("/healthz") as answer:
                assert answer.status == 200
            await relay.mend()
            async with admin.get("/api/v1/users") as answer:
                assert answer.status == 200


async def test_a_mistake_of_ours_is_500_with_headers_and_a_request_id_and_tells_nothing(
    services: Services, site: Site, admin: aiohttp.ClientSession
) -> None:
    async with services.database.connection() as c:
        await c.execute("ALTER TABLE users RENAME COLUMN role TO roll")
    async with admin.get("/api/v1/users") as answer:
        assert answer.status == 500
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert len(answer.headers["x-request-id"]) == 16
        body = await problem(answer)
    assert body["code"] == "INTERNAL_SERVER_ERROR"
    assert "roll" not in str(body)


async def test_a_browser_that_gets_lost_reads_a_page_and_a_program_a_problem(nobody: aiohttp.ClientSession) -> None:
    for path, accept, media_type in (
        ("/nowhere", "text/html,*/*", "text/html; charset=utf-8"),
        ("/nowhere", "*/*", "application/problem+json"),
        ("/api/v1/nowhere", "text/html,*/*", "application/problem+json"),
    ):
        async with nobody.get(path, headers={"Accept": accept}) as answer:
            assert answer.status == 404
            assert answer.headers["content-type"] == media_type
            if "html" in media_type:
                assert answer.headers["x-request-id"] in await answer.text()
