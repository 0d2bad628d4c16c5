"""`GET /api/v1/blueprint-schema`: the same as the file in the documentation."""

import json
import pathlib

import aiohttp
import pytest

from codehub.web.services import Services
from tests.web.server import serving

SCHEMA = pathlib.Path(__file__).parents[2] / "docs" / "blueprint.schema.json"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_schema_is_published_as_it_is_in_the_documentation(services: Services, method: str) -> None:
    await services.people.ensure_first_admin()
    async with serving(services) as site, site.admin() as admin, site.client() as nobody:
        async with nobody.request(method, "/api/v1/blueprint-schema") as answer:
            assert answer.status == 401
        async with admin.request(method, "/api/v1/blueprint-schema") as answer:
            assert answer.status == 200
            assert answer.content_type == "application/schema+json"
            if method == "GET":
                assert await _json(answer) == json.loads(SCHEMA.read_text(encoding="utf-8"))


async def _json(answer: aiohttp.ClientResponse) -> object:
    return json.loads(await answer.text())
