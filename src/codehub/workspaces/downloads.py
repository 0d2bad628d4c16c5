"""Asks the coordinator for a home as a file; the other end is `download_server`. Called by `points_api`.

The pieces are read one at a time, as the client takes them: memory stays at a piece or two, however large the
home and however slow the line.
"""

import asyncio
import json
import re
import unicodedata
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

from codehub.coordinator.leader_doors import DOWNLOADS, Doors
from codehub.errors import CodeHubError, UnavailableError
from codehub.workspaces.model import Workspace

MEDIA_TYPES = {"tar.gz": "application/gzip", "tar.zst": "application/zstd"}
HEAD_SECONDS = 60.0
LONGEST_HEAD = 65536
BUFFER = 256 * 1024


class DownloadError(CodeHubError):
    """What the coordinator says, passed on."""

    def __init__(self, code: str, status: int, detail: str) -> None:
        super().__init__(detail)
        self.code = code  # type: ignore[misc]
        self.status = status  # type: ignore[misc]


class Download:
    """One download under way. Close it, and the work behind it stops."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def begin(cls, doors: Doors, **order: Any) -> "Download":
        """Returns when the first piece is on its way; whatever can be refused has been refused by then.

        `order`: as `download_server.Order` has it.
        """
        made = cls(*await doors.open(DOWNLOADS, buffer=BUFFER))
        try:
            await made._ask(order)
        except BaseException:
            made.close()
            raise
        return made

    async def _ask(self, order: dict[str, Any]) -> None:
        self._writer.write(json.dumps(order).encode() + b"\n")
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = json.loads(await self._reader.readline() or b"{}")
        except (TimeoutError, OSError, ValueError) as e:
            raise UnavailableError("the coordinator does not answer: try again in a moment") from e
        if not head.get("ok"):
            reason = head.get("detail", "the coordinator has just gone: try again in a moment")
            raise DownloadError(head.get("error", UnavailableError.code), head.get("status", 503), reason)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Raises instead of ending when it is not all there, so that a broken download looks broken."""
        try:
            while length := int.from_bytes(await self._reader.readexactly(4), "big"):
                while length:
                    piece = await self._reader.readexactly(min(length, BUFFER))
                    length -= len(piece)
                    yield piece
        except (asyncio.IncompleteReadError, OSError) as e:
            raise UnavailableError("the download broke off") from e
        finally:
            self.close()

    def close(self) -> None:
        self._writer.close()


def file_name(w: Workspace, at: datetime, form: str) -> str:
    plain = re.sub(r"[^\w.-]+", "-", w.name).strip("-.")
    return f"{plain or w.id}-{at:%Y-%m-%d}.{form}"


def disposition(name: str) -> str:
    """For browsers old and new: a plain name, and the real one."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lstrip("-.") or "home"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
