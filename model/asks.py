"""How the product's coroutines and the model talk: every effect is an `Ask`, a point where anything may happen."""

from collections.abc import Generator
from typing import Any


class Ask:
    """Awaited by product code, it stops there until somebody answers."""

    closing = False  # a coroutine that is thrown away runs its clean-up without asking

    def __init__(self, verb: str, *args: Any) -> None:
        self.verb = verb
        self.args = args

    def __await__(self) -> Generator["Ask", Any, Any]:
        if Ask.closing:
            return None
        return (yield self)

    def __repr__(self) -> str:
        return f"{self.verb}({', '.join(map(str, self.args))})"


class BrokenError(BaseException):
    """Something that may not be. Not an Exception: no handler of the product may take it for a failure."""


class ExpiredError(BaseException):
    """The time an attempt may take is over, as `asyncio.timeout` says it: by cancelling."""
