"""uvicorn's HTTP/1.1 protocol with the bounds it lacks: how large a request's head may be, and how long it may take.

Without them one client holds a connection for ever with half a header, or fills the memory with a whole one. And with a
way to break an answer off on purpose (`http.lasting`), which uvicorn takes for a mistake of the application.
"""

import asyncio
import functools
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from codehub.http.lasting import CUT

HEAD_BYTES = 40 * 1024  # a little more than the front door lets through, which adds a few fields of its own
HEAD_FIELDS = 120


class GuardedProtocol(HttpToolsProtocol):
    head_seconds = 15.0  # `bounded_by` makes a class with the operator's own
    _alarm: asyncio.TimerHandle | None = None
    _in_head = True
    _began = False  # a head began in the data at hand
    _unparsed = 0  # bytes of a head that is still incomplete
    _parsed = 0
    _fields = 0
    _refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._set_alarm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_alarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._began = False
        super().data_received(data)
        # What a head began in may be mostly the body before it: only what follows is surely head.
        if self._in_head and not self._began:
            self._unparsed += len(data)
            self._check()

    def on_message_begin(self) -> None:
        self._in_head, self._began = True, True
        self._unparsed = self._parsed = self._fields = 0
        super().on_message_begin()
        self._set_alarm()

    def on_url(self, url: bytes) -> None:
        self._parsed += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        self._parsed += len(name) + len(value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._clear_alarm()
        self._check()
        if not self._refused:
            super().on_headers_complete()
            if getattr(self.cycle, "scope", None) is self.scope:  # else it was refused
                self.scope["extensions"] = {CUT: {"call": functools.partial(self._cut, self.cycle)}}

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def _cut(self, cycle: RequestResponseCycle) -> None:
        """At once, also when the client does not read what was written."""
        cycle.disconnected = True
        self.transport.abort()

    def _check(self) -> None:
        if not self._refused and (max(self._unparsed, self._parsed) > HEAD_BYTES or self._fields > HEAD_FIELDS):
            self._refused = True
            self.send_400_response("The request's head is too large.")

    def _set_alarm(self) -> None:
        if self._alarm is None:
            self._alarm = self.loop.call_later(self.head_seconds, self.transport.close)

    def _clear_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def bounded_by(seconds: float) -> type[GuardedProtocol]:
    return type("BoundedProtocol", (GuardedProtocol,), {"head_seconds": seconds})
