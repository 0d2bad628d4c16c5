"""jupyterhub-idle-culler on a real hub, for `activity.py`: how many servers a second does one of its passes decide on?

The hub's servers are one small program, so that as many can "run" as the hub and its proxy keep; nothing is culled,
which is the cheaper half of a pass. JupyterHub is installed into the user's cache on first use.
"""

import asyncio
import pathlib
import shutil
import subprocess
import sys
import tempfile

import aiohttp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench.starts import CACHE, HUB_CONFIG, HUB_TOKEN, client_for, ensure_peer, free_port, wait_for

ONE_SERVER = """
import http.server, threading
from jupyterhub.spawner import Spawner
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(200); self.send_header("X-JupyterHub-Version", "6.1.1")
        self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    do_HEAD = do_GET
shared = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=shared.serve_forever, daemon=True).start()
class Shared(Spawner):
    async def start(self): return "127.0.0.1", shared.server_port
    async def stop(self, now=False): pass
    async def poll(self): return None
c.JupyterHub.spawner_class = Shared
c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.active_server_limit = 0
c.JupyterHub.load_roles = [{"name": "bench", "services": ["bench"],
    "scopes": ["admin:users", "admin:servers", "list:users", "read:users:activity", "read:servers", "delete:servers"]}]
"""
ONE_ROUND = """
import asyncio, logging, sys, time
from jupyterhub_idle_culler import cull_idle
async def main():
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        await cull_idle(sys.argv[1], sys.argv[2], inactive_limit=36000, logger=logging.getLogger(), api_page_size=200)
        seconds.append(time.perf_counter() - begun)
    print(min(seconds))
asyncio.run(main())
"""


def decisions_per_second(servers: int) -> float:
    hub, proxy = ensure_peer()
    subprocess.run([str(hub.parent / "pip"), "-q", "install", "jupyterhub-idle-culler"], check=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-culler-"))
    port = free_port()
    values = {"port": port, "hub": free_port(), "proxy_api": free_port(), "proxy": proxy, "ide": "", "python": ""}
    config = HUB_CONFIG.format(folder=folder, token=HUB_TOKEN, **values) + ONE_SERVER
    (folder / "jupyterhub_config.py").write_text(config)
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([str(hub), "-f", "jupyterhub_config.py"], cwd=folder, stdout=quiet, stderr=quiet)
    try:
        url = f"http://127.0.0.1:{port}"
        asyncio.run(_start_servers(url, servers))
        command = [str(CACHE / "jupyterhub" / "bin" / "python"), "-c", ONE_ROUND, f"{url}/hub/api", HUB_TOKEN]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return servers / float(done.stdout)
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


async def _start_servers(url: str, servers: int) -> None:
    await wait_for(url)
    turns = asyncio.Semaphore(8)
    async with client_for(url, f"token {HUB_TOKEN}") as client:
        await asyncio.gather(*(_start(client, turns, f"u{n}") for n in range(servers)))


async def _start(client: aiohttp.ClientSession, turns: asyncio.Semaphore, name: str) -> None:
    async with turns:
        async with client.post(f"/hub/api/users/{name}") as answer:
            assert answer.status == 201, await answer.text()
        async with client.post(f"/hub/api/users/{name}/server") as answer:
            assert answer.status in {201, 202}, await answer.text()
        while True:
            async with client.get(f"/hub/api/users/{name}") as answer:
                if (await answer.json())["servers"].get("", {}).get("ready"):
                    return
            await asyncio.sleep(0.1)
