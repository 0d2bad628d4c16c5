"""Reading what was sent costs little, whoever sends it: it is refused by its size and its number, before it is read."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
from prometheus_client import REGISTRY

from codehub.settings import Settings
from codehub.web import forms
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving_with

FORM = {"content-type": "application/x-www-form-urlencoded"}
# Texts that may be longer than most, by their titles. A waiting token carries a name of up to 200 characters, in
# whatever script; a password of 200 may be sent decomposed; what is asked of a teacher is a sentence or two.
LONGER = {"Waiting Token": 2_000, "Password": 800, "Current Password": 800, "Message": 500, "Git Url": 500}


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


TOKENS = "/api/v1/users/admin/tokens"


async def test_a_body_of_the_api_is_small_unless_the_operator_says_otherwise(site: Site) -> None:
    async with sending(site, TOKENS, "Content-Length: 65537") as (reader, _):
        assert await status_of(reader) == 413


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"scopes": ["x"] * 240_000}, "scopes"),
        ({"scopes": ["read"] * 140_000}, "scopes"),
        ({f"k{n}": 1 for n in range(80_000)}, "body"),
    ],
    ids=["wrong items", "right items", "unknown fields"],
)
async def test_a_body_that_is_wrong_in_many_places_is_refused_by_their_number(
    settings: Settings, clock: ManualClock, sent: dict[str, Any], field: str
) -> None:
    """Also where bodies may be large: each place would have an error of its own."""
    body = io.BytesIO(json.dumps(sent).encode())
    async with (
        serving_with(settings, clock, max_body_bytes=2_000_000) as site,
        site.admin() as admin,
        admin.post(TOKENS, data=body, headers={"content-type": "application/json"}) as answer,
    ):
        problem = await answer.json()
        assert (answer.status, [e["field"] for e in problem["errors"]]) == (400, [field])


async def test_every_list_and_text_of_a_body_has_a_greatest_length(nobody: aiohttp.ClientSession) -> None:
    async with nobody.get("/openapi.json") as answer:
        document = await answer.json()
    # What an authenticator signs has the browser's form, with members that are not read.
    document["components"]["schemas"]["CreatedCredential"] = {}
    ours = [operations for path, operations in document["paths"].items() if "/passkeys" not in path]
    bodies = [o["requestBody"] for operations in ours for o in operations.values() if "requestBody" in o]
    read = [body["content"]["application/json"] for body in bodies if "text/csv" not in body["content"]]
    parts = [part for content in read for part in within(document, content["schema"])]
    assert {"object", "string", "array"} <= {part.get("type") for part in parts}
    for part in parts:
        if part.get("type") == "string" and "enum" not in part:
            most = 20_000 if texts_of_people(part) else LONGER.get(str(part.get("title")), 300)
            assert part["maxLength"] <= most, part
        if part.get("type") == "array":
            many = part["items"].get("$ref", "").endswith("SessionIn") or part.get("title") == "Learners"  # of a class
            assert part["maxItems"] <= (200 if many else 10), part
        if part.get("type") == "object" and "x-max-bytes" not in part:  # which is measured as a whole
            assert part["additionalProperties"] is False, part


def texts_of_people(part: dict[str, Any]) -> bool:
    return part.get("contentMediaType") == "text/markdown"


def within(document: Any, schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all that it is made of; what may be null, too, has its title outside."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    yield schema
    for part in (
        *({"title": schema.get("title"), **one} for one in schema.get("anyOf", [])),
        *schema.get("properties", {}).values(),
        *([schema["items"]] if "items" in schema else []),
    ):
        yield from within(document, part)
