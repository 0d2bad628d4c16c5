"""The three roles as processes of their own that share nothing but servers, settings and a key: as on many machines."""

import asyncio
import contextlib
import pathlib
import signal
import socket
import subprocess
from typing import Any

import aiohttp

from tests.platform import ADMIN_TOKEN, CODEHUB, clean_environment

KEY = "a-signing-key-for-tests"
SECONDS = 60.0


def free_port() -> int:
    """One that nobody had a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Role:
    """One process, on a data directory that nobody needs afterwards."""

    def __init__(self, kind: str, data_dir: pathlib.Path, env: dict[str, str]) -> None:
        self.kind = kind
        self.port, self.peer_port, self.health_port = free_port(), free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = data_dir.parent / f"{data_dir.name}-{self.port}.log"
        own = {
            "CODEHUB_DATA_DIR": str(data_dir),
            "CODEHUB_PORT": str(self.port),
            "CODEHUB_HEALTH_LISTEN": f"127.0.0.1:{self.health_port}",
            "CODEHUB_PROXY_WORKERS": "1",
            "CODEHUB_PEER_LISTEN": f"127.0.0.1:{self.peer_port}",
        }
        data_dir.mkdir(exist_ok=True)
        with self._log.open("ab") as log:
            environment = clean_environment(**{**env, **own})
            self.process = subprocess.Popen([*CODEHUB, kind], env=environment, stdout=log, stderr=log)

    def said(self) -> str:
        return self._log.read_text()

    async def health(self, path: str = "/readyz") -> tuple[int, str]:
        """0: no answer."""
        timeout = aiohttp.ClientTimeout(total=10)
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            url = f"http://127.0.0.1:{self.health_port}{path}"
            async with aiohttp.ClientSession(timeout=timeout) as client, client.get(url) as answer:
                return answer.status, await answer.text()
        return 0, ""

    async def ready(self) -> "Role":
        async with asyncio.timeout(SECONDS):
            while (await self.health())[0] != 200:
                assert self.process.poll() is None, self.said()
                await asyncio.sleep(0.05)
        return self

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    async def stopped(self) -> int:
        return await asyncio.to_thread(self.process.wait, SECONDS)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


class Apart:
    """So many of each; coordinators are on one machine, because workspaces are processes of it."""

    def __init__(self, folder: pathlib.Path, database_url: str, redis_url: str) -> None:
        self._folder, self.machine = folder, folder / "machine"
        self._env = {
            "CODEHUB_DATABASE_URL": database_url,
            "CODEHUB_REDIS_URL": redis_url,
            "CODEHUB_SECRET_KEY": KEY,
            "CODEHUB_ARCHIVE_URL": f"file://{folder}/archives",
            "COORDINATOR_IDLE_INTERVAL": "1",
        }
        self.roles: list[Role] = []

    def start(self, kind: str, **env: str) -> Role:
        own = self._folder / f"{kind}{len(self.roles)}"
        self.roles.append(Role(kind, self.machine if kind == "coordinator" else own, {**self._env, **env}))
        return self.roles[-1]

    async def start_all(self) -> None:
        apis = [self.start("api", CODEHUB_LEAVE_SECONDS="2") for _ in range(2)]
        urls = ",".join(f"https://127.0.0.1:{api.peer_port}" for api in apis)
        for _ in range(2):
            self.start("coordinator")
            self.start("proxy", CODEHUB_API_URL=urls)
        await asyncio.gather(*(role.ready() for role in self.roles))

    def of(self, kind: str) -> list[Role]:
        return [role for role in self.roles if role.kind == kind and role.process.poll() is None]

    def end(self) -> None:
        for role in self.roles:
            if role.process.poll() is None:
                role.kill()


@contextlib.asynccontextmanager
async def through(proxy: Role) -> Any:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(proxy.url, headers=headers, timeout=timeout) as client:
        yield client
