"""`codehub ttl`: the times after which workspaces sleep, by the API."""

from typing import Annotated, Any

import typer

from codehub.activity import hold
from codehub.command import output
from codehub.command.client import connected
from codehub.errors import InvalidRequestError

app = typer.Typer(help="The times after which workspaces sleep and are stored away.", no_args_is_help=True)
FIGURES = {
    "hours": "Workspace-hours that ran",
    "sleeps": "Put to sleep",
    "wakes": "Came back to a sleeping one",
    "stored": "Stored away",
    "restores": "Came back to a stored one",
}


@app.callback()
def _group() -> None:
    """So that `what-if` is a word of its own, though it is the only one yet."""


@app.command("what-if")
def what_if(
    standby: Annotated[str, typer.Option(help="Sleep after so long without activity: 15m, 1h30m; 0 = never.")],
    archive: Annotated[str | None, typer.Option(help="Store away after so long asleep; as it is set.")] = None,
    days: Annotated[int, typer.Option(help="So many days back.")] = 7,
) -> None:
    """What another TTL_STANDBY_SECONDS would have done to the last days, if people had done what they did."""
    asked = {"standby_seconds": _seconds(standby, "--standby"), "days": days}
    with connected() as api:
        found = api.get(
            *("admin", "ttl", "what-if"),
            **asked,
            archive_seconds=None if archive is None else _seconds(archive, "--archive"),
        )
    if output.as_json:
        output.document(found)
        return
    since, until = output.when(found["since"]), output.when(found["until"])
    how_many = f"{found['workspaces']} workspace" + ("" if found["workspaces"] == 1 else "s")
    output.say(f"From {since} to {until}, {how_many}:", found)
    rows = [(text, *_row(found["did"][name], found["would"][name])) for name, text in FIGURES.items()]
    output.table(("", "Did", "Would", "Difference"), rows, found)
    for note in found["notes"]:
        output.say(f"- {note}", found)


def _seconds(text: str, field: str) -> int:
    if text == "0":
        return 0
    try:
        return int(hold.seconds_of(text))
    except InvalidRequestError as e:
        raise InvalidRequestError("must be a time like 15m, 2h or 1h30m, or 0 for never", field=field) from e


def _row(did: dict[str, Any], would: dict[str, Any]) -> tuple[str, str, str]:
    low, high = would["low"], would["high"]
    apart = _between(low - did["low"], high - did["low"], sign=True)
    return _number(did["low"]), _between(low, high), apart


def _between(low: float, high: float, *, sign: bool = False) -> str:
    first, last = _number(low, sign=sign), _number(high, sign=sign)
    return first if first == last else f"{first} to {last}"


def _number(value: float, *, sign: bool = False) -> str:
    shown = round(value, 1)
    whole = int(shown) if shown == int(shown) else shown
    return f"{whole:+}" if sign and whole else f"{whole}"
