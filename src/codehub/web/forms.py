"""Forms of our pages, read by hand: a few short fields, whatever else a request may have.

Reading a form costs time by its size and by its number of fields, and who sends one may be a stranger: the button of a
login link is a form. So both are bounded far below what a body of the API may have.
"""

import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from codehub.errors import CodeHubError, InvalidRequestError
from codehub.web.middleware import CLOSE

Form = Mapping[str, str]
NO_PLACE = "NO_PLACE"  # in an address: what was refused can be waited for
LARGEST, FIELDS = 16_384, 100
LARGEST_ANSWERS, MOST_ANSWERS = 131_072, 5_000  # of a CHECK, which only a person who is logged in sends
PARTS, HEAD = 20, 2_048  # of a form with a file: how many fields, and the bytes that one may have before its value
BOUNDARY = re.compile(r'multipart/form-data;\s*boundary="?([!-~]{1,200}?)"?$', re.IGNORECASE)
FIELD_NAME = re.compile(rb'content-disposition:\s*form-data;\s*name="([^"\r\n]*)"', re.IGNORECASE)


async def read(request: Request) -> Form:
    """Names and values, without the NUL that the database cannot store. Where a login is needed, ask for it first."""
    return await _read(request, LARGEST, FIELDS)


async def read_answers(request: Request) -> Form:
    return await _read(request, LARGEST_ANSWERS, MOST_ANSWERS)


async def read_parts(request: Request, largest: int) -> Mapping[str, bytes]:
    """A form with a file (`multipart/form-data`): the bytes of each field. Where no file was chosen it is empty."""
    boundary = BOUNDARY.match(request.headers.get("content-type", ""))
    if boundary is None:
        raise InvalidRequestError("send it as multipart/form-data", field="body")
    body = b"\r\n" + await _body(request, largest)
    found = {}
    for part in body.split(b"\r\n--" + boundary[1].encode("latin-1"), PARTS)[1:]:
        head, _, value = part.partition(b"\r\n\r\n")
        if name := FIELD_NAME.search(head[:HEAD]):
            found[name[1].decode("utf-8", "replace")] = value
    return found


async def _body(request: Request, largest: int) -> bytes:
    announced = request.headers.get("content-length", "0")
    _check_size(int(announced) if announced.isdecimal() else 0, largest)
    body = bytearray()
    async for piece in request.stream():
        _check_size(len(body) + len(piece), largest)
        body += piece
    return bytes(body)


async def _read(request: Request, largest: int, fields: int) -> Form:
    body = await _body(request, largest)
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=fields)
    except ValueError as e:
        raise InvalidRequestError(f"a form has at most {fields} fields", field="body") from e
    return {name: value.replace("\0", "") for name, value in pairs}


def _check_size(size: int, largest: int) -> None:
    if size > largest:
        raise HTTPException(413, f"a form has at most {largest} bytes", CLOSE)


def code_of(error: CodeHubError) -> str:
    """What a page says of a refusal. That all places are taken is a line, and not a wall."""
    return NO_PLACE if "join_url" in error.extra else error.code


def back(path: str, **said: str | None) -> Response:
    """To a page, whose address tells it what to say; `at` alone says nothing."""
    told = {name: value for name, value in said.items() if value}
    query = urlencode(told) if told.keys() - {"at"} else ""
    return RedirectResponse(f"{path}{'&' if '?' in path else '?'}{query}" if query else path, 303)


Posted = Annotated[Form, Depends(read)]
PostedAnswers = Annotated[Form, Depends(read_answers)]
