"""The built-in templates really start, in a sandbox, and answer on their sockets below their base path."""

import asyncio
import pathlib

import aiohttp
import pytest

from codehub.runtimes import terminal_app
from codehub.templates.loader import Templates
from tests.contracts.harness import KINDS, answering, fresh_runtime, log_has
from tests.contracts.workloads import workload


@pytest.mark.parametrize("kind", [KINDS[-1], *(pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS[:-1])])
async def test_jupyterlab_runs_a_cell_of_the_learners_own(kind: str) -> None:
    async with fresh_runtime(kind) as (runtime, data_dir):
        template = Templates.load(None, data_dir).require("jupyterlab")
        await runtime.create_volume("w1", "g1")
        await runtime.start(workload(template))
        container = await answering(runtime, "w1")
        assert container.address.socket
        async with aiohttp.ClientSession(
            "http://lab", connector=aiohttp.UnixConnector(container.address.socket)
        ) as http:
            async with http.get("/w/w1/lab") as page:
                assert (page.status, "JupyterLab" in await page.text()) == (200, True)
            async with http.get("/w/w1/api/contents/") as listing:
                assert listing.status == 200
        code = (
            "from jupyter_client.manager import run_kernel\nwith run_kernel() as k: print(k.execute_interactive('6*7'))"
        )
        ran = await runtime.exec("w1", ["python3", "-c", code])
        assert b"42" in ran.output, ran.output.decode()
        await runtime.stop("w1", 10)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_terminal_is_a_shell_that_outlives_its_page(kind: str) -> None:
    async with fresh_runtime(kind) as (runtime, data_dir):
        template = Templates.load(None, data_dir).require("terminal")
        await runtime.create_volume("w1", "g1")
        await runtime.start(workload(template))
        container = await answering(runtime, "w1")
        assert container.address.socket
        async with aiohttp.ClientSession("http://t", connector=aiohttp.UnixConnector(container.address.socket)) as http:
            for name in ("", "pieces.js", "xterm.js", "fit.js", "terminal.js", "terminal.css"):
                async with http.get(f"/w/w1/{name}") as file:
                    assert (file.status, len(await file.read()) > 200) == (200, True), name
            async with http.ws_connect("/w/w1/ws/main") as first:
                await first.send_json(["stdin", "X=kept; echo $(whoami)-$((6*7))\n"])
                await _until(first, "alice-42")
            async with http.ws_connect("/w/w1/ws/main") as second:
                await second.send_json(["stdin", "echo still-$X\n"])
                await _until(second, "still-kept")
            async with http.get("/w/w1/ws/main", headers=_upgrade("http://evil.example")) as refused:
                assert refused.status == 403


def _upgrade(origin: str) -> dict[str, str]:
    handshake = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    return {"Connection": "Upgrade", "Upgrade": "websocket", "Origin": origin, **handshake}


async def _until(socket: aiohttp.ClientWebSocketResponse, text: str) -> None:
    seen = ""
    async with asyncio.timeout(20):
        while text not in seen:
            kind, *rest = await socket.receive_json()
            seen += rest[0] if kind == "stdout" else ""


def test_xterm_is_found_in_what_is_installed() -> None:
    xterm, fit = terminal_app.scripts()
    assert len(xterm) > 100_000
    assert len(fit) < 10_000


async def test_a_port_template_is_reached_through_its_relay(tmp_path: pathlib.Path) -> None:
    """A program from a template file, as an operator would write it."""
    (tmp_path / "plain.toml").write_text(
        'title = "Files"\nstrip_prefix = true\n[process]\ncommand = ["python3", "-m", "http.server", "{port}"]\n'
    )
    async with fresh_runtime("namespaces") as (runtime, data_dir):
        template = Templates.load(tmp_path, data_dir).require("plain")
        await runtime.create_volume("w1", "g1")
        await runtime.put("w1", {"hello.txt": b"hello"})
        await runtime.start(workload(template))
        container = await answering(runtime, "w1")
        assert container.address.socket
        async with (
            aiohttp.ClientSession("http://x", connector=aiohttp.UnixConnector(container.address.socket)) as http,
            http.get("/hello.txt") as page,
        ):
            assert await page.read() == b"hello"
        await log_has(runtime, "w1", b"GET /hello.txt")
