"""Courses that come with the product: read from the package, installed at the start of an API process (`roles.api`)."""

import asyncio
import importlib.resources
import pathlib

from codehub import logs
from codehub.courses import folder
from codehub.courses.service import Courses
from codehub.courses.source import Source
from codehub.errors import CodeHubError

log = logs.get()
SHIPPED = importlib.resources.files("codehub.courses") / "shipped"


def folders(root: pathlib.Path) -> list[pathlib.Path]:
    """`name/language`, in the order of their names."""
    return [path.parent for path in sorted(root.glob(f"*/*/{folder.COURSE}"))]


def read(root: pathlib.Path) -> list[Source]:
    """Those that can be read. One that cannot is a mistake of ours, and no reason to be without the others."""
    found = []
    for path in folders(root):
        try:
            found.append(folder.load(path))
        except CodeHubError as error:
            log.error("A shipped course cannot be read", course=str(path), detail=error.detail)  # noqa: TRY400 (a line)
    return found


async def run(courses: Courses, root: pathlib.Path | None = None) -> None:
    """In the background of a start: reading takes a moment, and nothing waits for it. What fails, the next one does."""
    try:
        with importlib.resources.as_file(SHIPPED) as shipped:
            found = await asyncio.to_thread(read, root or shipped)
        changed = await courses.install(found)
    except CodeHubError as error:
        log.warning("The courses that come with the product were not installed", code=error.code, detail=error.detail)
    else:
        if changed:
            log.info("Courses that come with the product were installed", courses=changed)
