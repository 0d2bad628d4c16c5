"""What a person sees at `/w/{id}/…` when the request does not go to an IDE: the proxy hands those pages to us.

A person who is not let in yet is led to a pass (`handover`); a sleeping workspace is woken; everything else is said.
"""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.db import Connection
from codehub.errors import CodeHubError, ForbiddenError, InvalidRequestError, NotFoundError
from codehub.gate.access import Visit
from codehub.http import provide, rules
from codehub.http.access import names, require_login, spend_change
from codehub.http.streams import Streams
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Relation
from codehub.web import dashboard, forms, handover
from codehub.web import entry_pages as pages
from codehub.web.handover import begin_url, go, host_of, logged_in, own_workspace, pass_holder, safe_next, safe_return
from codehub.web.services import Services, services_of
from codehub.workspaces import authorize, changes
from codehub.workspaces.admission import Refused
from codehub.workspaces.model import Desired, Operation, Phase, Workspace
from codehub.workspaces.swaps import Swap

router = APIRouter(include_in_schema=False)
# Of the buttons. Restoring one that is stored away is starting it.
ACTIONS = {
    "start": Action.WORKSPACE_START,
    "restore": Action.WORKSPACE_START,
    "recover": Action.WORKSPACE_RECOVER,
    "stop": Action.WORKSPACE_SLEEP,
    "cancel": Action.WORKSPACE_SLEEP,  # of a start that is under way: it sleeps as soon as it can
}
HEARTBEAT_SECONDS, RETRY_MS = 4.0, 500  # of the stream: without news, and after which a browser comes back
LOG_BYTES, LOG_LINES = 4096, 15  # of what an IDE said that did not start
MOVING = {Operation.STARTING, Operation.RESTORING, Operation.PROVISIONING, Operation.STOPPING, Operation.ARCHIVING}


@router.get("/w/{id}", dependencies=[names(Action.WORKSPACE_ENTER)])
@router.get("/w/{id}/{path:path}", dependencies=[names(Action.WORKSPACE_ENTER)])
async def open_workspace(request: Request, id: str) -> Response:  # noqa: A002
    own = own_workspace(request)
    if own is not None and own != id:
        return pages.not_found(request, home_url=_home(request))
    if "authorization" in request.headers:  # a program's: it is served in place, and has no browser to lead anywhere
        caller = await require_login(request, Action.WORKSPACE_WAKE)  # which the page does
        try:
            return await show(request, id, caller)
        except NotFoundError as e:
            return refuse(request, caller, e)
    holder = await pass_holder(request, id) if own is not None or not services_of(request).origins.isolated else None
    if holder is not None:
        try:
            page = await show(request, id, holder)
            return pages.in_frame(request, page) if own is not None and handover.is_framed(request) else page
        except NotFoundError as e:  # a pass of before: they may be called otherwise now, or be a guest no more
            if own is None:
                return refuse(request, holder, e)
    if own is not None:
        if handover.is_framed(request):  # there is no pass, and none can be fetched from here
            return pages.in_frame(request, pages.no_pass(request, home_url=_home(request)))
        return go(begin_url(handover.wanted(request)))
    return await _let_in(request, id)


async def _let_in(request: Request, id_: str) -> Response:
    """On the platform's origin: a person who is logged in and may enter gets a pass, here or on the workspace's own."""
    services = services_of(request)
    next_ = safe_next(handover.wanted(request), id_)
    caller = await logged_in(request)
    if caller is None or caller.session_id is None:
        return handover.to_login(request, next_)
    try:
        visit = await services.access.visit(caller, id_)
    except (NotFoundError, ForbiddenError) as e:
        return refuse(request, caller, e)
    if origin := services.origins.of_workspace(id_, host_of(request)):
        await _wake_ahead(request, caller, visit)
        return go(origin + begin_url(next_, host_of(request)))
    # From here on the workspace's scripts are the dashboard's: they act as the person who opens it.
    if not handover.was_told(request, caller.session_id):
        return pages.share_origin(request, visit.workspace, home_url=_home(request))
    response = go(next_)
    handover.give_pass(request, response, await services.access.arrive(caller, id_))
    return response


async def _wake_ahead(request: Request, caller: Principal, visit: Visit) -> None:
    """It wakes while the login travels. What is in the way of that is said when it has arrived."""
    if request.state.head or rules.looks_ahead(request.headers):
        return
    with contextlib.suppress(CodeHubError):
        await services_of(request).access.wake(caller, visit)


