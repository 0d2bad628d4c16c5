"""`codehub hold`, typed into the terminals that people have: it is found there, and keeps the workspace awake."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from tests.contracts.harness import SANDBOXES
from tests.places import a_place
from tests.platform import Platform, running

COMMAND = "codehub hold 1h --reason typed\r"


@pytest.fixture(scope="module", params=SANDBOXES)
def platform(request: pytest.FixtureRequest) -> Iterator[Platform]:
    with a_place() as folder, running(folder / "data", CODEHUB_ISOLATION=request.param) as started:
        yield started


async def a_running(client: aiohttp.ClientSession, template: str) -> str:
    async with client.post("/api/v1/workspaces", json={"name": "lab", "template": template}) as answer:
        id_ = str((await answer.json())["id"])
    while (await workspace(client, id_))["phase"] != "RUNNING":
        await asyncio.sleep(0.1)
    return id_


async def workspace(client: aiohttp.ClientSession, id_: str) -> dict[str, Any]:
    async with client.get(f"/api/v1/workspaces/{id_}") as answer:
        found: dict[str, Any] = await answer.json()
        return found


async def type_into(terminal: aiohttp.ClientWebSocketResponse, typed: str, awaited: str) -> str:
    """What the terminal shows, until it shows this; both IDEs speak terminado's protocol."""
    await terminal.send_json(["stdin", typed])
    shown = ""
    async for message in terminal:
        kind, *rest = json.loads(message.data)
        shown += str(rest[0]) if kind == "stdout" else ""
        if awaited in shown or "not found" in shown:
            return shown
    return shown


async def path_of_terminal(client: aiohttp.ClientSession, template: str, base: str) -> str:
    if template == "terminal":
        return f"{base}ws/main"
    async with client.get(f"{base}lab") as answer:  # its page brings the token that its scripts send
        token = answer.cookies["_xsrf"].value
    async with client.post(f"{base}api/terminals", headers={"X-XSRFToken": token}) as answer:
        assert answer.status == 200, await answer.text()
        return f"{base}terminals/websocket/{(await answer.json())['name']}"


@pytest.mark.parametrize("template", ["terminal", "jupyterlab"])
async def test_what_is_typed_into_a_terminal_keeps_the_workspace_awake(platform: Platform, template: str) -> None:
    async with asyncio.timeout(90), platform.client() as client:
        id_ = await a_running(client, template)
        path = await path_of_terminal(client, template, f"/w/{id_}/")
        async with client.ws_connect(path, origin=platform.url) as terminal:
            shown = await type_into(terminal, COMMAND, "Stays awake until")
        assert "Stays awake until" in shown
        assert (await workspace(client, id_))["keep_awake_reason"] == "typed"
