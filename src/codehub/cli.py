"""The command line. Composes the commands of all capabilities; turns errors into one line and an exit code.

Everything heavy is imported where it is used: a role starts with its own weight only. Every command but the roles has
`--json`: one document on standard output, errors as problems (RFC 9457) on standard error.
"""

import contextlib
import functools
import gc
import importlib
import io
import os
import pathlib
import socket
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from codehub import __version__
from codehub import settings as config
from codehub.clock import SystemClock
from codehub.command import output, temporary
from codehub.errors import CodeHubError
from codehub.settings import Settings
from codehub.startup import allow_many_connections, load_settings

app = typer.Typer(
    name="codehub",
    help="Self-hosted coding labs. Start with `codehub serve`; everything else works beside it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
FD = Annotated[list[int] | None, typer.Option(hidden=True, help="An inherited listening socket.")]
RUN, OPERATE, PEOPLE, LEARNING = "Run", "Operate", "People and workspaces", "Learning"
# By `serve`, for all its roles. What is quickly loaded first: the servers' start goes on in between.
LOADED_ONCE = (
    "codehub.proxy.workers",
    "codehub.wiring.proxy",
    "codehub.wiring.coordinator",
    "codehub.startup_message",
    "codehub.roles.api",
)
LAZY_COMMANDS = {  # of capabilities; loaded when asked for
    "backup": ("codehub.backup.cli", "backup", OPERATE),
    "restore": ("codehub.backup.cli", "restore", OPERATE),
    "doctor": ("codehub.doctor.cli", "doctor", OPERATE),
    "gc": ("codehub.retention.cli", "collect", OPERATE),
    "ttl": ("codehub.activity.ttl_cli", "app", OPERATE),
    "workspace": ("codehub.activity.cli", "workspaces", PEOPLE),
    "course": ("codehub.courses.cli", "app", LEARNING),
    "class": ("codehub.schedules.cli", "classes", PEOPLE),
    "queue": ("codehub.waiting_room.cli", "app", PEOPLE),
    "user": ("codehub.auth.cli", "users", PEOPLE),
    "token": ("codehub.auth.cli", "tokens", PEOPLE),
}


def main() -> None:
    gc.disable()  # until `load_settings`: nothing of what is loaded can be garbage
    words = sys.argv[1:]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the terminal has no letters for is shown by its number
            stream.reconfigure(errors="backslashreplace")
    output.as_json = "--json" in words[: words.index("--") if "--" in words else None]
    try:
        add_commands("".join(words[:1]))
        _saying_errors(_run_for_programs if output.as_json else app)
    except SystemExit as e:
        _leave(e.code if isinstance(e.code, int) else int(e.code is not None))
    _leave(0)


def _leave(code: int) -> NoReturn:
    """At once: a library's thread that still waits for a server would meet the end of Python, and abort."""
    with contextlib.suppress(BrokenPipeError):  # the reader of our output has gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _saying_errors(work: Callable[..., None], **arguments: object) -> None:
    try:
        work(**arguments)
    except CodeHubError as e:
        output.failure(e)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


class _UsageError(CodeHubError):
    code = "USAGE"
    status = 400
    title = "The command line is not valid"


def _run_for_programs() -> None:
    """As `app` does, but what is wrong with the words is a problem, too."""
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        sys.exit(1)
    except Exception as e:
        if not hasattr(e, "format_message"):
            raise
        output.failure(_UsageError(e.format_message()))
        sys.exit(getattr(e, "exit_code", 2))
    sys.exit(code if isinstance(code, int) else 0)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if version:
        typer.echo(f"codehub {__version__}")
        raise typer.Exit


@app.command(rich_help_panel=RUN)
def serve(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every line of the log, a line for each request among them.")
    ] = False,
) -> None:
    """Run everything on this machine: servers, API, coordinator. Prints a login link at the first start.

    Without `CODEHUB_DATABASE_URL` and `CODEHUB_REDIS_URL` it starts its own PostgreSQL and Redis below
    `CODEHUB_DATA_DIR`. Stop it with Ctrl-C: everything is stopped in order, but workspaces go on running. On a terminal
    it says what matters; the log in the data directory (`log/codehub.log`) has everything.
    """
    import asyncio  # noqa: PLC0415 (roles import their own weight only)

    from codehub.embedded.datadir import DataDir  # noqa: PLC0415
    from codehub.embedded.servers import Urls  # noqa: PLC0415
    from codehub.supervisor import preflight  # noqa: PLC0415
    from codehub.supervisor import serve as supervisor  # noqa: PLC0415

    settings = load_settings("serve", preflight.problems)
    front_door = functools.partial(proxy, api_socket=DataDir(settings.storage.data_dir).api_socket)
    roles: dict[str, Callable[..., None]] = {"proxy": front_door, "api": api, "coordinator": coordinator}

    async def ready(urls: Urls, url: str) -> None:
        from codehub.startup_message import say_ready  # noqa: PLC0415

        await say_ready(settings, urls, url)

    def stopping() -> None:
        from codehub.startup_message import say_stopping  # noqa: PLC0415

        say_stopping(settings)

    run = {name: functools.partial(_saying_errors, role) for name, role in roles.items()}
    all_roles = supervisor.Roles(LOADED_ONCE, run, ready, stopping)
    asyncio.run(supervisor.serve(settings, SystemClock(), all_roles, verbose=verbose))


