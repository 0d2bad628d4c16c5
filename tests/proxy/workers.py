"""The workers of `codehub proxy`, on a socket that the test holds. `proxy_process` is what it starts."""

import contextlib
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

from tests.proxy.harness import PATIENCE, wait_until


class Workers:
    def __init__(self, upstream: str, count: int, drain_seconds: float) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = listener.getsockname()[1]
        arguments = [str(listener.fileno()), upstream, str(count), str(drain_seconds)]
        command = [sys.executable, "-m", "tests.proxy.proxy_process", *arguments]
        self.parent = subprocess.Popen(command, pass_fds=[listener.fileno()])
        listener.close()  # theirs alone from here on
        self._count = count

    def pids(self) -> set[int]:
        parent = self.parent.pid
        return {int(pid) for pid in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}

    def ready(self) -> None:
        wait_until("all workers", lambda: len(self.pids()) == self._count)
        self.connect().close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def stop(self) -> int:
        if self.parent.poll() is None:
            self.parent.send_signal(signal.SIGTERM)
        return self.parent.wait(PATIENCE)


@contextlib.contextmanager
def running(upstream: str, count: int = 1, drain_seconds: float = 10) -> Iterator[Workers]:
    workers = Workers(upstream, count, drain_seconds)
    try:
        workers.ready()
        yield workers
    finally:
        workers.stop()


def memory(pid: int, what: str = "VmHWM") -> int:
    """Bytes; by default the most there ever were."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{what}:")[2].split()[0]) * 1024
