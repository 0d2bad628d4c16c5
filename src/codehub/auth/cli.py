"""`codehub user …` and `codehub token …`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from codehub.auth.service import FROM_THE_START
from codehub.command import operator, reached_at, with_services
from codehub.policy.model import Role, Scope
from codehub.web.services import Services

users = typer.Typer(help="Add people, list them, give them login links.", no_args_is_help=True)
tokens = typer.Typer(help="Access tokens for programs.", no_args_is_help=True)
NAME = Annotated[str, typer.Argument(help="The person's name: a–z, 0–9 and -.")]
EVERYBODY = 1_000_000


@users.command("add")
def add(name: NAME, role: Annotated[Role, typer.Option(help="What they may do.")] = Role.LEARNER) -> None:
    """Add a person. Give them a login link next: `codehub user login-link NAME`."""

    async def work(services: Services) -> None:
        person = await services.people.create_user(operator(), name, role)
        typer.echo(f"Added {person.name} ({person.role}).")

    with_services(work)


@users.command("ls")
def ls(role: Annotated[Role | None, typer.Option(help="Only these.")] = None) -> None:
    """List people."""

    async def work(services: Services) -> None:
        table = Table("Name", "Role", "Last login", "", box=None, pad_edge=False)
        for person in await services.people.page_users(operator(), after="", role=role, limit=EVERYBODY):
            seen = f"{person.last_login_at:%Y-%m-%d %H:%M}" if person.last_login_at else "never"
            table.add_row(person.name, person.role, seen, "" if person.active else "deactivated")
        Console().print(table)

    with_services(work)


@users.command("login-link")
def login_link(name: NAME) -> None:
    """Print a link that logs this person in, once. An earlier unused one stops working."""

    async def work(services: Services) -> None:
        link = await services.people.make_login_link(operator(), name)
        typer.echo(link.url(reached_at(services.settings)))

    with_services(work)


@users.command("role")
def role(name: NAME, role: Annotated[Role, typer.Argument(help="The new role.")]) -> None:
    """Change what a person may do."""

    async def work(services: Services) -> None:
        person = await services.people.change_user(operator(), name, role=role, active=None)
        typer.echo(f"{person.name} is {person.role} now.")

    with_services(work)


@users.command("deactivate")
def deactivate(name: NAME) -> None:
    """Lock a person out within seconds; their workspaces go to sleep. Nothing of theirs is deleted."""
    _activate(name, active=False)


@users.command("activate")
def activate(name: NAME) -> None:
    """Let a deactivated person in again, with a new login link."""
    _activate(name, active=True)


def _activate(name: str, *, active: bool) -> None:
    async def work(services: Services) -> None:
        await services.people.change_user(operator(), name, role=None, active=active)
        typer.echo(f"{name} is {'active' if active else 'deactivated'} now.")

    with_services(work)


@tokens.command("create")
def create(
    name: NAME,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    scope: Annotated[list[Scope] | None, typer.Option(help="May be given several times; unset: all.")] = None,
    days: Annotated[int | None, typer.Option(min=1, max=3650, help="Days until it expires.")] = None,
) -> None:
    """Print a new access token for this person. It is shown this once."""

    async def work(services: Services) -> None:
        scopes = frozenset(scope) if scope else None
        made = await services.people.create_token(operator(), name, label=label, scopes=scopes, days=days)
        typer.echo(made.secret)

    with_services(work)


@tokens.command("ls")
def list_tokens(name: NAME) -> None:
    """List a person's access tokens."""

    async def work(services: Services) -> None:
        table = Table("Id", "Label", "Scopes", "Expires", "Last used", box=None, pad_edge=False)
        for t in await services.people.page_tokens(operator(), name, after=FROM_THE_START, limit=EVERYBODY):
            used = f"{t.last_used_at:%Y-%m-%d %H:%M}" if t.last_used_at else "never"
            table.add_row(t.id, t.label, " ".join(t.scopes), f"{t.expires_at:%Y-%m-%d}", used)
        Console().print(table)

    with_services(work)


@tokens.command("revoke")
def revoke(name: NAME, token_id: Annotated[str, typer.Argument(help="As `codehub token ls` shows it.")]) -> None:
    """End a token. Programs that use it are refused within seconds."""

    async def work(services: Services) -> None:
        await services.people.revoke_token(operator(), name, token_id)
        typer.echo("Revoked.")

    with_services(work)
