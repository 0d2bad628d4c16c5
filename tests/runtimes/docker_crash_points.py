"""Runs a verb of the Docker runtime in a process that is ended by SIGKILL at a given call to the engine.

Started by `test_docker_crashes`. All effects are calls to the engine, so that a point is the number of a call, and
whether the process ends just before it or just after its answer. On standard input, one per line: data directory, verb,
and the point, or nothing for a run to the end. For each, a forked copy does it; its exit code is printed with the
number of calls that it made.
"""

import asyncio
import os
import pathlib
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from codehub.runtimes.base import Runtime
from codehub.runtimes.docker.engine import Engine
from codehub.runtimes.docker.runtime import DockerRuntime
from codehub.templates.model import StarterFile
from tests import docker_engine
from tests.contracts.harness import archive_of, source
from tests.contracts.workloads import server, workload

STARTER = (StarterFile("a/note", b"from the start"),)


async def place(runtime: Runtime) -> None:
    await runtime.unpack("w1", "g1", archive_of({"note": "kept"}), source())


VERBS: dict[str, Callable[[Runtime], Awaitable[object]]] = {
    "create": lambda runtime: runtime.create_volume("w1", "g1", STARTER),
    "place": place,
    "park": lambda runtime: runtime.park_volume("w1", "g1"),
    "unpark": lambda runtime: runtime.unpark_volume("w1", "g1", "g2"),
    "delete": lambda runtime: runtime.delete_volume("w1", "g1"),
    "start": lambda runtime: runtime.start(workload(server())),
    "stop": lambda runtime: runtime.stop("w1", 5),
}


class Counted(Engine):
    def __init__(self, socket: str, point: str) -> None:
        super().__init__(socket)
        self._moment, _, number = point.partition("-")
        self._number = int(number or 0)
        self.calls = 0

    async def call(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        number = self.calls
        self._end_at("before", number)
        answer = await super().call(*arguments, **options)
        self._end_at("after", number)
        return answer

    def _end_at(self, moment: str, number: int) -> None:
        if (moment, number) == (self._moment, self._number):
            os.kill(os.getpid(), signal.SIGKILL)


def serve(carry_out: Callable[..., None]) -> None:
    for request in sys.stdin:
        hear, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(hear)
            carry_out(tell, *request.split())
            os._exit(0)
        os.close(tell)
        with os.fdopen(hear) as answer:
            calls = answer.read()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), calls or "0", flush=True)


def _carry_out(tell: int, data_dir: str, verb: str, point: str = "") -> None:
    runtime = docker_engine.open_runtime(pathlib.Path(data_dir))
    engine = Counted(runtime.engine.socket, point)
    for part in (runtime, runtime._volumes, runtime._jobs, runtime._lifecycle):
        name = "engine" if part is runtime else "_engine"
        assert hasattr(part, name)
        setattr(part, name, engine)
    asyncio.run(_run(verb, runtime))
    os.write(tell, str(engine.calls).encode())


async def _run(verb: str, runtime: DockerRuntime) -> None:
    await VERBS[verb](runtime)


if __name__ == "__main__":
    serve(_carry_out)