@app.command(rich_help_panel=RUN)
def api(fd: FD = None, operator_fd: FD = None) -> None:
    """Run only the API and pages. Any number of these may run.

    On CODEHUB_HOST and CODEHUB_PORT; with CODEHUB_PEER_LISTEN there alone, for front doors on other machines.
    """
    import uvloop  # noqa: PLC0415

    from codehub.roles import api as role  # noqa: PLC0415
    from codehub.supervisor.listeners import inherited, open_named, open_sockets  # noqa: PLC0415

    settings = load_settings("api")
    allow_many_connections()
    operators = inherited(operator_fd or ())
    if fd:
        listeners = role.Listeners(inherited(fd), operators)
    else:
        peers, probed = open_named(settings.roles.peer_listen), open_named(settings.roles.health_listen)
        listeners = role.Listeners([] if peers else open_sockets(settings), operators, peers, probed)
    uvloop.run(role.run(settings, SystemClock(), listeners))


@app.command(rich_help_panel=RUN)
def proxy(
    fd: FD = None,
    api_socket: Annotated[pathlib.Path | None, typer.Option(help="The API's Unix socket.")] = None,
) -> None:
    """Run only the front door: everything a browser says comes through here. Uses all cores."""
    from codehub.proxy.workers import run_workers  # noqa: PLC0415
    from codehub.supervisor.listeners import inherited, open_named, open_sockets  # noqa: PLC0415
    from codehub.wiring.proxy import api_address, build_director  # noqa: PLC0415

    settings = load_settings("proxy")
    allow_many_connections()
    listeners = inherited(fd) if fd else open_sockets(settings)
    probed = [] if fd else open_named(settings.roles.health_listen)
    clock, upstream = SystemClock(), api_address(settings, api_socket)
    director = build_director(settings, clock, upstream)
    run_workers(settings, clock, listeners, upstream, build_director=director, probed=probed)


@app.command(rich_help_panel=RUN)
def coordinator() -> None:
    """Run only the background loops. Any number of these may run; one leads, the others stand by."""
    import uvloop  # noqa: PLC0415

    from codehub.roles import coordinator as role  # noqa: PLC0415
    from codehub.supervisor.listeners import open_named  # noqa: PLC0415

    settings = load_settings("coordinator")
    uvloop.run(role.run(settings, SystemClock(), open_named(settings.roles.health_listen)))


