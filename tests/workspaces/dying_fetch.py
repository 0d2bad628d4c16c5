"""Leads, ticks the fetch loop until nothing is left to do, and kills itself when a given line of it is reached.

python -m tests.workspaces.dying_fetch DATABASE_URL DATA_DIR KIND FILE:LINE   die there
python -m tests.workspaces.dying_fetch DATABASE_URL DATA_DIR KIND --list      live, and print every line reached
"""

import asyncio
import os
import pathlib
import signal
import sys
from types import FrameType
from typing import Any

import codehub
from codehub.coordinator.leader import SESSION_SETTINGS
from codehub.db import Database
from tests.contracts.harness import open_runtime
from tests.workspaces.fetch_house import HOST, House

FOLDER = pathlib.Path(codehub.__file__).parent / "workspaces"
FILES = {str(FOLDER / name): name for name in ("fetch_loop.py", "fetch_runner.py")}
reached: set[str] = set()


def watch(die_at: str) -> Any:
    def line(frame: FrameType, event: str, _argument: Any) -> Any:
        place = f"{FILES[frame.f_code.co_filename]}:{frame.f_lineno}"
        if event == "line" and place not in reached:
            reached.add(place)
            if place == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if die_at == "--list":
                print(place, flush=True)
        return line

    return lambda frame, _event, _argument: line if frame.f_code.co_filename in FILES else None


async def main(url: str, folder: str, kind: str, die_at: str) -> None:
    database = await Database.open(url, session=SESSION_SETTINGS)
    house = House(database, open_runtime(pathlib.Path(folder), kind, **HOST), pathlib.Path(folder))
    await house.lead()
    sys.settrace(watch(die_at))
    await house.settle()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
