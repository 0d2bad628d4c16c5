"""REST about workspaces."""

from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, fields
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from codehub import names
from codehub.clock import Clock
from codehub.http import fields as web_fields
from codehub.http import paging, provide
from codehub.http.access import may, spend_creation
from codehub.http.fields import NO_NUL
from codehub.http.language import Reader
from codehub.http.problems import documented
from codehub.http.streams import Streams
from codehub.i18n import history as sentences
from codehub.i18n.locales import Locale
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.runtimes.base import Logs
from codehub.settings import Settings
from codehub.workspaces import git_rules, history, rules
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, FetchCause, FetchStatus, HistoryEntry, Phase, Workspace
from codehub.workspaces.repositories import Repositories
from codehub.workspaces.service import ACTIONS, UNSET, Details, Filters, NewWorkspace, Workspaces
from codehub.workspaces.sharing import Sharing
from codehub.workspaces.ttl_policy import TtlPolicies
from codehub.workspaces.view import WorkspaceOut, show

router = APIRouter(prefix="/api/v1", tags=["workspaces"], responses=documented(400, 401, 403, 503))
Id = Annotated[str, Path(description="A workspace's id.", examples=["k3jx7q2mzv5d"])]
DesiredIn = Literal["RUNNING", "STANDBY", "ARCHIVED", "PENDING"]
Name = Annotated[web_fields.Name, Field(examples=["Week 3"])]
Tail = Annotated[int, Query(ge=0, le=1_000_000, description="Bytes of it, at most.")]
LOG_TYPE = "text/plain; charset=utf-8"
Ttl = Annotated[int, Field(ge=0, le=10 * 365 * 86400, strict=True, description="Seconds; 0 = never."), web_fields.Whole]


ReservationToken = Annotated[
    str,
    Field(
        max_length=300,
        description="A place that the workspace's owner has entered in the waiting room: it is used for this start. "
        "Over, used or another person's: 409 `RESERVATION_EXPIRED`.",
    ),
]


class WorkspaceIn(web_fields.Body):
    name: Name
    template: str = Field(max_length=63, examples=["jupyterlab"])
    owner: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        pattern=NO_NUL,
        examples=["mina"],
        description="Whose it is; unset: yours. Only an admin names others.",
    )
    desired_state: DesiredIn = "RUNNING"
    standby_ttl_seconds: Ttl | None = None
    archive_ttl_seconds: Ttl | None = None
    reservation_token: ReservationToken | None = None
    git_url: str | None = Field(
        default=None,
        max_length=git_rules.LONGEST_ADDRESS,
        examples=["https://example.org/team/project.git"],
        description="A git repository that is cloned into its home once it runs: `https://` only, without a name or a "
        "password in it.",
    )
    git_branch: str | None = Field(
        default=None,
        max_length=git_rules.LONGEST_BRANCH,
        examples=["main"],
        description="A branch or a tag of it; unset: the one that the repository names.",
    )


OF_A_START = {"desired_state", "reservation_token", "instead_of"}


class WorkspaceChange(web_fields.Body):
    """Only what is named changes. `PENDING` means `ARCHIVED`."""

    desired_state: DesiredIn | None = None
    name: Name = ""  # only looked at when it is named
    standby_ttl_seconds: Ttl | None = None
    archive_ttl_seconds: Ttl | None = None
    keep_awake_until: web_fields.Moment | None = None
    reservation_token: ReservationToken | None = None

    instead_of: str | None = Field(
        default=None,
        max_length=63,
        examples=["k3jx7q2mzv5d"],
        description="With `RUNNING`: another workspace of the same owner, which is put to sleep. This one starts when "
        "that one no longer runs, in its place: no other gets it in between.",
    )


class RecoverIn(web_fields.Body):
    accept_loss: bool = Field(default=False, strict=True, description="Go on from the newest archive, or empty.")


class RepositoryOut(BaseModel):
    url: str
    branch: str | None
    folder: str = Field(description="Where it is, below the home.")
    status: FetchStatus = Field(description="`WAITING` for the workspace to run, or for another try.")
    attempts: int
    cause: FetchCause | None = Field(description="Why it was not fetched, or not yet.")
    said: str | None = Field(description="The last line that git said about that.")
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class WorkspaceDetail(WorkspaceOut):
    repository: RepositoryOut | None = Field(description="The git repository that it begins with.")
    start_position: int | None = Field(description="How many start before this one; null when it does not wait.")


