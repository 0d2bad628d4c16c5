"""A JupyterLab in a workspace of the real runtime, and its kernels, as a notebook's page speaks to them."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping

import aiohttp

from codehub.runtimes.process import ProcessRuntime
from codehub.templates import loader
from tests.contracts.harness import log_has, until
from tests.runtimes.test_warm import begun, loaded

SECONDS = 120.0
COLD = b" is started cold: "


class Kernel:
    """One kernel, and the channel to it."""

    def __init__(self, lab: "Lab", id_: str) -> None:
        self._lab = lab
        self.id = id_

    async def run(self, code: str, seconds: float = SECONDS) -> str:
        """What it prints; of an error, its name and value."""
        async with self._lab.client.ws_connect(f"{self._lab.base}/api/kernels/{self.id}/channels") as channel:
            return await _executed(channel, code, seconds)

    async def pid(self) -> int:
        return int(await self.run("import os; print(os.getpid())"))

    async def ask(self, verb: str) -> None:
        async with self._lab.client.post(f"{self._lab.base}/api/kernels/{self.id}/{verb}") as answer:
            assert answer.status in {200, 204}, await answer.text()

    async def end(self) -> None:
        async with self._lab.client.delete(f"{self._lab.base}/api/kernels/{self.id}") as answer:
            assert answer.status == 204, await answer.text()

    async def cold_because(self) -> str:
        """As its server's log says; empty: it is warm."""
        log = await log_has(self._lab.runtime, self._lab.id, f"Kernel started: {self.id}".encode())
        reasons = [line.partition(COLD)[2] for line in log.splitlines() if self.id.encode() + COLD in line]
        return reasons[-1].decode() if reasons else ""


async def _executed(channel: aiohttp.ClientWebSocketResponse, code: str, seconds: float) -> str:
    header = {"msg_id": uuid.uuid4().hex, "username": "", "session": uuid.uuid4().hex, "msg_type": "execute_request"}
    header |= {"version": "5.3", "date": "2026-01-01T00:00:00Z"}
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "buffers": []}
    await channel.send_json({**message, "channel": "shell"})
    said = ""
    done: set[str] = set()
    async with asyncio.timeout(seconds):
        while done != {"idle", "reply"}:
            told = await channel.receive_json()
            if told["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            match told["msg_type"], told["content"]:
                case "stream", {"text": text}:
                    said += text
                case "error", {"ename": name, "evalue": value}:
                    said += f"{name}: {value}"
                case "status", {"execution_state": "idle"}:
                    done.add("idle")
                case "execute_reply", _:
                    done.add("reply")
    return said


class Lab:
    def __init__(self, runtime: ProcessRuntime, id_: str, client: aiohttp.ClientSession) -> None:
        self.runtime, self.id, self.client = runtime, id_, client
        self.base = f"http://localhost/w/{id_}"

    async def kernel(self, **given: str) -> Kernel:
        async with self.client.post(f"{self.base}/api/kernels", json={"name": "python3", **given}) as answer:
            assert answer.status == 201, await answer.text()
            return Kernel(self, (await answer.json())["id"])

    async def inside(self, command: str) -> str:
        done = await self.runtime.exec(self.id, ["sh", "-c", command], timeout_seconds=60)
        return done.output.decode().strip()

    async def kernel_parents(self) -> list[int]:
        """Their pids inside; those that have ended do not count."""
        return [int(word) for word in (await self.inside("pgrep -x -r S,R,T,D codehub-kernels")).split()]

    async def log(self) -> str:
        return b"".join([piece async for piece in self.runtime.logs(self.id)]).decode()


@contextlib.asynccontextmanager
async def lab(
    runtime: ProcessRuntime, id_: str = "w1", *, warm: bool = True, home: Mapping[str, str] | None = None
) -> AsyncIterator[Lab]:
    """Started as the template says, from a warm parent or without one; with these files in its home."""
    template = loader.read(loader.BUILTIN / "jupyterlab.toml")
    await runtime.create_volume(id_, "g1")
    await runtime.put(id_, {name: text.encode() for name, text in (home or {}).items()})
    if warm:
        await runtime.warm_up(template)
        await loaded(runtime)
    cold = await begun(runtime, id_, template)
    assert (cold is None) == warm, cold
    async with _client(runtime, id_) as client:
        started = Lab(runtime, id_, client)
        try:
            yield started
        except Exception as e:
            e.add_note((await started.log())[-3000:])
            raise


@contextlib.asynccontextmanager
async def _client(runtime: ProcessRuntime, id_: str) -> AsyncIterator[aiohttp.ClientSession]:
    container = await runtime.container(id_)
    assert container
    connector = aiohttp.UnixConnector(str(container.address.socket))
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        async with client.get(f"http://localhost/w/{id_}/lab") as page:
            assert page.status == 200
        (token,) = [cookie.value for cookie in client.cookie_jar if cookie.key == "_xsrf"]
        client.headers["X-XSRFToken"] = token
        yield client


async def ended(lab_: Lab, pid: int) -> None:
    """Also buried: there is no such process any more."""

    async def look() -> bool:
        return await lab_.inside(f"test -e /proc/{pid} || echo gone") == "gone"

    await until(look)
