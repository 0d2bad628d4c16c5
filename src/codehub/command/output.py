"""What commands print: a sentence or a table for people, with `--json` one document for programs. Used by all `cli`.

Times are the reader's own, with their zone. Columns are as wide as what is in them, on a terminal and in a pipe.
"""

import functools
import inspect
import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from codehub import logs
from codehub.errors import CodeHubError

UNITS = ("kB", "MB", "GB", "TB", "PB")
JSON = Annotated[bool, typer.Option("--json", help="For programs: one JSON document, errors as problem JSON.")]
# How the process was called; set by `cli` before anything is printed, what is wrong with its words among it.
as_json = False


def with_json(work: Callable[..., None]) -> Callable[..., None]:
    """The same command with the option `--json`."""
    signature = inspect.signature(work)
    if "as_json" in signature.parameters:
        return work

    @functools.wraps(work)
    def run(**given: Any) -> None:
        global as_json  # noqa: PLW0603
        as_json = given.pop("as_json")
        work(**given)

    option = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=JSON)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    run.__annotations__ = {**work.__annotations__, "as_json": JSON}
    return run


def say(sentence: str, result: Any) -> None:
    """What was done, or what was asked for."""
    if as_json:
        document(result)
    else:
        sys.stdout.write(_clean(sentence) + "\n")


def document(result: Any) -> None:
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(result, ensure_ascii=plain, indent=2) + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], items: Any) -> None:
    """`items`: the same for programs."""
    if as_json:
        document({"items": items})
        return
    lines = [columns, *([_clean(cell) for cell in row] for row in rows)]
    widths = [max(_width(line[n]) for line in lines) for n in range(len(columns))]
    for line in lines:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def note(text: str) -> None:
    """Beside the result, for a person who watches; empty: it is over."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{_clean(text)}")
        sys.stderr.flush()


def failure(error: CodeHubError) -> None:
    detail = logs.redact_text(error.detail)
    if as_json:
        said = {"type": "about:blank", "title": error.title, "status": error.status, "detail": detail}
        sys.stderr.write(json.dumps({**said, "code": error.code, **error.extra}, default=str) + "\n")
    else:
        sys.stderr.writelines(f"codehub: {line}\n" for line in detail.splitlines())


def when(moment: str | datetime | None, never: str = "", *, seconds: bool = False) -> str:
    """In the time zone of the person who reads it."""
    if moment is None:
        return never
    at = (datetime.fromisoformat(moment) if isinstance(moment, str) else moment).astimezone()
    return f"{at:%Y-%m-%d %H:%M:%S %Z}" if seconds else f"{at:%Y-%m-%d %H:%M %Z}"


def size(count: float) -> str:
    power = min((len(str(int(count))) - 1) // 3, len(UNITS))
    return f"{count / 1000**power:.1f} {UNITS[power - 1]}" if power else f"{count:.0f} bytes"


def _clean(text: str) -> str:
    """Names and reasons come from elsewhere: nothing in them may steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text)


def _width(text: str) -> int:
    """In columns of a terminal: Korean letters take two, marks over others none."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(bool(unicodedata.combining(c)) for c in text)
