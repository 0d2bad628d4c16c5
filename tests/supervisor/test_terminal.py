"""`codehub serve` on a terminal: what matters, in sentences, and nothing else; the log file has the rest."""

import asyncio
import json
import os
import pathlib
import re
import signal

from tests.platform import Platform


async def test_a_terminal_shows_what_matters_and_the_log_has_everything(data_dir: pathlib.Path) -> None:
    platform = Platform(data_dir)
    platform.on_a_terminal = True
    try:
        await asyncio.to_thread(platform.start)
        async with platform.client() as client, client.get("/api/v1/me") as answer:
            request_id = answer.headers["x-request-id"]
        id_ = await _a_running_workspace(platform)
        os.kill(platform.children()["api"], signal.SIGKILL)
        await platform.wait_for("/readyz", 200)
        assert platform.process
        platform.process.send_signal(signal.SIGINT)  # Ctrl-C
        assert await asyncio.to_thread(platform.process.wait, 60) == 0
        platform.process = None
        shown = [line for line in platform.output().replace("\r", "").splitlines() if line.strip()]
        said = [re.sub(r"^\d\d:\d\d:\d\d  ", "", line) for line in shown]
        first, *_, last = said
        assert first == f"Starting (data {data_dir}, log {data_dir}/log/codehub.log)"
        assert last == "Stopped"
        assert any(
            line.startswith("Warning: Process ended, starting it again (process api, exit code -9") for line in said
        )
        assert "  One workspace goes on running, and the next start finds what runs." in platform.output()
        assert not [line for line in said if "Request" in line or "/api/v1" in line or line.startswith("{")]
        kept = [json.loads(line) for line in (data_dir / "log" / "codehub.log").read_text().splitlines()]
        assert [line["path"] for line in kept if line.get("request_id") == request_id] == ["/api/v1/me"]
        assert {line["role"] for line in kept} >= {"serve", "api", "coordinator"}
        assert id_
    finally:
        platform.stop()
        platform.end_workspaces()


async def _a_running_workspace(platform: Platform) -> str:
    async with asyncio.timeout(60), platform.client() as client:
        async with client.post("/api/v1/workspaces", json={"name": "lab", "template": "terminal"}) as answer:
            id_: str = (await answer.json())["id"]
        while True:
            async with client.get(f"/api/v1/workspaces/{id_}") as answer:
                if (await answer.json())["phase"] == "RUNNING":
                    return id_
            await asyncio.sleep(0.1)
