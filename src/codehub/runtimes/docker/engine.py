"""The Docker engine's API on its Unix socket: calls, streams, and standard streams of a container. Used below `docker`.

By aiohttp, which the platform has anyway; only a connection that turns into a container's own streams is ours. Paths
have no version: the engine then speaks its newest, and nothing here is newer than Docker 20.10 or gone since.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp

from codehub.runtimes.base import RuntimeFailureError
from codehub.runtimes.containers.framing import frames

CALL_SECONDS = 120.0
LONGEST_HEAD = 65536
BUFFER = 1 << 20


class EngineError(RuntimeFailureError):
    """The engine refuses: its own words."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.answer = status  # HTTP; `status` is what our own clients get


class EngineUnreachableError(RuntimeFailureError):
    code = "Unreachable"


def labelled(*labels: str, **others: list[str]) -> str:
    """A filter, as lists take it."""
    return json.dumps({"label": list(labels), **others})


def path(*parts: str) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)


class Engine:
    def __init__(self, socket: str) -> None:
        self.socket = socket

    async def call(
        self,
        method: str,
        where: str,
        body: object = None,
        *,
        seconds: float | None = CALL_SECONDS,
        missing: bool = False,
        **parameters: str,
    ) -> Any:
        """What the engine answers, None for an empty answer; with `missing`, also for what is not there."""
        async with self._asked(method, where, body, seconds, parameters) as answer:
            if answer.status == 404 and missing:
                return None
            return await _content(answer)

    async def stream(self, where: str, **parameters: str) -> AsyncIterator[tuple[int, bytes]]:
        """Pieces of a container's output, as they come, each with its descriptor."""
        async with self._asked("GET", where, None, None, parameters) as answer:
            if answer.status >= 400:
                await _content(answer)
            async for piece in frames(answer.content):
                yield piece

    @contextlib.asynccontextmanager
    async def _asked(
        self, method: str, where: str, body: object, seconds: float | None, parameters: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        connector = aiohttp.UnixConnector(self.socket)
        limit = aiohttp.ClientTimeout(total=seconds, connect=30)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=limit, read_bufsize=BUFFER) as session,
                session.request(method, f"http://docker{where}", params=parameters, json=body) as answer,
            ):
                yield answer
        except aiohttp.ClientError as e:
            raise self._unreachable(e) from e
        except TimeoutError as e:
            raise EngineUnreachableError(f"the Docker engine did not answer within {seconds:g} s") from e

    def _unreachable(self, error: Exception) -> EngineUnreachableError:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return EngineUnreachableError(
            f"the Docker engine does not answer on {self.socket} ({reason}): see that it runs, or set "
            "CODEHUB_DOCKER_SOCKET"
        )

    async def attach(self, container: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Its standard streams; to be asked for before it is started, so that nothing is missed."""
        query = urlencode({"stream": 1, "stdin": 1, "stdout": 1, "stderr": 1})
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket, limit=BUFFER)
        except OSError as e:
            raise self._unreachable(e) from e
        try:
            writer.write(
                f"POST {path('containers', container, 'attach')}?{query} HTTP/1.1\r\nHost: docker\r\n"
                "Upgrade: tcp\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n".encode("ascii")
            )
            async with asyncio.timeout(CALL_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            _require_streams(head)
        except (OSError, ValueError, IndexError, EOFError, asyncio.LimitOverrunError, TimeoutError) as e:
            writer.close()
            raise EngineUnreachableError(f"the Docker engine does not attach us to a container: {e}") from e
        except BaseException:
            writer.close()
            raise
        return reader, writer


def _require_streams(head: bytes) -> None:
    status = int(head.split(None, 2)[1])
    if status not in {101, 200}:
        raise EngineError(status, head.split(b"\r\n", 1)[0].decode("latin-1"))


async def _content(answer: aiohttp.ClientResponse) -> Any:
    raw = await answer.read()
    if answer.status >= 400:
        raise EngineError(answer.status, _words(raw) or f"the Docker engine answers {answer.status}")
    return json.loads(raw) if raw.strip() else None


def _words(raw: bytes) -> str:
    try:
        return str(json.loads(raw)["message"]).strip()
    except (ValueError, KeyError, TypeError):
        return raw.decode(errors="replace").strip()[:500]