def refuse(request: Request, principal: Principal, error: CodeHubError) -> Response:
    """For a person who may not enter; what they may not even see is not there."""
    if isinstance(error, NotFoundError):
        return pages.not_found(request, home_url=_home(request))
    if policy.allows(principal, Action.WORKSPACE_LIST_ALL):
        return pages.admins_stay_out(request, home_url=_home(request))
    return pages.only_owners(request, home_url=_home(request))


async def show(request: Request, id_: str, principal: Principal) -> Response:
    """Wake it, or say why that does not happen."""
    visit = await services_of(request).access.visit(principal, id_)
    found = await wake(request, visit, principal)
    return found if isinstance(found, Response) else pages.waking(request, found, home_url=_home(request))


async def wake(request: Request, visit: Visit, principal: Principal, *, asked: bool = False) -> Response | pages.Waking:
    """How it wakes; a page, when it does not. `asked`: a person did, whatever the request looks like."""
    services, home_url = services_of(request), _home(request)
    outcome: Workspace | Refused = visit.workspace
    if asked or (not request.state.head and not rules.looks_ahead(request.headers)):
        outcome = await services.access.wake(principal, visit)
    if isinstance(outcome, Refused):
        return await _over_limit(request, visit, outcome)
    w, may = outcome, policy.allows(principal, Action.WORKSPACE_START, visit.resource)
    if w.phase is Phase.ERROR:
        log = await _last_words(request, w) if may else ""
        return pages.went_wrong(request, w, home_url=home_url, mine=may, log=log)
    swap = await services.workspaces.swap_of(w.id) if w.desired_state is not Desired.RUNNING else None
    if swap is None and w.desired_state is not Desired.RUNNING and w.operation not in MOVING:
        if w.phase is Phase.ARCHIVED:
            return pages.restore_needed(request, w, home_url=home_url, mine=may)
        if w.phase is Phase.PENDING:
            return pages.start_needed(request, w, home_url=home_url, mine=may)
    return await how_it_wakes(request, visit._replace(workspace=w), principal, swap)


async def how_it_wakes(request: Request, visit: Visit, principal: Principal, swap: Swap | None = None) -> pages.Waking:
    services, w = services_of(request), visit.workspace
    return pages.Waking(
        w,
        services.clock.now(),
        await services.access.usual_seconds(w.id),
        await services.workspaces.start_position(w),
        swap,
        may_stop=policy.allows(principal, Action.WORKSPACE_SLEEP, visit.resource) and swap is None,
    )


async def _last_words(request: Request, w: Workspace) -> str:
    """The end of its log. Only a help: the page is there without it."""
    try:
        pieces = [piece async for piece in services_of(request).runtime.logs(w.id, tail_bytes=LOG_BYTES)]
    except (CodeHubError, OSError):
        return ""
    return "\n".join(b"".join(pieces).decode("utf-8", "replace").splitlines()[-LOG_LINES:])


@router.post("/_codehub/understood/{id}", dependencies=[names(Action.WORKSPACE_ENTER)])
async def understood(request: Request, id: str) -> Response:  # noqa: A002
    """The button of the page about shared origins; then as before, with an answer."""
    caller = await logged_in(request)
    sent = await forms.read(request)
    response = go(safe_next(sent.get("next"), id))
    if caller and caller.session_id:
        handover.note_told(request, response, caller.session_id)
    return response


@router.get("/_codehub/status/{id}", dependencies=[names(Action.WORKSPACE_ENTER)])
async def status(request: Request, id: str) -> dict[str, Any]:  # noqa: A002
    """For the wake page's script, where it has no stream."""
    return await _status(services_of(request), await _visitor(request, id), id)


@router.get("/_codehub/news/{id}", dependencies=[names(Action.WORKSPACE_ENTER)])
async def news(request: Request, id: str) -> Response:  # noqa: A002
    """The same as a stream: how it stands, now and whenever that changes."""
    services, visitor = services_of(request), await _visitor(request, id)
    cursor = await services.hub.now()
    first = await _status(services, visitor, id)
    return provide.get(request, Streams).begin(
        visitor, _news(services, visitor, id, cursor, first), "text/event-stream"
    )


