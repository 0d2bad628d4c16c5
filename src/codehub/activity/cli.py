"""`codehub workspace why`: what the activity of a workspace says, by the API."""

from codehub.command import output
from codehub.command.client import connected
from codehub.workspaces import cli
from codehub.workspaces.points_cli import app as workspaces


@workspaces.command("why")
def why(which: cli.WHICH) -> None:
    """Why it sleeps, or does not, and when it will."""
    with connected() as api:
        w = cli.find(api, which)
        found = api.get("workspaces", w["id"], "activity")
    if output.as_json:
        output.document(found)
        return
    output.say(f"{cli.called(w)} is {w['phase']}: {found['reason']}.", found)
    if found["sleeps_at"]:
        output.say(f"If nothing happens it sleeps at {output.when(found['sleeps_at'], seconds=True)}.", found)
    rows = [(kind, str(count), what) for what in ("counted", "ignored") for kind, count in found[what].items()]
    if rows:
        output.table(("Seen", "Times", ""), rows, found)
