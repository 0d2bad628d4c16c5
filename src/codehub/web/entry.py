"""What a person sees at `/w/{id}/…` when the request does not go to an IDE: the proxy hands those pages to us.

Whoever is not let in yet is led to a pass (`handover`); a sleeping workspace is woken; everything else is said.
"""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError
from codehub.http import rules
from codehub.http.access import require_login, spend_change
from codehub.policy import rules as policy_rules
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.web import entry_pages as pages
from codehub.web import forms, handover
from codehub.web.handover import begin_url, go, holder, host_of, logged_in, own_workspace, safe_next
from codehub.web.services import services_of
from codehub.workspaces.admission import Refused
from codehub.workspaces.model import Desired, Operation, Phase, Workspace

router = APIRouter(include_in_schema=False)
ACTIONS = ("start", "restore", "recover", "stop")
MOVING = {Operation.STARTING, Operation.RESTORING, Operation.PROVISIONING, Operation.STOPPING, Operation.ARCHIVING}


@router.get("/w/{id}")
@router.get("/w/{id}/{path:path}")
async def open_workspace(request: Request, id: str) -> Response:  # noqa: A002
    own = own_workspace(request)
    if own is not None and own != id:
        return pages.not_found(request, home_url=_home(request))
    if "authorization" in request.headers:  # a program's: it is served in place, and has no browser to lead anywhere
        caller = await require_login(request)
        policy_rules.require_scope(caller, writes=True)  # the page wakes the workspace
        return await _show(request, id, caller.name)
    person = await holder(request, id) if own is not None or not services_of(request).origins.isolated else None
    if person is not None:
        return await _show(request, id, person)
    if own is not None:
        return go(begin_url(handover.wanted(request)))
    return await _let_in(request, id)


async def _let_in(request: Request, id_: str) -> Response:
    """On the platform's origin: whoever is logged in and welcome gets a pass, here or on the workspace's own."""
    services = services_of(request)
    next_ = safe_next(handover.wanted(request), id_)
    caller = await logged_in(request)
    if caller is None or caller.session_id is None:
        return handover.to_login(request, next_)
    try:
        w = await services.entering.visit(caller.name, id_)
    except NotFoundError:
        return pages.not_found(request, home_url=_home(request))
    if origin := services.origins.of_workspace(id_, host_of(request)):
        return go(origin + begin_url(next_, host_of(request)))
    # From here on the workspace's scripts are the dashboard's: they act as whoever opens it.
    if caller.role is Role.ADMIN:
        return pages.admins_stay_out(request, home_url=_home(request))
    if not handover.was_told(request, caller.session_id):
        return pages.share_origin(request, w, home_url=_home(request))
    response = go(next_)
    handover.give_pass(request, response, handover.new_pass(request, id_, caller.name, caller.session_id))
    return response


async def _show(request: Request, id_: str, person: str) -> Response:
    """Wake it, or say why that does not happen."""
    services, home_url = services_of(request), _home(request)
    try:
        w = await services.entering.visit(person, id_)
        if w.phase is Phase.STANDBY and not request.state.head and not rules.looks_ahead(request.headers):
            outcome = await services.entering.wake(person, id_)
            if isinstance(outcome, Refused):
                return pages.over_limit(request, w, outcome, home_url=home_url, mine=w.owner == person)
            w = outcome
    except NotFoundError:
        return pages.not_found(request, home_url=home_url)
    if w.phase is Phase.ERROR:
        return pages.went_wrong(request, w, home_url=home_url, mine=w.owner == person)
    if w.desired_state is not Desired.RUNNING and w.operation not in MOVING:
        if w.phase is Phase.ARCHIVED:
            return pages.restore_needed(request, w, home_url=home_url, mine=w.owner == person)
        if w.phase is Phase.PENDING:
            return pages.start_needed(request, w, home_url=home_url, mine=w.owner == person)
    usual = await services.entering.usual_seconds(id_)
    position = await services.workspaces.start_position(w)
    now = services.clock.now()
    return pages.waking(request, w, now=now, usual_seconds=usual, position=position, home_url=home_url)


@router.post("/_codehub/understood/{id}")
async def understood(request: Request, id: str) -> Response:  # noqa: A002
    """The button of the page about shared origins; then as before, with an answer."""
    caller = await logged_in(request)
    sent = await forms.read(request)
    response = go(safe_next(sent.get("next"), id))
    if caller and caller.session_id:
        handover.note_told(request, response, caller.session_id)
    return response


@router.get("/_codehub/status/{id}")
async def status(request: Request, id: str) -> dict[str, Any]:  # noqa: A002
    """For the wake page's script."""
    services = services_of(request)
    w = await services.entering.visit(await _visitor(request, id), id)
    return {
        "phase": w.phase,
        "operation": w.operation,
        "desired_state": w.desired_state,
        "progress": w.progress,
        "error": (w.error_info or {}).get("reason"),
        "ready": w.phase is Phase.RUNNING and w.operation is not Operation.STOPPING,
        "position": await services.workspaces.start_position(w),
    }


@router.post("/_codehub/act/{id}")
async def act(request: Request, id: str) -> Response:  # noqa: A002
    """The buttons of these pages. A guest may wake; the rest is the owner's."""
    services = services_of(request)
    person = await _visitor(request, id)
    w = await services.entering.visit(person, id)
    sent = await forms.read(request)
    action, next_ = sent.get("action"), sent.get("next")
    if action not in ACTIONS:
        raise InvalidRequestError(f"must be one of {', '.join(ACTIONS)}", field="action")
    back = go(safe_next(next_, id))
    if w.owner != person:
        outcome: Any = await services.entering.wake(person, id)
        return _refused(request, w, outcome, person) or back
    caller = _as_owner(request, person)
    await spend_change(request, caller)
    try:
        if action == "recover":
            outcome = await services.workspaces.recover(caller, id)
        else:
            wanted = Desired.STANDBY if action == "stop" else Desired.RUNNING
            outcome = await services.workspaces.request(caller, id, wanted)
    except CodeHubError as e:
        if e.status >= 500:
            raise
        return back  # that page says how it stands
    return _refused(request, w, outcome, person) or back


def _refused(request: Request, w: Workspace, outcome: object, person: str) -> Response | None:
    if not isinstance(outcome, Refused):
        return None
    return pages.over_limit(request, w, outcome, home_url=_home(request), mine=w.owner == person)


def _as_owner(request: Request, person: str) -> Principal:
    """A pass opens a workspace; it makes nobody an admin."""
    return Principal(
        person, Role.LEARNER, ALL_SCOPES, request_id=request.state.request_id, address=request.state.address
    )


async def _visitor(request: Request, id_: str) -> str:
    own = own_workspace(request)
    person = await holder(request, id_) if own is None or own == id_ else None
    if person is None and own is None:
        caller = await logged_in(request)
        person = caller.name if caller else None
    if person is None:
        raise NotFoundError(f"there is no workspace {id_[:63]}")
    return person


def _home(request: Request) -> str:
    """The dashboard, from wherever this page is."""
    services = services_of(request)
    if own_workspace(request) is None:
        return "/"
    return services.origins.of_platform(host_of(request)) + "/"
