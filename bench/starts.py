"""From asking for a workspace to having it, minus the IDE's own start-up; beside JupyterHub's local process spawner.

Both start the same small program, one after the other, alternating: ours by `PATCH {"desired_state": "RUNNING"}`
through the front door, JupyterHub by `POST /users/NAME/server` through its API. The program's own start-up, measured
without either, is taken off. Ours runs it isolated, as a user of its own; SimpleLocalProcessSpawner does not.

    python bench/starts.py [--rounds N]

Needs npm for JupyterHub's proxy; JupyterHub itself is installed into the user's cache on first use.
"""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import aiohttp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.platform import Platform

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "codehub-bench"
HUB_TOKEN = "a-token-for-the-benchmark"  # noqa: S105 (of a hub that lives for a minute)
IDE = """
import http.server, os, socket, socketserver, sys, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self): return ""
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(200); self.send_header("X-JupyterHub-Version", "6.1.1")
        self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    do_HEAD = do_GET
if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): daemon_threads = True
    server = Server(sys.argv[1], Handler); os.chmod(sys.argv[1], 0o660)
else:
    url = urllib.parse.urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    server = http.server.ThreadingHTTPServer((url.hostname, url.port), Handler)
server.serve_forever()
"""
HUB_CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.command = ["{proxy}"]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_api}"
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Spawner.cmd = ["{python}", "{ide}"]
c.Spawner.notebook_dir = "{folder}"
c.JupyterHub.load_roles = [{{"name": "bench", "scopes": ["admin:users", "admin:servers"], "services": ["bench"]}}]
c.JupyterHub.services = [{{"name": "bench", "api_token": "{token}"}}]
c.JupyterHub.log_level = "ERROR"
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def ensure_peer() -> tuple[pathlib.Path, pathlib.Path]:
    """JupyterHub and its proxy, installed once."""
    hub = CACHE / "jupyterhub" / "bin" / "jupyterhub"
    proxy = CACHE / "node_modules" / ".bin" / "configurable-http-proxy"
    if not hub.exists():
        subprocess.run([sys.executable, "-m", "venv", str(CACHE / "jupyterhub")], check=True)
        subprocess.run([str(hub.parent / "pip"), "-q", "install", "jupyterhub"], check=True)
    if not proxy.exists():
        if shutil.which("npm") is None:
            raise SystemExit("install npm: JupyterHub's proxy comes from there")
        subprocess.run(["npm", "install", "--silent", "--prefix", str(CACHE), "configurable-http-proxy"], check=True)
    return hub, proxy


async def own_start(ide: pathlib.Path, folder: pathlib.Path) -> float:
    """Seconds from exec to the first answer of the program alone."""
    path = folder / "own.sock"
    path.unlink(missing_ok=True)
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, str(ide), str(path)])  # noqa: ASYNC220 (it is what is measured)
    try:
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_unix_connection(str(path))
                writer.write(b"GET / HTTP/1.0\r\n\r\n")
                await reader.readline()
                writer.close()
                return time.perf_counter() - begun
            await asyncio.sleep(0.002)
    finally:
        process.kill()
        process.wait()


class Ours:
    name = "CodeHub"

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._id = ""

    async def prepare(self, client: aiohttp.ClientSession) -> None:
        body = {"name": "bench", "template": "bench", "desired_state": "STANDBY"}
        async with client.post("/api/v1/workspaces", json=body) as answer:
            self._id = (await answer.json())["id"]
        await self._until(client, "STANDBY")

    async def start(self, client: aiohttp.ClientSession) -> None:
        await self._ask(client, "RUNNING")
        await self._until(client, "RUNNING")

    async def stop(self, client: aiohttp.ClientSession) -> None:
        await self._ask(client, "STANDBY")
        await self._until(client, "STANDBY")

    async def _ask(self, client: aiohttp.ClientSession, state: str) -> None:
        async with client.patch(f"/api/v1/workspaces/{self._id}", json={"desired_state": state}) as answer:
            assert answer.status == 202, await answer.text()

    async def _until(self, client: aiohttp.ClientSession, phase: str) -> None:
        while True:
            async with client.get(f"/api/v1/workspaces/{self._id}") as answer:
                w = await answer.json()
            assert w["phase"] != "ERROR", w
            if w["phase"] == phase and w["operation"] == "NONE":
                return
            await asyncio.sleep(0.01)


