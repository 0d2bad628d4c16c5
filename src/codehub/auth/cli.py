"""`codehub user …` and `codehub token …`, by the API."""

import sys
from typing import Annotated, Any

import typer

from codehub.command import output
from codehub.command.client import connected
from codehub.policy.model import Role, Scope

users = typer.Typer(help="Add people, list them, give them login links.", no_args_is_help=True)
tokens = typer.Typer(help="Access tokens for programs.", no_args_is_help=True)
NAME = Annotated[str, typer.Argument(help="The person's name: a–z, 0–9 and -.")]


@users.command("add")
def add(name: NAME, role: Annotated[Role, typer.Option(help="What they may do.")] = Role.LEARNER) -> None:
    """Add a person. Give them a login link next: `codehub user login-link NAME`."""
    with connected() as api:
        person = api.post("users", name=name, role=role)
    output.say(f"Added {person['name']} ({person['role']}).", person)


@users.command("ls")
@users.command("list", hidden=True)
def ls(role: Annotated[Role | None, typer.Option(help="Only these.")] = None) -> None:
    """List people."""
    with connected() as api:
        people = api.items("users", role=role)
    rows = [
        (
            p["name"],
            p["display_name"],
            p["role"],
            output.when(p["last_login_at"], "never"),
            "" if p["active"] else "deactivated",
        )
        for p in people
    ]
    output.table(("Name", "Called", "Role", "Last login", ""), rows, people)


@users.command("login-link")
def login_link(name: NAME) -> None:
    """Print a link that logs this person in, once. An earlier unused one stops working."""
    with connected() as api:
        link = api.post("users", name, "login-links")
    output.say(link["url"], link)


@users.command("password")
def password(name: NAME) -> None:
    """Set a person's password. It is asked for on a terminal, else read from the first line of the input."""
    new = typer.prompt("New password", hide_input=True, confirmation_prompt=True) if _asks() else _first_line()
    with connected() as api:
        api.put("users", name, "password", password=new)
    output.say(f"{name} has a new password, and is logged out everywhere.", {"user": name, "password_set": True})


def _asks() -> bool:
    return sys.stdin.isatty()


def _first_line() -> str:
    """As UTF-8, whatever the shell's own is; never an argument, which other processes can read."""
    return sys.stdin.buffer.readline().decode("utf-8", "replace").rstrip("\r\n")


@users.command("role")
def role(name: NAME, role: Annotated[Role, typer.Argument(help="The new role.")]) -> None:
    """Change what a person may do."""
    person = _change(name, role=role)
    output.say(f"{person['name']} is {person['role']} now.", person)


@users.command("deactivate")
def deactivate(name: NAME) -> None:
    """Lock a person out within seconds; their workspaces go to sleep. Nothing of theirs is deleted."""
    output.say(f"{name} is deactivated now.", _change(name, active=False))


@users.command("activate")
def activate(name: NAME) -> None:
    """Let a deactivated person in again, with a new login link."""
    output.say(f"{name} is active now.", _change(name, active=True))


@users.command("remove")
def remove(name: NAME, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Remove a person for good: logins, tokens, classes and shares go, workspaces go to the trash. Runs and history
    stay, without the name, which is never given again.
    """
    if not yes:
        typer.confirm(f"Remove {name} for good? Their name is never given again.", abort=True, err=True)
    with connected() as api:
        api.delete("users", name)
    output.say(f"Removed {name}. Their workspaces are in the trash.", {"user": name, "removed": True})


def _change(name: str, **change: Any) -> Any:
    with connected() as api:
        return api.patch("users", name, **change)


@tokens.command("create")
def create(
    name: NAME,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    scope: Annotated[list[Scope] | None, typer.Option(help="May be given several times; unset: all.")] = None,
    days: Annotated[int | None, typer.Option(min=1, max=3650, help="Days until it expires.")] = None,
) -> None:
    """Print a new access token for this person. It is shown this once."""
    with connected() as api:
        made = api.post("users", name, "tokens", label=label, scopes=scope or None, expires_in_days=days)
    output.say(made["token"], made)


@tokens.command("ls")
@tokens.command("list", hidden=True)
def list_tokens(name: NAME) -> None:
    """List a person's access tokens."""
    with connected() as api:
        found = api.items("users", name, "tokens")
    rows = [
        (
            t["id"],
            t["label"],
            " ".join(t["scopes"]),
            output.when(t["expires_at"]),
            output.when(t["last_used_at"], "never"),
        )
        for t in found
    ]
    output.table(("Id", "Label", "Scopes", "Expires", "Last used"), rows, found)


@tokens.command("revoke")
def revoke(name: NAME, token_id: Annotated[str, typer.Argument(help="As `codehub token ls` shows it.")]) -> None:
    """End a token. Programs that use it are refused within seconds."""
    with connected() as api:
        api.delete("users", name, "tokens", token_id)
    output.say(f"Revoked the token {token_id} of {name}.", {"user": name, "id": token_id, "revoked": True})
