"""Why a server did not answer, in words that repeat no part of its URL but host and port."""

import socket
from urllib.parse import urlsplit

import asyncpg
import redis.exceptions

ANSWER_SECONDS = 5.0
BAD_URL = "is not a valid URL; characters such as / @ : # in the password must be written as %2F %40 %3A %23"
NOT_ANSWERING = (ConnectionRefusedError, FileNotFoundError, redis.exceptions.ConnectionError)
WORDS: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((TimeoutError, redis.exceptions.TimeoutError), f"no answer within {ANSWER_SECONDS:g} s"),
    ((socket.gaierror,), "there is no such host"),
    ((asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError), "user or password are refused"),
    ((asyncpg.InvalidCatalogNameError,), "there is no such database"),
    ((redis.exceptions.AuthenticationError,), "user or password are refused"),
    (NOT_ANSWERING, "no server answers"),
)


def reason(error: BaseException) -> str:
    for kinds, words in WORDS:
        if isinstance(error, kinds):
            return words
    text = str(error).split("\n", 1)[0]
    # A name with several addresses gives one error that lists what each of them said.
    return "no server answers" if "Connect call failed" in text else text or type(error).__name__


def is_garbled(url: str) -> bool:
    """A password with / or # in it ends the host early; then nothing after it is what it seems."""
    parts = urlsplit(url)
    return "@" not in parts.netloc and "@" in parts.path + parts.fragment


def where(url: str) -> str:
    """Host and port alone; the rest may be secret."""
    parts = urlsplit(url)
    try:
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or "a local socket"
    except ValueError:
        return "that address"