class Hub:
    name = "JupyterHub"

    async def prepare(self, client: aiohttp.ClientSession) -> None:
        async with client.post("/hub/api/users/mina") as answer:
            assert answer.status == 201, await answer.text()

    async def start(self, client: aiohttp.ClientSession) -> None:
        async with client.post("/hub/api/users/mina/server") as answer:
            assert answer.status in {201, 202}, await answer.text()
        await self._until(client, ready=True)

    async def stop(self, client: aiohttp.ClientSession) -> None:
        async with client.delete("/hub/api/users/mina/server") as answer:
            assert answer.status in {202, 204}, await answer.text()
        await self._until(client, ready=False)

    async def _until(self, client: aiohttp.ClientSession, *, ready: bool) -> None:
        while True:
            async with client.get("/hub/api/users/mina") as answer:
                server = (await answer.json())["servers"].get("", {})
            if ready == bool(server.get("ready")) and (ready or not server):
                return
            await asyncio.sleep(0.01)


@contextlib.contextmanager
def hub_running(folder: pathlib.Path, ide: pathlib.Path) -> Iterator[str]:
    hub, proxy = ensure_peer()
    port = free_port()
    config = folder / "jupyterhub_config.py"
    values = {
        "port": port,
        "hub": free_port(),
        "proxy_api": free_port(),
        "proxy": proxy,
        "ide": ide,
        "python": sys.executable,
    }
    config.write_text(HUB_CONFIG.format(folder=folder, token=HUB_TOKEN, **values))
    # Its proxy writes a line for every route to the standard output, whatever the hub's level is.
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen([str(hub), "-f", str(config)], cwd=folder, stdout=nowhere, stderr=nowhere)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


async def wait_for(url: str) -> None:
    async with asyncio.timeout(60), aiohttp.ClientSession() as client:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with client.get(f"{url}/hub/api/") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)


def client_for(url: str, header: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(url, headers={"Authorization": header})


async def measure(rounds: int, platform: Platform, hub_url: str, ide: pathlib.Path, folder: pathlib.Path) -> None:
    sides: list[tuple[Ours | Hub, aiohttp.ClientSession, list[float]]] = [
        (Ours(platform), client_for(platform.url, "Bearer an-admin-token-for-tests"), []),
        (Hub(), client_for(hub_url, f"token {HUB_TOKEN}"), []),
    ]
    own: list[float] = []
    for side, client, _ in sides:
        await side.prepare(client)
    for number in range(rounds + 1):
        own.append(await own_start(ide, folder))
        for side, client, seconds in sides:
            begun = time.perf_counter()
            await side.start(client)
            if number:  # the first of each is for warming up
                seconds.append(time.perf_counter() - begun)
            await side.stop(client)
    for _, client, _ in sides:
        await client.close()
    report(statistics.median(own), [(side.name, seconds) for side, _, seconds in sides])


def report(own: float, sides: list[tuple[str, list[float]]]) -> None:
    print(f"the program's own start-up: {own * 1000:.0f} ms (median)")
    medians = []
    for name, seconds in sides:
        added = sorted(1000 * (s - own) for s in seconds)
        medians.append(statistics.median(added))
        p99 = added[min(len(added) - 1, int(len(added) * 0.99))]
        spread = f"{added[0]:.0f}–{added[-1]:.0f}"
        print(f"{name:>10}: adds {medians[-1]:6.0f} ms (median; {spread}), p99 {p99:.0f} ms, n={len(added)}")
    print(f"ratio CodeHub to JupyterHub: {medians[0] / medians[1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-bench-"))
    folder.chmod(0o755)
    ide = folder / "ide.py"
    ide.write_text(IDE)
    templates = folder / "templates"
    templates.mkdir()
    command = json.dumps([sys.executable, "-c", IDE, "{socket}"])
    (templates / "bench.toml").write_text(f'title = "bench"\n[process]\ncommand = {command}\n')
    platform = Platform(folder / "data", CODEHUB_TEMPLATES_DIR=str(templates))
    try:
        platform.start()
        with hub_running(folder, ide) as url:
            asyncio.run(wait_for(url))
            asyncio.run(measure(rounds, platform, url, ide, folder))
    finally:
        platform.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