async def _news(
    services: Services, visitor: Principal, id_: str, cursor: int, first: dict[str, Any]
) -> AsyncIterator[bytes]:
    """An event only says that there is news; what that is, is read. Ends with the first that cannot be."""

    async def none(_c: Connection) -> list[str]:
        return []

    yield _said(first)
    with contextlib.suppress(CodeHubError):
        async with services.hub.subscribed([f"{changes.CLASS}:{id_}"], none, cursor) as subscription:
            while await subscription.next(HEARTBEAT_SECONDS) is not None:
                yield _said(await _status(services, visitor, id_))


def _said(status: dict[str, Any]) -> bytes:
    return f"retry: {RETRY_MS}\ndata: {json.dumps(status, separators=(',', ':'))}\n\n".encode()


async def _status(services: Services, visitor: Principal, id_: str) -> dict[str, Any]:
    w = (await services.access.visit(visitor, id_)).workspace
    swap = await services.workspaces.swap_of(id_) if w.desired_state is not Desired.RUNNING else None
    return {
        "phase": w.phase,
        "operation": w.operation,
        "desired_state": w.desired_state,
        "swapping": swap is not None,
        "progress": w.progress,
        "failures": w.failures,
        "error": (w.error_info or {}).get("reason"),
        "ready": w.phase is Phase.RUNNING and w.operation is not Operation.STOPPING,
        "position": await services.workspaces.start_position(w),
    }


@router.post("/_codehub/act/{id}", dependencies=[names(Action.WORKSPACE_WAKE)])
async def act(request: Request, id: str) -> Response:  # noqa: A002
    """The buttons of these pages. A guest wakes it instead of starting it, and does not stop it."""
    services = services_of(request)
    principal = await _visitor(request, id)
    visit = await services.access.visit(principal, id)
    sent = await forms.read(request)
    action, next_ = sent.get("action"), sent.get("next")
    if action not in ACTIONS:
        raise InvalidRequestError(f"must be one of {', '.join(ACTIONS)}", field="action")
    back = go(safe_return(next_, id))
    if not policy.allows(principal, ACTIONS[action], visit.resource):
        if action in {"stop", "cancel"}:
            return back
        outcome: Any = await services.access.wake(principal, visit, asked=True)
        return await _over_limit(request, visit, outcome) if isinstance(outcome, Refused) else back
    await spend_change(request, principal)
    if action == "cancel":
        return await _cancel(request, principal, id)
    try:
        if action == "recover":
            outcome = await services.workspaces.recover(principal, id)
        else:
            wanted = Desired.STANDBY if action == "stop" else Desired.RUNNING
            outcome = await services.workspaces.request(principal, id, wanted)
    except CodeHubError as e:
        if e.status >= 500:
            raise
        return back  # that page says how it stands
    return await _over_limit(request, visit, outcome) if isinstance(outcome, Refused) else back


async def _cancel(request: Request, principal: Principal, id_: str) -> Response:
    """To a page that does not wake it again, and says how it stands."""
    services = services_of(request)
    try:
        await dashboard.retry_while_busy(services, lambda: services.workspaces.request(principal, id_, Desired.STANDBY))
    except CodeHubError as e:
        if e.status >= 500:
            raise
    return go(f"/_codehub/cancelled/{id_}")


@router.get("/_codehub/cancelled/{id}", dependencies=[names(Action.WORKSPACE_ENTER)])
async def cancelled(request: Request, id: str) -> Response:  # noqa: A002
    w = (await services_of(request).access.visit(await _visitor(request, id), id)).workspace
    return pages.cancelled(request, w, home_url=_home(request))


async def _over_limit(request: Request, visit: Visit, refused: Refused) -> Response:
    w, mine = visit.workspace, visit.decision.relation is Relation.OWNER
    failed = mine and await services_of(request).workspaces.swap_failed_lately(w.id)
    return pages.over_limit(request, w, refused, home_url=_home(request), mine=mine, swap_failed=failed)


async def _visitor(request: Request, id_: str) -> Principal:
    own = own_workspace(request)
    found = await pass_holder(request, id_) if own is None or own == id_ else None
    if found is None and own is None:
        found = await logged_in(request)
    if found is None:
        raise NotFoundError(authorize.missing(id_))
    return found


def _home(request: Request) -> str:
    """The dashboard, from wherever this page is."""
    services = services_of(request)
    if own_workspace(request) is None:
        return "/"
    return services.origins.of_platform(host_of(request)) + "/"
