"""`codehub class schedule …`: before which lessons a class's workspaces are started. Clients of the API."""

from typing import Annotated, Any

import typer

from codehub.classes.cli import CLASS
from codehub.classes.cli import app as classes
from codehub.command import output
from codehub.command.client import connected

app = typer.Typer(help="Have a class's workspaces started before its lessons.", no_args_is_help=True)
classes.add_typer(app, name="schedule")
SCHEDULE = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule's id.", show_default=False)]


def _days(schedule: Any) -> str:
    return f"{','.join(schedule['weekdays'])} {schedule['time']} {schedule['time_zone']}"


def _next(schedule: Any) -> str:
    return output.when(schedule["next_begins_at"], "paused" if schedule["paused_at"] else "none")


@app.command("ls")
@app.command("list", hidden=True)
def list_(class_id: CLASS) -> None:
    """List the schedules of a class."""
    with connected() as api:
        found = api.items("classes", class_id, "schedules")
    rows = [
        (s["id"], _days(s), _next(s), "all" if s["for_all"] else str(len(s["learners"])), str(_left_out(s)))
        for s in found
    ]
    output.table(("Schedule", "When", "Next lesson", "Learners", "Left out"), rows, found)


def _left_out(schedule: Any) -> int:
    return sum(one["left_out"] is not None for one in schedule["learners"])


@app.command()
def show(class_id: CLASS, schedule_id: SCHEDULE) -> None:
    """Show whose workspaces are started, and what became of that the last time."""
    with connected() as api:
        found = api.get("classes", class_id, "schedules", schedule_id)
    last = {s["name"]: s["outcome"] or "to be done" for s in (found["last"] or {"starts": []})["starts"]}
    rows = [
        (one["name"], one["workspace_id"] or "", one["left_out"] or "", last.get(one["name"], ""))
        for one in found["learners"]
    ]
    output.table(("Name", "Workspace", "Left out", "Last time"), rows, found)


@app.command()
def add(
    class_id: CLASS,
    days: Annotated[str, typer.Argument(help="Days of the week: mon,wed,fri.", show_default=False)],
    time: Annotated[str, typer.Argument(help="When the lesson begins: 08:55.", show_default=False)],
    zone: Annotated[str | None, typer.Option(help="Time zone, such as Asia/Seoul; unset: UTC.")] = None,
    learner: Annotated[list[str] | None, typer.Option(help="Only this one; can be given several times.")] = None,
    first_day: Annotated[str | None, typer.Option(help="Such as 2026-03-02.")] = None,
    last_day: Annotated[str | None, typer.Option(help="Such as 2026-07-17.")] = None,
) -> None:
    """Give a class a schedule."""
    wanted = {
        "weekdays": [day.strip().lower() for day in days.split(",")],
        "time": time,
        "time_zone": zone,
        "learners": learner or None,
        "first_day": first_day,
        "last_day": last_day,
    }
    with connected() as api:
        made = api.post("classes", class_id, "schedules", **wanted)
    output.say(f"{made['id']}: {_days(made)}; next lesson {_next(made)}", made)


@app.command()
def pause(class_id: CLASS, schedule_id: SCHEDULE) -> None:
    """Start nothing for it until it is resumed."""
    _set_paused(class_id, schedule_id, paused=True)


@app.command()
def resume(class_id: CLASS, schedule_id: SCHEDULE) -> None:
    """Go on with one that is paused."""
    _set_paused(class_id, schedule_id, paused=False)


def _set_paused(class_id: str, schedule_id: str, *, paused: bool) -> None:
    with connected() as api:
        found = api.patch("classes", class_id, "schedules", schedule_id, paused=paused)
    output.say("paused" if paused else f"goes on; next lesson {_next(found)}", found)


@app.command()
def skip(class_id: CLASS, schedule_id: SCHEDULE) -> None:
    """Leave the next lesson out."""
    with connected() as api:
        found = api.post("classes", class_id, "schedules", schedule_id, "skip")
    output.say(f"skipped; next lesson {_next(found)}", found)


@app.command()
def unskip(class_id: CLASS, schedule_id: SCHEDULE) -> None:
    """Take that back."""
    with connected() as api:
        found = api.delete("classes", class_id, "schedules", schedule_id, "skip")
    output.say(f"not skipped; next lesson {_next(found)}", found)


@app.command()
def delete(class_id: CLASS, schedule_id: SCHEDULE) -> None:
    """Delete a schedule; what was started for it goes on."""
    with connected() as api:
        api.delete("classes", class_id, "schedules", schedule_id)
    output.say("deleted", {"id": schedule_id})
