"""Runs the real coordinator and kills itself the first time a given line of its own code is reached.

    python -m tests.faults.dying_coordinator FILE:LINE    die there
    python -m tests.faults.dying_coordinator --list OUT   live, and write every line that was reached to OUT

Only lines of what acts are watched: controller, operations, transitions, the runtime and the archives.
"""

import os
import pathlib
import signal
import sys
import threading
from types import FrameType
from typing import Any

import uvloop

import codehub
from codehub.clock import SystemClock
from codehub.roles import coordinator
from codehub.startup import load_settings

ROOT = pathlib.Path(codehub.__file__).parent
WATCHED = (
    *("reconciler/controller.py", "reconciler/operations.py", "reconciler/transitions.py", "reconciler/homes.py"),
    *(
        "runtimes/process.py",
        "runtimes/lifecycle.py",
        "runtimes/volumes.py",
        "runtimes/files.py",
        "archives/service.py",
    ),
)
FILES = {str(ROOT / name): name for name in WATCHED}
DEATH = signal.SIGKILL


class Watcher:
    def __init__(self, die_at: str | None, list_to: pathlib.Path | None) -> None:
        self._die_at = die_at
        self._list_to = list_to
        self._seen: set[str] = set()

    def begin(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self.line if frame.f_code.co_filename in FILES else None

    def line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            place = f"{FILES[frame.f_code.co_filename]}:{frame.f_lineno}"
            if place == self._die_at:
                self._die_at = None
                os.kill(os.getpid(), DEATH)
            if self._list_to and place not in self._seen:
                self._seen.add(place)
                with self._list_to.open("a") as out:
                    out.write(place + "\n")
        return self.line


def main(arguments: list[str]) -> None:
    listing = arguments[0] == "--list"
    watcher = Watcher(None if listing else arguments[0], pathlib.Path(arguments[1]) if listing else None)
    settings = load_settings("coordinator")
    threading.settrace(watcher.begin)
    sys.settrace(watcher.begin)
    uvloop.run(coordinator.run(settings, SystemClock()))


if __name__ == "__main__":
    main(sys.argv[1:])
