"""Answers the proxy gives by itself: problem bodies as the API's, without its framework. Pure."""

import json
from functools import lru_cache
from http import HTTPStatus

from codehub.proxy.model import Answer, Failure, Pair

CODES = {
    400: "INVALID_REQUEST",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    408: "REQUEST_TIMEOUT",
    431: "HEADERS_TOO_LARGE",
}
STATUSES = {Failure.SLOW: 504, Failure.FULL: 503, Failure.SHARE: 429}
DETAILS = {
    Failure.UNREACHABLE: "What should answer does not accept connections; try again in a moment.",
    Failure.SLOW: "What should answer took too long.",
    Failure.BROKE_OFF: "What should answer broke off.",
    Failure.NONSENSE: "What should answer sent something that is not HTTP.",
    Failure.FULL: "Too many requests are under way; try again in a moment.",
    Failure.SHARE: "Too many of your requests are under way; wait for some of them.",
}
RETRY = (b"Retry-After", b"2")


def problem(status: int, detail: str, code: str | None = None, *more: tuple[bytes, bytes]) -> Answer:
    phrase = HTTPStatus(status).phrase
    code = code or CODES.get(status) or phrase.upper().replace(" ", "_").replace("-", "_")
    members = {"type": "about:blank", "title": phrase, "status": status, "detail": detail, "code": code}
    body = json.dumps(members, ensure_ascii=False).encode()
    fields = ((b"Content-Type", b"application/problem+json"), (b"Cache-Control", b"no-store"), *more)
    return Answer(status, (*fields, (b"X-Content-Type-Options", b"nosniff")), body)


@lru_cache
def of_failure(failure: Failure) -> Answer:
    status = STATUSES.get(failure, 502)
    return problem(status, DETAILS[failure], failure.value, *([RETRY] if status in (429, 503) else []))


def write_head(answer: Answer, date: bytes, *, close: bool, minor: int) -> bytes:
    """The bytes of an answer's head; `date` is a line of it, with its end."""
    connection = b"Connection: close\r\n" if close else b"" if minor else b"Connection: keep-alive\r\n"
    begin = _begin(answer.status, answer.fields)
    length = b"" if answer.status == 304 else b"Content-Length: %d\r\n" % len(answer.body)
    return b"%b%b%b%b\r\n" % (begin, length, connection, date)


@lru_cache(maxsize=128)
def _begin(status: int, fields: tuple[Pair, ...]) -> bytes:
    """Most answers of one kind begin alike."""
    lines = [b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode())]
    return b"\r\n".join([*lines, *(b"%b: %b" % field for field in fields), b""])
