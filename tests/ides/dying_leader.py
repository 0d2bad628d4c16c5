"""Leads, and installs what was asked for, until it is killed: python -m tests.ides.dying_leader DATABASE_URL FOLDER."""

import asyncio
import pathlib
import sys

from codehub.coordinator.leader import SESSION_SETTINGS
from codehub.db import Database
from tests.ides.house import House


async def main(url: str, folder: str) -> None:
    house = House(await Database.open(url, session=SESSION_SETTINGS), pathlib.Path(folder))
    await house.lead()
    await house.settle()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
