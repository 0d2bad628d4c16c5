"""Answers polls of waiting people in the proxy's worker: no page of ours is asked for as often. Registered by `wiring`.

The plain answer only, "you wait, at this position". Whatever else there is to say, or to do (their turn has come, a
token from before a loss, one that is over), is the API's: the request goes on to it, and hears the same of that line.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from codehub.clock import Clock
from codehub.proxy.model import Answer, Decision, Forward, Later, RequestHead
from codehub.settings import QueueConfig
from codehub.waiting_room import status
from codehub.waiting_room.line import Line, Polled
from codehub.waiting_room.model import Standing
from codehub.waiting_room.tokens import Tokens, Waiting

PATH = b"/api/v1/queue/status"
QUESTION = PATH + b"?token="
FIELDS = (
    (b"Content-Type", b"application/json"),
    (b"Cache-Control", b"no-store"),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
)
Otherwise = Callable[[RequestHead], Forward]


class Polls:
    def __init__(self, line: Line, tokens: Tokens, clock: Clock, config: QueueConfig) -> None:
        self._line = line
        self._tokens = tokens
        self._clock = clock
        self._silent_seconds = config.silent_seconds

    def __call__(self, head: RequestHead, otherwise: Otherwise) -> Decision:
        target = head.target
        if head.method != b"GET" or head.length or not target.startswith(QUESTION):
            return otherwise(head)
        text = target[len(QUESTION) :].decode("latin-1")
        token = self._tokens.read_waiting(text)
        if token is None:
            return otherwise(head)
        return Later(partial(self._ask, head, otherwise, text, token))

    def _ask(
        self,
        head: RequestHead,
        otherwise: Otherwise,
        text: str,
        token: Waiting,
        decided: Callable[[Forward | Answer], None],
    ) -> None:
        def answered(future: "asyncio.Future[Polled]") -> None:
            standing = None if future.cancelled() or future.exception() else future.result()
            if isinstance(standing, Standing) and not standing.ready and standing.stands is None:
                decided(self._answer(text, token, standing))
            else:
                decided(otherwise(head))

        self._line.poll(token.event, token.pid, token.seq).add_done_callback(answered)

    def _answer(self, text: str, token: Waiting, standing: Standing) -> Answer:
        now = self._clock.timestamp()
        found = status.status_of(text, token, standing, now, self._silent_seconds)
        return Answer(200, FIELDS, status.as_json(found, now))
