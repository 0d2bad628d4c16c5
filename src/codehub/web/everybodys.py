"""`/workspaces`: everybody's workspaces, for admins: found, counted, and many of them asked for one thing at once.

A form about many leads to a page of its own (`/bulk/…`), which says what became of each; the coordinator does it.
"""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError
from codehub.http import paging
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import dashboard_view, everybodys_view, once
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import Services, services_of
from codehub.workspaces import bulk, finding
from codehub.workspaces.bulk_rules import Outcome, Verb

router = APIRouter(include_in_schema=False)
PAGE, CLASSES, RECENT = 48, 200, 5
PICK = "pick-"
BEGINNING = paging.place(None)


@router.get("/workspaces")
async def show(request: Request, caller: Annotated[Principal, may(Action.WORKSPACE_LIST_ALL)]) -> Response:
    services, query, locale = services_of(request), request.query_params, locale_for(request)
    now = services.clock.now()
    asked = everybodys_view.asked(query)
    search, sort = everybodys_view.search(asked, now), everybodys_view.sort(asked)
    found = await services.all_workspaces.page(caller, search, sort, cursor=query.get("cursor"), limit=PAGE + 1)
    more = finding.cursor_of(found[PAGE - 1], sort) if len(found) > PAGE else None
    totals = await services.all_workspaces.totals(caller, search)
    called = await services.people.called({w.owner for w in found[:PAGE]})
    reader = dashboard_view.Reader(request, caller)
    classes = await services.classes.page(caller, everybodys=True, archived=False, after=BEGINNING, limit=CLASSES)
    matched = totals.of[search.shown] if search.shown else totals.all
    return render(
        request,
        "everybodys.html",
        caller=caller,
        asked={**dict.fromkeys(everybodys_view.FIELDS, ""), **asked},
        narrowed=bool(asked),
        kept=urlencode(asked),
        rows=[everybodys_view.row(reader.card(w), called[w.owner], locale, now) for w in found[:PAGE]],
        chips=everybodys_view.chips(asked, totals, locale),
        matched=matched,
        verbs=everybodys_view.verbs(search.shown),
        at_most=bulk.AT_MOST,
        more=f"/workspaces?{urlencode({**asked, 'cursor': more})}" if more else None,
        is_first="cursor" not in query,
        templates=services.templates.all(),
        classes=classes,
        spans=everybodys_view.spans(locale),
        sorts=list(finding.Sort),
        recent=[everybodys_view.past(b, locale, now) for b in await services.bulk.newest(caller, RECENT)],
        problem=reader.problem(),
        once=once.number(),
    )


# --- many at once ---------------------------------------------------------------------------------------------------


@router.post("/bulk")
async def begin(request: Request, caller: Annotated[Principal, may(Action.WORKSPACE_BULK)], form: Posted) -> Response:
    services = services_of(request)
    kept = everybodys_view.asked(dict(parse_qsl(form.get("search", "")[:2000])))
    here, sent = f"/workspaces?{urlencode(kept)}", once.Once(services, caller, form)
    if before := await sent.led_to(here):
        return RedirectResponse(before, 303)
    try:
        verb = _verb(form)
        wanted, matched = await _wanted(services, caller, form, kept)
        made = await services.bulk.begin(caller, verb, wanted, matched)
    except CodeHubError as e:
        await sent.failed()
        return back(here, problem="BULK_NONE" if isinstance(e, InvalidRequestError) else e.code)
    await sent.leads_to(f"/bulk/{made}")
    return RedirectResponse(f"/bulk/{made}", 303)


async def _wanted(services: Services, caller: Principal, form: Form, kept: Mapping[str, str]) -> tuple[list[str], int]:
    """Those that are ticked; or all that match, as far as that goes at once, and how many that are."""
    if form.get("all") != "yes":
        ticked = [name.removeprefix(PICK) for name in form if name.startswith(PICK)]
        return ticked, len(ticked)
    search, sort = everybodys_view.search(kept, services.clock.now()), everybodys_view.sort(kept)
    found = await services.all_workspaces.page(caller, search, sort, cursor=None, limit=bulk.AT_MOST)
    totals = await services.all_workspaces.totals(caller, search)
    return [w.id for w in found], max(len(found), totals.of[search.shown] if search.shown else totals.all)


def _verb(form: Form) -> Verb:
    if form.get("verb") not in set(Verb):
        raise NotFoundError("there is no such action")
    return Verb(form["verb"])


@router.get("/bulk/{id}")
async def show_bulk(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_LIST_ALL)],
    id: str,  # noqa: A002
) -> Response:
    services, locale = services_of(request), locale_for(request)
    action, items = await services.bulk.get(caller, id)
    called = await services.people.called({item.owner for item in items} | {action.actor})
    view = everybodys_view.bulk(action, items, called, locale, services.clock.now())
    problem = dashboard_view.Reader(request, caller).problem()
    return render(request, "bulk.html", caller=caller, b=view, problem=problem, once=once.number())


@router.post("/bulk/{id}/undo")
async def undo(
    request: Request,
    caller: Annotated[Principal, may(Action.WORKSPACE_BULK)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """What was deleted comes back: those of the action that were deleted by it."""
    services, sent = services_of(request), once.Once(services_of(request), caller, form)
    if before := await sent.led_to(f"/bulk/{id}"):
        return RedirectResponse(before, 303)
    try:
        action, items = await services.bulk.get(caller, id)
        deleted = [item.workspace_id for item in items if item.outcome is Outcome.DONE]
        wanted = deleted if action.verb is Verb.DELETE else []
        made = await services.bulk.begin(caller, Verb.UNDELETE, wanted, len(wanted))
    except CodeHubError as e:
        await sent.failed()
        return back(f"/bulk/{id}", problem="BULK_NONE" if isinstance(e, InvalidRequestError) else e.code)
    await sent.leads_to(f"/bulk/{made}")
    return RedirectResponse(f"/bulk/{made}", 303)