class HistoryEntryOut(BaseModel):
    id: int
    at: datetime
    actor: str
    code: str = Field(description="What happened; each code has its own data.", examples=["idle_sleep"])
    data: dict[str, Any]
    event: str = Field(description="The name it had before there were codes; several codes may share one.")
    from_state: str | None
    to_state: str | None
    reason: str = Field(description="A sentence about it, in the language that `Accept-Language` asks for.")
    took_seconds: float | None
    detail: dict[str, Any] = Field(description="The same as `data`.")


def _entry(locale: Locale) -> Callable[[HistoryEntry], HistoryEntryOut]:
    def show(e: HistoryEntry) -> HistoryEntryOut:
        told = sentences.told(locale, e.code, e.data, actor=e.actor, to_state=e.to_state)
        return HistoryEntryOut(**asdict(e), event=history.event(e.code, e.data), reason=told, detail=dict(e.data))

    return show


def _service(request: Request) -> Workspaces:
    return provide.get(request, Workspaces)


async def detail(request: Request, w: Workspace) -> WorkspaceDetail:
    position = await _service(request).start_position(w)
    found = (await provide.get(request, Repositories).of([w])).get(w.id)
    repository = RepositoryOut(**{name: getattr(found, name) for name in RepositoryOut.model_fields}) if found else None
    shown = _shown(request)(w).model_dump()
    return WorkspaceDetail(**shown, start_position=position, repository=repository)


def _shown(request: Request) -> Callable[[Workspace], WorkspaceOut]:
    ttl_policies = provide.get(request, TtlPolicies)
    return lambda w: show(w, ttl_policies.sleeps_at(w))


def _desired(word: str) -> Desired:
    return Desired.ARCHIVED if word == "PENDING" else Desired(word)


@router.post("/workspaces", status_code=201, responses=documented(404, 409, 413, 429))
async def create_workspace(
    request: Request, caller: Annotated[Principal, may(Action.WORKSPACE_CREATE)], workspace: WorkspaceIn
) -> WorkspaceDetail:
    await spend_creation(request, caller, "workspace")
    wanted = {**workspace.model_dump(), "desired_state": _desired(workspace.desired_state)}
    return await detail(request, admitted(await _service(request).create(caller, NewWorkspace(**wanted))))


@router.get("/workspaces", responses=documented(404))
async def list_workspaces(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_LIST)],
    owner: Annotated[
        str | None,
        Query(max_length=63, pattern=NO_NUL, description="Of this person; only an admin sees others'."),
    ] = None,
    phase: Phase | None = None,
    template: Annotated[str | None, Query(max_length=63, pattern=NO_NUL)] = None,
    name: Annotated[str | None, Query(max_length=100, pattern=NO_NUL, description="Those that are called so.")] = None,
    deleted: Annotated[bool, Query(description="Those in the trash instead.")] = False,
    shared: Annotated[bool, Query(description="Those that others let you into, whatever else is said.")] = False,
    class_id: Annotated[
        str | None,
        Query(alias="class", max_length=63, pattern=NO_NUL, description="Of this class's learners, for its teachers."),
    ] = None,
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[WorkspaceOut]:
    after = paging.place(cursor)
    filters = Filters(owner, phase, template, deleted, None if name is None else names.composed(name), class_id)
    if shared:
        guest_of = await provide.get(request, Sharing).shared_with(caller, after=after, limit=limit + 1)
        return paging.page(guest_of, limit, _shown(request), lambda w: paging.at(w.created_at, w.id))
    found = await _service(request).page(caller, filters, after=after, limit=limit + 1)
    return paging.page(found, limit, _shown(request), lambda w: paging.at(w.created_at, w.id))


@router.get("/workspaces/{id}", responses=documented(404))
async def get_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_SEE)],
    id: Id,  # noqa: A002
) -> WorkspaceDetail:
    return await detail(request, await _service(request).get(caller, id))


@router.patch(
    "/workspaces/{id}",
    responses={**documented(404, 409, 413, 429), 202: {"model": WorkspaceDetail, "description": "It will be so."}},
)
async def change_workspace(
    request: Request,
    response: Response,
    caller: Annotated[Principal, may(Action.WORKSPACE_CHANGE)],
    id: Id,  # noqa: A002
    change: WorkspaceChange,
) -> WorkspaceDetail:
    """Ask for a state (202; 200 when it is so already), or change name, times and keep-awake."""
    service = _service(request)
    named = {name: getattr(change, name, None) for name in change.model_fields_set - OF_A_START}
    if keep := named.get("keep_awake_until"):
        named["keep_awake_until"] = _as_far_as_allowed(request, keep)
    wanted, details = change.desired_state and _desired(change.desired_state), _details(named) if named else None
    # All of it is asked for before any of it is done.
    w = await service.get(caller, id, *(details.actions if details else ()), *((ACTIONS[wanted],) if wanted else ()))
    if wanted is Desired.RUNNING and change.instead_of is not None:
        w, response.status_code = admitted(await service.swap(caller, id, change.instead_of)), 202
    elif wanted:
        w, response.status_code = admitted(await service.request(caller, id, wanted, change.reservation_token))
    if details:
        w = await service.change(caller, id, details)
    return await detail(request, w)


