"""Forms of our pages, read by hand: a few short fields, whatever else a request may have.

Reading a form costs time by its size and by its number of fields, and who sends one may be a stranger: the button of a
login link is a form. So both are bounded far below what a body of the API may have.
"""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from codehub.errors import InvalidRequestError
from codehub.web.middleware import CLOSE

Form = Mapping[str, str]
LARGEST, FIELDS = 16_384, 100


async def read(request: Request) -> Form:
    """Names and values, without the NUL that the database cannot store. Where a login is needed, ask for it first."""
    announced = request.headers.get("content-length", "0")
    _check_size(int(announced) if announced.isdecimal() else 0)
    body = bytearray()
    async for piece in request.stream():
        _check_size(len(body) + len(piece))
        body += piece
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FIELDS)
    except ValueError as e:
        raise InvalidRequestError(f"a form has at most {FIELDS} fields", field="body") from e
    return {name: value.replace("\0", "") for name, value in pairs}


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise HTTPException(413, f"a form has at most {LARGEST} bytes", CLOSE)


Posted = Annotated[Form, Depends(read)]