@app.command(rich_help_panel=OPERATE)
def migrate() -> None:
    """Bring the database's schema up to date. Safe to run from several places at once."""
    from codehub.command.servers import with_servers  # noqa: PLC0415
    from codehub.db import migrate as migrations  # noqa: PLC0415
    from codehub.embedded.servers import Urls  # noqa: PLC0415

    async def work(_settings: Settings, urls: Urls) -> None:
        applied = await migrations.migrate(urls.database)
        lines = [f"applied {migration.version:04} {migration.name}" for migration in applied]
        done = [{"version": migration.version, "name": migration.name} for migration in applied]
        output.say("\n".join([*lines, "The database is up to date."]), {"applied": done})

    with_servers(work)


@app.command(rich_help_panel=OPERATE)
def settings() -> None:
    """List every setting, what it means, and its default. Set them in the environment or in `codehub.toml`."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    rows = [dict(zip(("name", "default", "meaning"), row, strict=True)) for row in config.describe()]
    if output.as_json:
        output.document({"items": rows})
        return
    table = Table("Setting", "Default", "Meaning", box=None, pad_edge=False)  # which folds long lines
    for row in rows:
        table.add_row(*row.values())
    Console().print(table)


@app.command(rich_help_panel=PEOPLE)
def hold(
    words: Annotated[list[str], typer.Argument(help="A time like 2h or 90m; or, after --, a command.", metavar="TIME")],
    reason: Annotated[str, typer.Option(help="What for; people see it beside the time.")] = "",
) -> None:
    """Inside a workspace: keep it awake, for a time (`codehub hold 2h`) or a command (`codehub hold -- make all`)."""
    from codehub.activity import hold as holding  # noqa: PLC0415

    if "--" in sys.argv:
        raise typer.Exit(holding.run(words, reason, sys.stderr.write))
    until = holding.ask(holding.seconds_of("".join(words)), reason)
    output.say(f"Stays awake until {output.when(until)}.", {"until": until.isoformat()})


ide = typer.Typer(help="IDEs that do not come with the package.", no_args_is_help=True)


@ide.command("install")
def ide_install(
    name: Annotated[str, typer.Argument(help="What to install: code-server.")],
) -> None:
    """Install an IDE below the data directory, where templates find it. Takes some minutes; can be repeated."""
    import asyncio  # noqa: PLC0415

    from codehub.runtimes import ide_install  # noqa: PLC0415

    settings = load_settings("cli")
    ide_install.require_known(name)
    data_dir, progress = settings.storage.data_dir, functools.partial(typer.echo, err=output.as_json)
    progress(f"Installing {name} takes some minutes; what its tools say goes to {ide_install.log_of(data_dir)}.")

    def say(step: ide_install.Told) -> None:
        progress(step.text)

    where = asyncio.run(ide_install.install(name, data_dir, say, settings.runtime.uid_base))
    output.say(f"Installed: {where}", {"name": name, "path": str(where)})


app.add_typer(ide, name="ide", rich_help_panel=OPERATE)


def add_commands(asked: str) -> None:
    """What capabilities bring along: the one that is asked for; all of them when help is asked for."""
    temporary.serve = _serve_for_command
    own = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    if asked not in own | {"--version"}:
        for name in [asked] if asked in LAZY_COMMANDS else LAZY_COMMANDS:
            module, thing, panel = LAZY_COMMANDS[name]
            command = getattr(importlib.import_module(module), thing)
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name, rich_help_panel=panel)
            else:
                app.command(name, rich_help_panel=panel)(command)
    _add_json(app)


def _add_json(group: typer.Typer) -> None:
    """Every command has it but the roles, which end with no result."""
    for command in group.registered_commands:
        if command.callback and command.rich_help_panel != RUN:
            command.callback = output.with_json(command.callback)
    for below in group.registered_groups:
        if below.typer_instance:
            _add_json(below.typer_instance)


def _serve_for_command(
    settings: Settings, listener: socket.socket, caller: socket.socket, ready: Callable[[], None]
) -> None:
    import uvloop  # noqa: PLC0415

    from codehub.roles.api import run_for_command  # noqa: PLC0415

    uvloop.run(run_for_command(settings, SystemClock(), listener, caller, ready))
