"""`codehub class …`: classes, who is in them, codes and lists. Clients of the API, as all commands are."""

import pathlib
import sys
from typing import Annotated

import typer

from codehub.command import output
from codehub.command.client import connected
from codehub.errors import InvalidRequestError

app = typer.Typer(help="See and make classes; add people, by name, by a code or from a list.", no_args_is_help=True)
CLASS = Annotated[str, typer.Argument(metavar="CLASS", help="The class's id.", show_default=False)]
NAME = Annotated[str, typer.Argument(help="A user's name.", show_default=False)]


@app.command("ls")
@app.command("list", hidden=True)
def list_(
    archived: Annotated[bool, typer.Option("--archived", help="Those in the archive, too.")] = False,
) -> None:
    """List all classes."""
    with connected() as api:
        found = api.items("classes", all=True, archived=archived)
    rows = [(k["id"], k["title"], ", ".join(k["teachers"]), str(k["learners"])) for k in found]
    output.table(("Class", "Title", "Teachers", "Learners"), rows, found)


@app.command()
def show(class_id: CLASS) -> None:
    """Show who is in a class."""
    with connected() as api:
        found = api.items("classes", class_id, "members")
    rows = [
        (m["name"], m["display_name"], m["role"], m["came"], output.when(m["last_seen_at"], "never")) for m in found
    ]
    output.table(("Name", "Called", "Role", "Came", "Last seen"), rows, found)


@app.command()
def create(
    title: Annotated[str, typer.Argument(help="What it is called.", show_default=False)],
    teacher: Annotated[str | None, typer.Option(help="Who teaches it.")] = None,
) -> None:
    """Make a class."""
    with connected() as api:
        made = api.post("classes", title=title)
        if teacher:
            api.post("classes", made["id"], "members", name=teacher, role="teacher")
            made = api.get("classes", made["id"])
    output.say(f"Made the class {made['title']}: {made['id']}", made)


@app.command()
def add(
    class_id: CLASS,
    name: NAME,
    teacher: Annotated[bool, typer.Option("--teacher", help="As a teacher of it.")] = False,
) -> None:
    """Add a person who has an account."""
    with connected() as api:
        added = api.post("classes", class_id, "members", name=name, role="teacher" if teacher else "learner")
    output.say(f"{name} is in the class", added)


@app.command()
def remove(class_id: CLASS, name: NAME) -> None:
    """Take a person out; the account stays."""
    with connected() as api:
        api.delete("classes", class_id, "members", name)
    output.say(f"{name} is out of the class", {"name": name})


@app.command()
def invite(
    class_id: CLASS,
    hours: Annotated[int, typer.Option(min=1, max=8784, help="How long it is good.")] = 168,
    max_uses: Annotated[int | None, typer.Option(min=1, max=10_000, help="How many may come by it.")] = None,
) -> None:
    """Make a code of six letters to come into the class by."""
    with connected() as api:
        made = api.post("classes", class_id, "invitations", expires_in_seconds=hours * 3600, max_uses=max_uses)
    output.say(f"{made['code']}   {made['url']}", made)


@app.command("import")
def import_(
    class_id: CLASS,
    file: Annotated[pathlib.Path, typer.Argument(help="CSV, display_name,name,id; - reads it from here.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
) -> None:
    """Add people from a list: those who have no account get one."""
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as e:
        raise InvalidRequestError(f"cannot be read: {e.strerror}", field=str(file)) from e
    with connected() as api:
        found = api.post_list("classes", class_id, "import", content=content, dry_run=dry_run)
    rows = [
        (str(i["line"]), i["display_name"], i["name"] or "", i["outcome"], i["reason"] or "") for i in found["lines"]
    ]
    if output.as_json:
        output.document(found)
        return
    output.table(("Line", "Called", "Name", "What happens" if dry_run else "What happened", "Why"), rows, found)
