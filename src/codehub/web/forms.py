"""Forms of our pages, read by hand: a few short fields, whatever else a request may have.

Reading a form costs time by its size and by its number of fields, and who sends one may be a stranger: the button of a
login link is a form. So both are bounded far below what a body of the API may have.
"""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from codehub.errors import InvalidRequestError
from codehub.web.middleware import CLOSE

Form = Mapping[str, str]
LARGEST, FIELDS = 16_384, 100
LARGEST_ANSWERS, MOST_ANSWERS = 131_072, 5_000  # of a CHECK, which only a person who is logged in sends


async def read(request: Request) -> Form:
    """Names and values, without the NUL that the database cannot store. Where a login is needed, ask for it first."""
    return await _read(request, LARGEST, FIELDS)


async def read_answers(request: Request) -> Form:
    return await _read(request, LARGEST_ANSWERS, MOST_ANSWERS)


async def _read(request: Request, largest: int, fields: int) -> Form:
    announced = request.headers.get("content-length", "0")
    _check_size(int(announced) if announced.isdecimal() else 0, largest)
    body = bytearray()
    async for piece in request.stream():
        _check_size(len(body) + len(piece), largest)
        body += piece
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=fields)
    except ValueError as e:
        raise InvalidRequestError(f"a form has at most {fields} fields", field="body") from e
    return {name: value.replace("\0", "") for name, value in pairs}


def _check_size(size: int, largest: int) -> None:
    if size > largest:
        raise HTTPException(413, f"a form has at most {largest} bytes", CLOSE)


def back(path: str, **said: str | None) -> Response:
    """To a page, whose address tells it what to say; `at` alone says nothing."""
    told = {name: value for name, value in said.items() if value}
    query = urlencode(told) if told.keys() - {"at"} else ""
    return RedirectResponse(f"{path}{'&' if '?' in path else '?'}{query}" if query else path, 303)


Posted = Annotated[Form, Depends(read)]
PostedAnswers = Annotated[Form, Depends(read_answers)]
