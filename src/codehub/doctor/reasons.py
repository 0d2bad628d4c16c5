"""Why a server did not answer, in words that repeat no part of its URL but host and port."""

import socket
from urllib.parse import urlsplit

import asyncpg
import redis.exceptions

from codehub.settings import server_urls

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
    parts = server_urls.split(url)
    return "@" not in parts.netloc and "@" in parts.path + parts.fragment


def where(url: str) -> str:
    """Hosts and ports alone; the rest may be secret."""
    hosts = server_urls.split(url).netloc.rpartition("@")[2]
    if "," in hosts:
        return hosts.replace(",", ", ")
    try:
        parts, port = urlsplit(url), urlsplit(url).port
    except ValueError:
        return "that address"
    return f"{parts.hostname}:{port}" if port else parts.hostname or "a local socket"