def _details(named: dict[str, Any]) -> Details:
    return Details(**{field.name: named.get(field.name, UNSET) for field in fields(Details)})


def _as_far_as_allowed(request: Request, until: datetime) -> datetime:
    """The answer says until when it really is."""
    limits = provide.get(request, Settings).limits
    return rules.keep_awake_until(until, provide.get(request, Clock).now(), limits.max_keep_awake_seconds)


@router.delete("/workspaces/{id}", status_code=202, responses=documented(404, 409))
async def delete_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_DELETE)],
    id: Id,  # noqa: A002
    purge: bool = False,
) -> WorkspaceDetail:
    """Into the trash; it can come back from there. With `purge` it is destroyed at once."""
    return await detail(request, await _service(request).delete(caller, id, purge=purge))


@router.post("/workspaces/{id}/undelete", status_code=202, responses=documented(404, 409, 429))
async def undelete_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_DELETE)],
    id: Id,  # noqa: A002
) -> WorkspaceDetail:
    return await detail(request, await _service(request).undelete(caller, id))


@router.post("/workspaces/{id}/recover", status_code=202, responses=documented(404, 409, 413, 429))
async def recover_workspace(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_RECOVER)],
    id: Id,  # noqa: A002
    how: RecoverIn | None = None,
) -> WorkspaceDetail:
    """Clear an error; what is observed next decides the rest."""
    accept = how.accept_loss if how else False
    return await detail(request, admitted(await _service(request).recover(caller, id, accept_loss=accept)))


@router.post("/workspaces/{id}/fetch", status_code=202, responses=documented(404, 409))
async def fetch_repository(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_FETCH)],
    id: Id,  # noqa: A002
) -> WorkspaceDetail:
    """Clone the git repository that it was made with once more. What is in the home is not touched."""
    return await detail(request, await provide.get(request, Repositories).fetch_again(caller, id))


@router.get("/workspaces/{id}/history", responses=documented(404))
async def workspace_history(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_HISTORY)],
    id: Id,  # noqa: A002
    reader: Reader,
    limit: paging.Limit = 50,
    cursor: paging.NumberCursor = None,
) -> paging.Page[HistoryEntryOut]:
    """Every transition with who, when, why and how long; newest first."""
    before = 2**62 if cursor is None else int(cursor)
    found = await _service(request).history(caller, id, before=before, limit=limit + 1)
    return paging.page(found, limit, _entry(reader), lambda e: str(e.id))


@router.get(
    "/workspaces/{id}/logs",
    response_class=StreamingResponse,
    responses={**documented(404), 200: {"content": {"text/plain": {}}, "description": "What the IDE printed."}},
)
async def workspace_logs(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_HISTORY)],
    id: Id,  # noqa: A002
    tail_bytes: Tail = 65536,
) -> StreamingResponse:
    """The end of the IDE's own log."""
    lines = await _log(request, caller, id, tail_bytes, follow=False)
    return StreamingResponse(lines, media_type=LOG_TYPE, headers={"x-accel-buffering": "no"})


@router.get(
    "/workspaces/{id}/logs/follow",
    response_class=StreamingResponse,
    responses={
        **documented(404, 429),
        200: {"content": {"text/plain": {}}, "description": "As it prints, without end."},
    },
)
async def follow_workspace_logs(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_HISTORY)],
    id: Id,  # noqa: A002
    tail_bytes: Tail = 65536,
) -> StreamingResponse:
    """The end of the IDE's own log, and then what comes."""
    lines = await _log(request, caller, id, tail_bytes, follow=True)
    return _streams(request).begin(caller, lines, LOG_TYPE)


async def _log(request: Request, caller: Principal, id_: str, tail_bytes: int, *, follow: bool) -> AsyncIterator[bytes]:
    await _service(request).get(caller, id_, Action.WORKSPACE_HISTORY)
    return provide.get(request, Logs).logs(id_, tail_bytes=tail_bytes, follow=follow)


def _streams(request: Request) -> Streams:
    return provide.get(request, Streams)
