"""Answers that may last: an event stream, a log that is followed, a download. Used by the `api` modules.

Each ends within seconds when the login that it was opened with does (`auth.streams`), also if its client does not read.
"""

import asyncio
from collections.abc import AsyncIterable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from codehub import logs
from codehub.policy.model import Principal

log = logs.get()
# An extension of the server's (`web.guard`): its `call` breaks the connection off.
CUT = "codehub.cut"


class OpenStreams(Protocol):
    """What `auth.streams` does: it knows which logins are over."""

    def opened(self, caller: Principal, /) -> AbstractContextManager[asyncio.Event]: ...


class Lasting(StreamingResponse):
    def __init__(
        self,
        streams: OpenStreams,
        caller: Principal,
        content: AsyncIterable[bytes],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(content, headers={"x-accel-buffering": "no", **(headers or {})}, media_type=media_type)
        self._streams = streams
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.opened(self._caller) as ended:
            answering = asyncio.create_task(super().__call__(scope, receive, send))
            over = asyncio.create_task(ended.wait())
            try:
                await asyncio.wait((answering, over), return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    answering.result()
                else:
                    # The answer stays without its end: the client can tell that it is not all there.
                    log.info("An open answer ended with its login", path=scope["path"], user=self._caller.name)
                    scope["extensions"][CUT]["call"]()
            finally:
                for task in (answering, over):
                    task.cancel()
                await asyncio.gather(answering, over, return_exceptions=True)
