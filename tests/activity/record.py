"""Records what the proxy sees of a real IDE: `python -m tests.activity.record jupyterlab|code-server`.

The real engine stands between a real browser and the real program; what its observers and its director see is written
down, frame by frame, with marks that say what was done. `recordings.py` reads it back. Nothing in it is secret: no
headers are kept, and the program that was recorded is gone.
"""

import argparse
import asyncio
import contextlib
import pathlib
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from codehub import settings as config
from codehub.proxy.model import Address, Decision, Forward, RequestHead
from codehub.templates import programs
from tests.activity import ides, recordings
from tests.activity.chromium import Tab, browser
from tests.proxy.harness import Proxy, ToOne

IDE_FOLDER = config.load().storage.data_dir  # where `codehub ide install` puts IDEs


class Notes:
    """Takes everything down, with the time since the beginning."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []
        self._begun = time.monotonic()
        self._tunnels = 0

    def note(self, *what: Any) -> None:
        self.entries.append([round(time.monotonic() - self._begun, 3), *what])

    def mark(self, name: str) -> None:
        print(f"{time.monotonic() - self._begun:7.1f} s  {name}", flush=True)
        self.note("mark", name)

    def request(self, head: RequestHead) -> None:
        if not head.upgrade:
            self.note("request", head.method.decode(), head.target.decode())

    def observe(self, head: RequestHead) -> "Watcher":
        self._tunnels += 1
        self.note("open", self._tunnels, head.target.decode())
        return Watcher(self, self._tunnels)


class OneWay:
    def __init__(self, notes: Notes, tunnel: int, *, from_client: bool) -> None:
        self._notes = notes
        self._what = ("data", tunnel, from_client)

    def follow(self, data: bytes) -> None:
        self._notes.note(*self._what, data)


class Watcher:
    def __init__(self, notes: Notes, tunnel: int) -> None:
        self._notes = notes
        self._tunnel = tunnel
        self.from_client = OneWay(notes, tunnel, from_client=True)
        self.from_upstream = OneWay(notes, tunnel, from_client=False)

    def closed(self) -> None:
        self._notes.note("close", self._tunnel)


@contextlib.contextmanager
def recorded(upstream: Address, notes: Notes) -> Iterator[str]:
    """The engine in front of one upstream; yields its URL."""
    forward = Forward(upstream, observe=notes.observe, drop=frozenset({b"sec-websocket-extensions"}))
    director = ToOne(forward)

    def decide(head: RequestHead) -> Decision:
        notes.request(head)
        return forward

    director.decide_by = decide
    proxy = Proxy(director)
    try:
        yield f"http://127.0.0.1:{proxy.port}"
    finally:
        proxy.close()


@contextlib.contextmanager
def started(ide: str, folder: pathlib.Path) -> Iterator[Address]:
    """The IDE on a Unix socket, with a home of its own."""
    home = folder / "home"
    ides.furnish(home)
    path = folder / "sock"
    words = [f"--socket={path}", "--auth=none", "--disable-telemetry", "--disable-update-check", str(home)]
    words += ["--disable-workspace-trust", "--disable-getting-started-override"]
    if ide == "jupyterlab":
        words = ["--no-browser", f"--ServerApp.sock={path}", f"--ServerApp.root_dir={home}", "--allow-root"]
        words += ["--IdentityProvider.token=", "--LabApp.news_url=", "--LabApp.extension_manager=readonly"]
    program = programs.find({"jupyterlab": "jupyter-lab"}.get(ide, ide), IDE_FOLDER)
    assert program, f"{ide} is not installed"
    environment = {"HOME": str(home), "PATH": ":".join(programs.folders(IDE_FOLDER)), "SHELL": "/bin/bash"}
    log = (folder / "log").open("wb")
    # In namespaces of its own: an IDE lists the processes and ports it sees, and this machine's are nobody's business.
    apart = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
    command = ["sh", "-c", f"{sys.executable} -m http.server 8123 & exec {shlex.join([program, *words])}"]
    process = subprocess.Popen([*apart, *command], env=environment, stdout=log, stderr=log, cwd=home)
    try:
        while not answers(path):
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.2)
        yield Address(path=str(path))
    finally:
        process.kill()  # of `unshare`, which takes the rest with it; it would not listen to anything milder
        process.wait()


def answers(path: pathlib.Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


async def record(ide: str, notes: Notes, url: str, *, settle: float, idle: float) -> None:
    loaded, actions = {
        "jupyterlab": (ides.jupyter_loaded, ides.JUPYTER),
        "code-server": (ides.code_server_loaded, ides.CODE_SERVER),
    }[ide]
    async with browser() as chromium:
        notes.mark("load")
        tab = await chromium.open(f"{url}{'/lab' if ide == 'jupyterlab' else '/'}")
        await loaded(tab)
        await asyncio.sleep(settle)
        notes.mark("nothing, visible")
        await asyncio.sleep(idle)
        for action in actions:
            await perform(tab, notes, action)
        notes.mark("afterwards")
        await asyncio.sleep(settle)
        notes.mark("nothing, visible, things open")
        await asyncio.sleep(idle)
        await chromium.hide(tab)
        notes.mark("hide")
        await asyncio.sleep(15)
        notes.mark("nothing, hidden")
        await asyncio.sleep(idle * 2)
        notes.mark("end")


async def perform(tab: Tab, notes: Notes, action: ides.Action) -> None:
    notes.mark(f"do: {action.name}")
    await action.do(tab)
    await asyncio.sleep(action.lasts)
    notes.mark("pause")
    await asyncio.sleep(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ide", choices=["jupyterlab", "code-server"])
    parser.add_argument("--settle", type=float, default=40.0, help="seconds to let it come to rest")
    parser.add_argument("--idle", type=float, default=90.0, help="seconds of nothing")
    parser.add_argument("--out", type=pathlib.Path, default=recordings.FOLDER)
    chosen = parser.parse_args()
    notes = Notes()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-record-"))
    try:
        with started(chosen.ide, folder) as upstream, recorded(upstream, notes) as url:
            asyncio.run(record(chosen.ide, notes, url, settle=chosen.settle, idle=chosen.idle))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        recordings.save(chosen.out / f"{chosen.ide}.jsonl.zst", notes.entries)


if __name__ == "__main__":
    main()
