"""`codehub workspace …`, by the API: for who may run commands on the machine. Named by its id or its name."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from codehub import ids
from codehub.clock import SystemClock
from codehub.command import output
from codehub.command.client import Api, ApiError, connected, pieces
from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError
from codehub.invocation import command

app = typer.Typer(help="Create workspaces, start and stop them, see why they are as they are.", no_args_is_help=True)
WHICH = Annotated[str, typer.Argument(help="The workspace's id, or its name when only one has it.")]
WAIT = Annotated[bool, typer.Option("--wait/--no-wait", help="Until it is so.")]
PATIENCE_SECONDS = 600.0
POLL_SECONDS = 0.3
NAMED = 5  # at most, of workspaces with the same name
BUSY = "OPERATION_IN_PROGRESS"
Found = dict[str, Any]


@app.command("ls")
@app.command("list", hidden=True)
def ls(
    owner: Annotated[str | None, typer.Option(help="Only this person's.")] = None,
    deleted: Annotated[bool, typer.Option(help="Those in the trash.")] = False,
) -> None:
    """List workspaces."""
    with connected() as api:
        found = api.items("workspaces", owner=owner, deleted=deleted)
    rows = [
        (w["id"], w["name"], w["owner"], w["template"], _state(w), output.when(w["phase_changed_at"])) for w in found
    ]
    output.table(("Id", "Name", "Owner", "Template", "State", "Since"), rows, found)


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    owner: Annotated[str, typer.Option(help="Whose it is.")],
    template: Annotated[str, typer.Option(help="See `codehub workspace templates`.")] = "jupyterlab",
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start it at once.")] = True,
    wait: WAIT = True,
    git: Annotated[str | None, typer.Option(help="A repository it begins with: https://…", metavar="URL")] = None,
    branch: Annotated[str | None, typer.Option(help="A branch or tag of that.")] = None,
) -> None:
    """Create a workspace for a user."""
    desired = "RUNNING" if start else "STANDBY"
    with connected(running=True) as api:
        asked = {"name": name, "owner": owner, "template": template, "desired_state": desired}
        w = api.post(
            "workspaces", **asked, **({"git_url": git} if git else {}), **({"git_branch": branch} if branch else {})
        )
        w = _until(api, w, {desired}) if wait else w
        w = _until_fetched(api, w) if wait and start and git else w
        output.say(f"Created {called(w)} for {w['owner']}: {_url(api, w)}{_fetched(w)}", {**w, "url": _url(api, w)})


@app.command("templates")
def templates() -> None:
    """List what workspaces can be made from."""
    with connected() as api:
        found = api.get("templates")["items"]
    rows = [(t["name"], t["title"], t["unavailable_reason"] or "") for t in found]
    output.table(("Name", "Title", ""), rows, found)


@app.command("start")
def start(which: WHICH, wait: WAIT = True) -> None:
    """Start it, from wherever it is: asleep, stored away, or new."""
    _ask(which, "RUNNING", {"RUNNING"}, ("is running", "will be started"), wait=wait)


@app.command("stop")
def stop(which: WHICH, wait: WAIT = True) -> None:
    """Put it to sleep. Its files stay."""
    _ask(which, "STANDBY", {"STANDBY"}, ("is asleep", "will be put to sleep"), wait=wait)


@app.command("archive")
def archive(which: WHICH, wait: WAIT = True) -> None:
    """Store it away: its files go into an archive and come back when it is started."""
    _ask(which, "ARCHIVED", {"ARCHIVED", "PENDING"}, ("is stored away", "will be stored away"), wait=wait)


@app.command("rm")
def rm(
    which: WHICH,
    purge: Annotated[bool, typer.Option(help="Destroy it at once instead of keeping it in the trash.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before destroying it.")] = False,
    wait: WAIT = True,
) -> None:
    """Delete it. It can come back from the trash, unless it was purged."""
    if purge and not yes:
        typer.confirm("This destroys the files for good. Go on?", abort=True, err=True)
    with connected(running=True) as api:
        w = find(api, which)
        w = retry_while_busy(lambda: api.delete("workspaces", w["id"], purge=purge))
        w = _until(api, w, {"DELETED"}) if wait else w
    done = "is destroyed" if purge else f"is in the trash; `{command('workspace undelete')} {w['id']}` brings it back"
    output.say(f"{called(w)} {done if wait else 'will be deleted'}.", w)


@app.command("undelete")
def undelete(which: WHICH) -> None:
    """Bring it back from the trash."""
    with connected(running=True) as api:
        w = find(api, which, deleted=True)
        in_trash = w["deleted_at"] is not None
        w = retry_while_busy(lambda: api.post("workspaces", w["id"], "undelete")) if in_trash else w
    output.say(f"{called(w)} " + ("comes back from the trash." if in_trash else "is not in the trash."), w)


@app.command("recover")
def recover(
    which: WHICH, accept_loss: Annotated[bool, typer.Option(help="Go on without what was lost.")] = False
) -> None:
    """Clear an error, after its cause is gone."""
    with connected(running=True) as api:
        w = find(api, which)
        w = api.post("workspaces", w["id"], "recover", accept_loss=accept_loss)
    output.say(f"The error of {called(w)} is cleared; what is found next decides the rest.", w)


@app.command("rename")
def rename(which: WHICH, name: Annotated[str, typer.Argument(help="The new name.")]) -> None:
    """Give it another name. Its id and address stay."""
    with connected() as api:
        before = find(api, which)
        w = api.patch("workspaces", before["id"], name=name)
    output.say(f"{called(before)} is called {w['name']} now.", w)


@app.command("fetch")
def fetch(which: WHICH, wait: WAIT = True) -> None:
    """Clone its git repository once more, after a failure. What is in its home is not touched."""
    with connected(running=True) as api:
        w = api.post("workspaces", find(api, which)["id"], "fetch")
        w = _until_fetched(api, w) if wait and w["phase"] == "RUNNING" else w
    output.say(f"{called(w)}{_fetched(w)}", w)


@app.command("history")
def history(which: WHICH) -> None:
    """What happened to it: who, when, why, how long."""
    with connected() as api:
        entries = api.items("workspaces", find(api, which)["id"], "history")[::-1]
    rows = []
    for e in entries:
        moved = f"{e['from_state'] or ''} → {e['to_state']}" if e["to_state"] else ""
        took = "" if e["took_seconds"] is None else f"{e['took_seconds']:.1f} s"
        rows.append((output.when(e["at"], seconds=True), e["actor"], e["event"], moved, e["reason"], took))
    output.table(("When", "Who", "What", "", "Why", "Took"), rows, entries)


@app.command("logs")
def logs(which: WHICH, follow: Annotated[bool, typer.Option("-f", "--follow", help="And what comes.")] = False) -> None:
    """What its IDE printed."""
    if follow and output.as_json:
        raise InvalidRequestError("has no end, and so is no JSON document: leave out one of both", field="--follow")
    with connected() as api:
        id_ = find(api, which)["id"]
        with api.stream("workspaces", id_, "logs", *(["follow"] if follow else [])) as answer:
            if output.as_json:
                output.document({"id": id_, "log": b"".join(pieces(answer)).decode("utf-8", "replace")})
                return
            for piece in pieces(answer):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()


@app.command("open")
def open_(which: WHICH) -> None:
    """Print where it is opened in a browser."""
    with connected() as api:
        w = find(api, which)
        output.say(_url(api, w), {"id": w["id"], "url": _url(api, w)})


def _ask(which: str, wanted: str, goal: set[str], words: tuple[str, str], *, wait: bool) -> None:
    with connected(running=True) as api:
        w = find(api, which)
        w = retry_while_busy(lambda: api.patch("workspaces", w["id"], desired_state=wanted))
        w = _until(api, w, goal) if wait else w
    output.say(f"{called(w)} {words[0] if wait else words[1]}.", w)


def called(w: Found) -> str:
    return f"{w['name']} ({w['id']})"


def _state(w: Found) -> str:
    return f"{w['phase']}" if w["operation"] == "NONE" else f"{w['phase']} ({w['operation'].lower()})"


def _url(api: Api, w: Found) -> str:
    return f"{api.url}{w['path']}"


def find(api: Api, which: str, *, deleted: bool = False) -> Found:
    """By id, else by name: first among those that are not in the trash, or are with `deleted`."""
    if ids.is_label(which):
        found: Found | None = api.find("workspaces", which)
        if found:
            return found
    for in_trash in (deleted, not deleted):
        named = api.items("workspaces", name=which, deleted=in_trash)
        if len(named) > 1:
            told = ", ".join(f"{w['id']} of {w['owner']}" for w in named[:NAMED])
            raise InvalidRequestError(f"{len(named)} workspaces are called so, use an id: {told}", field=which)
        if named:
            return named[0]
    raise NotFoundError(f"there is no workspace {which[:63]}")


def retry_while_busy(call: Callable[[], Found]) -> Found:
    """An operation is not interrupted: wait for its end and ask again, so that the person need not."""
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call()
        except ApiError as e:
            if e.code != BUSY or clock.monotonic() > deadline:
                raise
            clock.pause(POLL_SECONDS)


def _until(api: Api, w: Found, goal: set[str]) -> Found:
    return until(api, w, lambda now: now["phase"] in goal)


def until(api: Api, w: Found, reached: Callable[[Found], bool]) -> Found:
    """Wait until it is so and nothing is under way; on a terminal, say what goes on."""
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE_SECONDS
    try:
        while clock.monotonic() < deadline:
            if w["operation"] == "NONE" and reached(w):
                return w
            if w["phase"] == "ERROR":
                raise CodeHubError(f"{w['name']}: {(w['error_info'] or {}).get('last_error', 'something went wrong')}")
            output.note(_what_is_going_on(w))
            clock.pause(POLL_SECONDS)
            w = api.get("workspaces", w["id"])
    finally:
        output.note("")
    raise CodeHubError(
        f"{called(w)} is still {_state(w)}: `{command('workspace history')} {w['id']}` says what happened"
    )


def _until_fetched(api: Api, w: Found) -> Found:
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE_SECONDS
    while w["repository"]["status"] in {"WAITING", "RUNNING"} and clock.monotonic() < deadline:
        output.note(f"fetching {w['repository']['url']}")
        clock.pause(POLL_SECONDS)
        w = api.get("workspaces", w["id"])
    output.note("")
    return w


def _fetched(w: Found) -> str:
    """What became of its repository, to go on with after the rest of a line."""
    r = w["repository"]
    if r is None:
        return ""
    if r["status"] == "DONE":
        return f"\n{r['url']} is in ~/{r['folder']}."
    if r["status"] != "FAILED":
        return f"\n{r['url']} is fetched once it runs."
    said = f" ({r['said']})" if r["said"] else ""
    why = f"{r['cause'].replace('_', ' ')}{said}"
    return (
        f"\n{r['url']} was not fetched: {why}. It works without; `{command('workspace fetch')} {w['id']}` tries again."
    )


def _what_is_going_on(w: Found) -> str:
    if w["operation"] == "NONE":
        return "waiting for the coordinator"
    done, total = (w["progress"] or {}).get("bytes", 0), (w["progress"] or {}).get("total", 0)
    return f"{w['operation'].lower()} {100 * done // total} %" if total else w["operation"].lower()
