"""Runs a verb in a process that is ended by SIGKILL when it first reaches a given line; started by `test_crashes`.

Lines are those that the verb really executes, found by running it once to its end. On standard input, one per line:
data directory, kind, verb, and the point, or nothing for a run to the end. For each, a forked copy does it (forked, so
that hundreds of points cost hundreds of forks and not hundreds of interpreters), and its exit code is printed with the
lines it went through.
"""

import asyncio
import dataclasses
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

from codehub.runtimes.process import ProcessRuntime
from codehub.templates.model import StarterFile
from tests.contracts.harness import archive_of, open_runtime, source
from tests.contracts.workloads import server, workload

# Those with effects: to be ended in a pure one is to be ended before the next effect.
TRACED = ("process", "lifecycle", "volumes", "files", "uids", "cgroups", "warm")
FOLDER = os.path.join("codehub", "runtimes") + os.sep  # noqa: PTH118


async def place(runtime: ProcessRuntime) -> None:
    await runtime.unpack("w1", "g1", archive_of({"note": "kept"}), source())


async def start_warm(runtime: ProcessRuntime) -> None:
    template = server()
    assert template.process
    template = dataclasses.replace(template, process=dataclasses.replace(template.process, warm=True))
    await runtime.warm_up(template)
    await asyncio.gather(*runtime._loads)
    assert await runtime.start(workload(template)) is None


STARTER = (StarterFile("a/note", b"from the start"), StarterFile("run", b"#!/bin/sh\n", executable=True))
VERBS: dict[str, Callable[[ProcessRuntime], Awaitable[object]]] = {
    "create": lambda runtime: runtime.create_volume("w1", "g1"),
    "furnish": lambda runtime: runtime.create_volume("w1", "g1", STARTER),
    "place": place,
    "park": lambda runtime: runtime.park_volume("w1", "g1"),
    "unpark": lambda runtime: runtime.unpark_volume("w1", "g1", "g2"),
    "delete": lambda runtime: runtime.delete_volume("w1", "g1"),
    "start": lambda runtime: runtime.start(workload(server())),
    "start_warm": start_warm,
    "stop": lambda runtime: runtime.stop("w1", 5),
}


class Tracer:
    def __init__(self, point: str | None) -> None:
        self._point = point
        self.seen: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> "Tracer | None":
        path = frame.f_code.co_filename
        if FOLDER not in path or pathlib.PurePath(path).stem not in TRACED:
            return None
        if event == "line":
            line = f"{pathlib.PurePath(path).name}:{frame.f_lineno}"
            self.seen[line] = None
            if line == self._point:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


def main() -> None:
    for request in sys.stdin:
        hear, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(hear)
            _carry_out(tell, *request.split())
            os._exit(0)
        os.close(tell)
        with os.fdopen(hear) as answer:
            lines = answer.read()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), lines, flush=True)


def _carry_out(tell: int, data_dir: str, kind: str, verb: str, point: str | None = None) -> None:
    tracer = Tracer(point)
    runtime = open_runtime(pathlib.Path(data_dir), kind)
    threading.settrace(tracer)
    sys.settrace(tracer)
    asyncio.run(_run(verb, runtime))
    sys.settrace(None)
    os.write(tell, " ".join(tracer.seen).encode())


async def _run(verb: str, runtime: ProcessRuntime) -> None:
    await VERBS[verb](runtime)


if __name__ == "__main__":
    main()
