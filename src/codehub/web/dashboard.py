"""What a logged-in person works with: their workspaces as cards, one workspace in full, and the forms of both.

Every form is an ordinary POST that leads back to a page by 303, so everything works without JavaScript and survives
the back button. What was refused is told by the address (`?at=…&problem=…`) and said beside the card. The script
`static/codehub.js` sends the same forms, and puts what changed of the same pages into the one that is open.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from codehub import names
from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError, UnavailableError
from codehub.http.access import spend_creation
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.waiting_room.model import LAB
from codehub.web import board_view, dashboard_view, first_steps_view, history_view, home_rules, learning_view, once
from codehub.web.forms import Form, Posted, back, code_of
from codehub.web.page_access import may
from codehub.web.player_line_view import PATIENCE_SECONDS
from codehub.web.rendering import render
from codehub.web.services import Services, services_of
from codehub.workspaces import git_rules, rules
from codehub.workspaces.admission import Refused, admitted
from codehub.workspaces.errors import OperationInProgressError
from codehub.workspaces.git_rules import Complaint
from codehub.workspaces.model import Desired, Phase
from codehub.workspaces.repositories import GitAddressError
from codehub.workspaces.service import Details, NewWorkspace

router = APIRouter(include_in_schema=False)
T = TypeVar("T")
BUSY_SECONDS, PAUSE_SECONDS = 8.0, 0.25  # how long a request waits for the operation before it
KEEP_AWAKE_FOR = timedelta(hours=1)  # by one click
LOG_BYTES = 65536
NAME_LENGTH = 100
LONGEST_SECONDS = 8  # digits


# --- pages ----------------------------------------------------------------------------------------------------------


async def show(request: Request, caller: Principal) -> Response:
    """`/`, for a user who is logged in; `pages` calls it."""
    query = request.query_params
    sees_all = policy_rules.allows(caller, Action.WORKSPACE_LIST_ALL)
    if sees_all and "everybody" in query:  # where it was once
        return RedirectResponse("/workspaces", 303)
    reader = dashboard_view.Reader(request, caller)
    board = await reader.board()
    taught = await board_view.taught(request, caller)
    learner = learning_view.Reader(request, caller)
    going_on = await learner.going_on()
    waits = await _waits(services_of(request), caller)
    first = home_rules.carry_on(
        begun=bool(going_on and going_on.place),
        planned=going_on is not None,
        waits=waits,
        mine=[card.w for card in board.cards],
    )
    return render(
        request,
        "dashboard.html",
        first=first,
        caller=caller,
        board=board,
        taught=taught,
        sees_all=sees_all,
        runs_lines=policy_rules.allows(caller, Action.EVENT_CREATE),
        kinds=await reader.kinds(),
        name=query.get("name") or reader.new_name(board.cards),
        chosen=query.get("template"),
        git=git_typed(request),
        once=once.number(),
        going_on=going_on,
        of_classes=await learner.of_classes(going_on),
        courses=[] if board.cards else await learner.offered(),
        today=learner.today.isoformat(),
        then="",
        first_steps=await first_steps_view.reminder(request, caller),
        has_way_in=caller.session_id is None or await services_of(request).people.has_way_in(caller),
        waits=waits,
    )


def git_typed(request: Request) -> dict[str, str]:
    """Into the form, after it was refused."""
    query = request.query_params
    url, branch = query.get("git_url", ""), query.get("git_branch", "")
    return {"url": url[: git_rules.LONGEST_ADDRESS], "branch": branch[: git_rules.LONGEST_BRANCH]}


async def _waits(services: Services, caller: Principal) -> bool:
    """Is this person in line for a place, whichever tab or device they joined it with? The page waits only a little."""
    if not services.settings.limits.max_running_global:
        return False
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return bool(await services.waiting_room.waiting(LAB, [caller.id]))
    except (UnavailableError, TimeoutError):
        return False


@router.get("/workspaces/{id}")
async def show_one(request: Request, caller: Annotated[Principal, may(Action.WORKSPACE_HISTORY)], id: str) -> Response:  # noqa: A002
    reader = dashboard_view.Reader(request, caller)
    detail = await reader.detail(id)
    return render(
        request,
        "workspace.html",
        caller=caller,
        detail=detail,
        now=reader.now,
        problem=reader.problem(),
        kinds=list(history_view.Kind),
        at_sharing=request.query_params.get("at") == "sharing",
        who=request.query_params.get("who", "")[:63],
        done=request.query_params.get("done"),
        then="page",
    )


@router.get("/workspaces/{id}/log")
async def show_log(request: Request, caller: Annotated[Principal, may(Action.WORKSPACE_HISTORY)], id: str) -> Response:  # noqa: A002
    services = services_of(request)
    w = await services.workspaces.get(caller, id, Action.WORKSPACE_HISTORY)
    pieces = [piece async for piece in services.runtime.logs(id, tail_bytes=LOG_BYTES)]
    return render(request, "log.html", caller=caller, w=w, log=b"".join(pieces).decode("utf-8", "replace"))


# --- forms ----------------------------------------------------------------------------------------------------------


@router.post("/do/create")
async def create(
    request: Request, caller: Annotated[Principal, may(Action.WORKSPACE_CREATE)], form: Posted
) -> Response:
    """And open it. What was typed comes back when it is refused."""
    services, sent = services_of(request), once.Once(services_of(request), caller, form)
    if before := await sent.led_to("/"):  # where the workspace appears
        return RedirectResponse(before, 303)
    try:
        new = new_workspace(form)
        await spend_creation(request, caller, "workspace")
        made = admitted(await services.workspaces.create(caller, new))
    except CodeHubError as e:
        await sent.failed()
        return back("/", problem=problem_of(e), **typed(form))
    await sent.leads_to(f"/open/{made.id}")
    return RedirectResponse(f"/open/{made.id}", 303)


@router.post("/do/{id}/{verb}")
async def do(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_WAKE)],  # the least that a form asks for
    id: str,  # noqa: A002
    verb: str,
    form: Posted,
) -> Response:
    if verb not in VERBS:
        raise HTTPException(404)
    action, act = VERBS[verb]
    policy_rules.require_scope(caller, action)
    services = services_of(request)
    then = form.get("then", "")
    path = {"page": f"/workspaces/{id}", "frame": f"/open/{id}"}.get(then, "/")
    try:
        await retry_while_busy(services, lambda: act(services, caller, id, form))
    except CodeHubError as e:
        if then == "open" and isinstance(e, OperationInProgressError):
            return RedirectResponse(f"/open/{id}", 303)  # which waits for its end, however long that takes
        if verb == "share" and then == "page":  # said beside the field, with what was typed
            return back(path, at="sharing", problem=problem_of(e), who=form.get("user", "")[:63])
        return back(path, at=id, problem=problem_of(e))
    if then == "open":
        return RedirectResponse(f"/open/{id}", 303)
    return back("/" if verb in {"delete", "purge"} and then == "page" else path, at=id, done=DONE.get(verb))


async def retry_while_busy(services: Services, act: Callable[[], Awaitable[T | Refused]]) -> T:
    """Operations are not interrupted, so a click that comes during one waits for its end, within bounds."""
    deadline = services.clock.monotonic() + BUSY_SECONDS
    while True:
        try:
            return admitted(await act())
        except OperationInProgressError:
            if services.clock.monotonic() >= deadline:
                raise
            await services.clock.sleep(PAUSE_SECONDS)


def problem_of(error: CodeHubError) -> str:
    """What `refused_…` of the texts is about: the wrong field where there is one."""
    if isinstance(error, GitAddressError):
        return f"GIT_{error.complaint}"
    errors = error.extra.get("errors") or [{"field": ""}]
    fields = {
        "name": "NAME",
        "template": "TEMPLATE",
        "user": "NOBODY",
        "standby_ttl_seconds": "SLEEP_TIME",
        "restore_sure": "RESTORE_SURE",
    }
    return fields.get(errors[0]["field"], code_of(error))


def new_workspace(form: Form) -> NewWorkspace:
    """What the form of a new workspace asks for."""
    url, branch = form.get("git_url", "").strip(), form.get("git_branch", "").strip()
    name, template = name_of(form), form.get("template", "")
    return NewWorkspace(name, template, git_url=url or None, git_branch=(branch or None) if url else None)


def typed(form: Form) -> dict[str, str]:
    """What comes back into it when it is refused; a password that was typed into an address does not."""
    url, branch = form.get("git_url", "").strip(), form.get("git_branch", "").strip()
    secret = git_rules.complaint(url) is Complaint.CREDENTIALS
    return {
        "name": form.get("name", "")[:NAME_LENGTH],
        "template": form.get("template", "")[:63],
        "git_url": "" if secret else url[: git_rules.LONGEST_ADDRESS],
        "git_branch": branch[: git_rules.LONGEST_BRANCH],
    }


def name_of(form: Form) -> str:
    name = names.composed(" ".join(form.get("name", "").split()))
    if not 1 <= len(name) <= NAME_LENGTH or names.complaint(name):
        raise InvalidRequestError("1 to 100 characters", field="name")
    return name


# --- what the forms do ----------------------------------------------------------------------------------------------

Act = Callable[[Services, Principal, str, Form], Awaitable[Any]]
DONE = {"delete": "deleted", "undelete": "undone", "rename": "renamed", "sleep_after": "sleeps"}


def _request(wanted: Desired) -> Act:
    return lambda services, caller, id_, _: services.workspaces.request(caller, id_, wanted)


async def _swap(services: Services, caller: Principal, id_: str, form: Form) -> Any:
    return await services.workspaces.swap(caller, id_, form.get("instead_of", ""))


async def _keep_awake(services: Services, caller: Principal, id_: str, _form: Form) -> None:
    now, most = services.clock.now(), services.settings.limits.max_keep_awake_seconds
    until = rules.keep_awake_until(now + KEEP_AWAKE_FOR, now, most)
    await services.workspaces.change(caller, id_, Details(keep_awake_until=until))


async def _rename(services: Services, caller: Principal, id_: str, form: Form) -> None:
    await services.workspaces.change(caller, id_, Details(name=name_of(form)))


async def _sleep_after(services: Services, caller: Principal, id_: str, form: Form) -> None:
    """Empty: as its kind says."""
    typed = form.get("seconds", "").strip()
    if typed and not (typed.isascii() and typed.isdigit() and 0 < len(typed) <= LONGEST_SECONDS and int(typed)):
        raise InvalidRequestError("a number of seconds", field="standby_ttl_seconds")
    await services.workspaces.change(caller, id_, Details(standby_ttl_seconds=int(typed) if typed else None))


async def _recover(services: Services, caller: Principal, id_: str, form: Form) -> Any:
    return await services.workspaces.recover(caller, id_, accept_loss=form.get("accept_loss") == "yes")


async def _fetch(services: Services, caller: Principal, id_: str, _form: Form) -> None:
    await services.repositories.fetch_again(caller, id_)


async def _purge(services: Services, caller: Principal, id_: str, form: Form) -> None:
    """The one thing that cannot be undone is the one thing that asks."""
    if form.get("sure") != "yes":
        raise InvalidRequestError("say that you are sure", field="sure")
    await services.workspaces.delete(caller, id_, purge=True)


async def _restore(services: Services, caller: Principal, id_: str, form: Form) -> Any:
    """It ends what runs, and whoever is at work in it: so it asks."""
    w = await services.workspaces.get(caller, id_, Action.WORKSPACE_RESTORE)
    if w.phase is Phase.RUNNING and form.get("sure") != "yes":
        raise InvalidRequestError("say that you are sure", field="restore_sure")
    return await services.workspaces.restore(caller, id_, form.get("archive_key", ""))


async def _delete(services: Services, caller: Principal, id_: str, _form: Form) -> None:
    await services.workspaces.delete(caller, id_, purge=False)


async def _undelete(services: Services, caller: Principal, id_: str, _form: Form) -> Any:
    return await services.workspaces.undelete(caller, id_)


async def _unshare(services: Services, caller: Principal, id_: str, form: Form) -> None:
    await services.sharing.unshare(caller, id_, form.get("user", ""))


async def _share(services: Services, caller: Principal, id_: str, form: Form) -> None:
    await services.workspaces.get(caller, id_, Action.WORKSPACE_SHARE)
    try:
        await services.sharing.share(caller, id_, form.get("user", "").strip())
    except NotFoundError as e:  # it is there, so it is the guest who is not
        raise InvalidRequestError("there is no user of that name", field="user") from e


VERBS: Mapping[str, tuple[Action, Act]] = {
    "start": (Action.WORKSPACE_START, _request(Desired.RUNNING)),
    "swap": (Action.WORKSPACE_START, _swap),
    "stop": (Action.WORKSPACE_SLEEP, _request(Desired.STANDBY)),
    "archive": (Action.WORKSPACE_ARCHIVE, _request(Desired.ARCHIVED)),
    "keep_awake": (Action.WORKSPACE_KEEP_AWAKE, _keep_awake),
    "rename": (Action.WORKSPACE_CHANGE, _rename),
    "sleep_after": (Action.WORKSPACE_CHANGE, _sleep_after),
    "recover": (Action.WORKSPACE_RECOVER, _recover),
    "fetch": (Action.WORKSPACE_FETCH, _fetch),
    "delete": (Action.WORKSPACE_DELETE, _delete),
    "undelete": (Action.WORKSPACE_DELETE, _undelete),
    "purge": (Action.WORKSPACE_PURGE, _purge),
    "restore": (Action.WORKSPACE_RESTORE, _restore),
    "share": (Action.WORKSPACE_SHARE, _share),
    "unshare": (Action.WORKSPACE_SHARE, _unshare),
}
