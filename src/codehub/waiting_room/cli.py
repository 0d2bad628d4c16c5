"""`codehub queue …`: what people wait for, and letting them in. Clients of the API, as all commands are."""

from datetime import datetime
from typing import Annotated, Any

import typer

from codehub.command import output
from codehub.command.client import Api, connected
from codehub.errors import InvalidRequestError

app = typer.Typer(help="See the lines of the waiting room; open, pause and close them.", no_args_is_help=True)
EVENT = Annotated[str, typer.Argument(help="The event's id; `lab` guards the platform itself.", show_default=False)]
PEOPLE = 20  # of the line, shown at most unless more are asked for
OURS = "CodeHub"


@app.command("events")
def events() -> None:
    """List the events that people wait for."""
    with connected() as api:
        found = api.items("queue", "events")
    names = ("Event", "State", "Waiting", "Inside", "Places", "A minute", "Owner")
    rows = [
        (e["id"], _state(e), str(e["waiting"]), str(_inside(e)), _number(e["capacity"]), _rate(e), e["owner"] or OURS)
        for e in found
    ]
    output.table(names, rows, found)


@app.command("show")
def show(
    event: EVENT,
    people: Annotated[int, typer.Option(min=0, max=10_000, help="How many of the line to list.")] = PEOPLE,
) -> None:
    """Show one event: its state, its numbers, and who waits, in order."""
    with connected() as api:
        found = api.get("queue", "events", event)
        line = _line(api, event, people)
    if output.as_json:
        output.document({**found, "line": line})
        return
    output.say(_about(found), found)
    if line:
        names = ("#", "Name", "State", "Since")
        rows = [(str(m["position"]), m["user_id"] or "?", m["state"], output.when(m["joined_at"], "")) for m in line]
        output.table(names, rows, line)


def _line(api: Api, event: str, most: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < most:
        asked = min(200, most - len(found))
        page = api.get("queue", "events", event, "line", limit=asked, cursor=str(len(found)))["items"]
        found += page
        if len(page) < asked:
            break
    return found


@app.command("open")
def open_(
    event: EVENT,
    capacity: Annotated[int | None, typer.Option(min=0, help="How many may be inside at a time.")] = None,
    rate: Annotated[float | None, typer.Option(help="How many are let in a minute, at most; 0: no limit.")] = None,
    opens_at: Annotated[
        str | None, typer.Option(help="When it begins, as 2026-03-02T18:00:00+09:00; unset: now.")
    ] = None,
    lottery: Annotated[
        bool, typer.Option("--lottery", help="Those who come before it begins are put in an order by lot.")
    ] = False,
) -> None:
    """Let people in: ends a pause and a closing. An event that is not there yet is made; it needs a capacity."""
    body: dict[str, Any] = {"paused": False, "draining": False, "opens_at": _moment(opens_at)}
    if capacity is not None:
        body["capacity"] = capacity
    if rate is not None:
        body["admission_rate"] = rate or None
    if lottery:
        body["order"] = "lottery"
    with connected() as api:
        done = api.put("queue", "events", event, **body)
    output.say(_about(done), done)


@app.command("pause")
def pause(event: EVENT) -> None:
    """Let nobody in for a while. Those in line keep their places; `open` goes on."""
    _change(event, paused=True)


@app.command("drain")
def drain(event: EVENT) -> None:
    """Take nobody new. Those in line are still let in; `open` takes this back."""
    _change(event, draining=True)


def _change(event: str, **changes: Any) -> None:
    with connected() as api:
        done = api.put("queue", "events", event, **changes)
    output.say(_about(done), done)


def _moment(text: str | None) -> str | None:
    """With its zone: a time without one is this machine's."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except ValueError:
        raise InvalidRequestError("must be a time like 2026-03-02T18:00:00+09:00", field="opens_at") from None


def _about(event: dict[str, Any]) -> str:
    most = f", at most {event['admission_rate']:g}" if event["admission_rate"] else ""
    places = f"{_inside(event)} inside, places: {_number(event['capacity'])}"
    lines = [
        f"{event['id']}: {_state(event)}",
        f"{event['waiting']} waiting ({event['waiting'] - event['silent']} of them heard of lately), {places}",
        f"let in lately: {'not known yet' if event['measured_rate'] is None else _rate(event) + ' a minute'}{most}",
    ]
    if event["opens_at"]:
        lines.append(f"opens at {output.when(event['opens_at'])}, order: {event['order']}")
    return "\n".join(lines)


def _state(event: dict[str, Any]) -> str:
    words = [word for word in ("paused", "draining") if event[word]]
    return ", ".join(words) or ("open" if event["open"] else "not open yet")


def _inside(event: dict[str, Any]) -> int:
    return int(event["offered"] + event["reserved"] + event["held"])


def _number(value: int | None) -> str:
    return "no limit" if value is None else str(value)


def _rate(event: dict[str, Any]) -> str:
    rate = event["measured_rate"]
    return "–" if rate is None else f"{rate:.1f}"
