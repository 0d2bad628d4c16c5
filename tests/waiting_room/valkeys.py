"""A Valkey of one's own: killed, stopped, emptied, failed over. Used by the soak over processes."""

import asyncio
import pathlib
import shutil
import signal
import subprocess

import redis

from codehub.embedded.redis import binary
from tests.waiting_room.clusters import until


class Valkeys:
    """Clients know only `socket`: whoever is the primary listens there."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.socket = folder / "v.sock"
        self._folder = folder
        self._number = 0
        self._primary = self._start(folder / "0", self.socket)

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def _start(self, folder: pathlib.Path, socket: pathlib.Path) -> "subprocess.Popen[bytes]":
        folder.mkdir(exist_ok=True)
        options = [
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--dir",
            str(folder),
            "--save",
            "",
            "--appendonly",
            "yes",
        ]
        command = [str(binary()), *options]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        with redis.Redis(unix_socket_path=str(socket)) as client:
            until(lambda: bool(client.ping()))
        return started

    def ask(self, *words: str) -> object:
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            return client.execute_command(*words)

    def restart(self) -> None:
        """kill -9, and again from its log: what was not written in the last second is gone."""
        self._primary.kill()
        self._primary.wait()
        self._primary = self._start(self._folder / str(self._number), self.socket)

    async def stop_for(self, seconds: float) -> None:
        self._primary.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self._primary.send_signal(signal.SIGCONT)

    async def fail_over(self, behind: float) -> None:
        """To a copy of what the primary had on disk a moment ago: its last writes are lost, and it is another Redis."""
        self._number += 1
        copy = self._folder / str(self._number)
        shutil.copytree(self._folder / str(self._number - 1), copy)
        await asyncio.sleep(behind)
        self._primary.kill()
        self._primary.wait()
        self._primary = self._start(copy, self.socket)

    def end(self) -> None:
        self._primary.send_signal(signal.SIGCONT)
        self._primary.kill()
        self._primary.wait()
