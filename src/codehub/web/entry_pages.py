"""The pages before a workspace opens: waking, restore needed, start needed, went wrong, over the limit, who are you.

Called by `entry`; shown on the workspace's own origin, so the way home is an address that is handed in. All work
without JavaScript, by forms and by a page that loads itself again; `static/waking.js` makes the waking one follow live.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from codehub.web import presentation
from codehub.web.middleware import policy_in_frame_of
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of
from codehub.web.waiting_tickets import WaitTickets
from codehub.workspaces.admission import OwnLimit, Refused
from codehub.workspaces.model import Desired, Operation, Phase, Workspace
from codehub.workspaces.swaps import Swap

RELOAD_SECONDS = 2  # without JavaScript
SLOW_AT_LEAST, SLOW_FACTOR = 30.0, 3.0  # seconds; times what is usual: from then on it is said
MB = 10**6


class Waking(NamedTuple):
    """How a workspace wakes that somebody waits for."""

    workspace: Workspace
    now: datetime
    usual_seconds: float | None
    position: int | None  # in the line of those that are to be started
    swap: Swap | None = None  # it starts when another one sleeps
    may_stop: bool = False


def waking(request: Request, how: Waking, *, home_url: str) -> Response:
    """It is on its way, or falls asleep and is woken right after; the page enters by itself."""
    values = shown(request, how)
    page = render(request, "waking.html", 503, home_url=home_url, how=values, **values)
    page.headers["retry-after"] = str(RELOAD_SECONDS)
    return page


def shown(request: Request, how: Waking) -> dict[str, Any]:
    """For `waking.html`, and for what lies over the frame meanwhile."""
    w, swap, usual_seconds = how.workspace, how.swap, how.usual_seconds
    elapsed = max(0.0, (how.now - (swap.created_at if swap else w.desired_at)).total_seconds())
    slow_after = max(SLOW_AT_LEAST, SLOW_FACTOR * (usual_seconds or 0.0))
    done, total = presentation.progress(w)
    copying = w.operation in {Operation.RESTORING, Operation.ARCHIVING}  # takes as long as there are files
    return {
        "w": w,
        "steps": steps(w),
        "falling": w.operation in presentation.FALLING,
        "elapsed": int(elapsed),
        "usual": max(1, round(usual_seconds)) if usual_seconds and not copying else None,
        "slow": elapsed > slow_after and not copying,
        "slow_after": slow_after,
        "position": how.position,
        "swap": swap,
        "may_stop": how.may_stop,
        "done_mb": done // MB,
        "total_mb": total // MB,
        "reload_seconds": RELOAD_SECONDS,
        "here": _here(request),
    }


def steps(w: Workspace) -> Mapping[str, str]:
    """Files → start → open, each `done`, `now` or `later`. `static/waking.js` ticks them the same way."""
    if w.phase is Phase.RUNNING and w.operation not in presentation.FALLING:
        return {"files": "done", "start": "done", "open": "now"}
    if w.operation is Operation.STARTING or (w.phase is Phase.STANDBY and w.operation not in presentation.FALLING):
        return {"files": "done", "start": "now", "open": "later"}
    return {"files": "now", "start": "later", "open": "later"}


def restore_needed(request: Request, w: Workspace, *, home_url: str, mine: bool = True) -> Response:
    return _ask(request, w, home_url, kind="stored", action="restore", mine=mine)


def start_needed(request: Request, w: Workspace, *, home_url: str, mine: bool = True) -> Response:
    return _ask(request, w, home_url, kind="new", action="start", mine=mine)


def _ask(request: Request, w: Workspace, home_url: str, **what: Any) -> Response:
    return render(request, "entry_ask.html", 502, home_url=home_url, w=w, here=_here(request), **what)


def cancelled(request: Request, w: Workspace, *, home_url: str) -> Response:
    """A start was called off. What was under way is not interrupted, so it may run all the same, until it sleeps."""
    asleep = w.desired_state is not Desired.RUNNING
    return render(request, "entry_cancelled.html", home_url=home_url, w=w, asleep=asleep)


def went_wrong(request: Request, w: Workspace, *, home_url: str, mine: bool = True, log: str = "") -> Response:
    """Going on with less than there was is decided on the dashboard, where nothing of the workspace's can click."""
    trouble = presentation.trouble(w, locale_for(request))
    return render(
        request,
        "entry_wrong.html",
        502,
        home_url=home_url,
        w=w,
        trouble=trouble,
        mine=mine,
        log=log,
        here=_here(request),
    )


def over_limit(
    request: Request, w: Workspace, refused: Refused, *, home_url: str, mine: bool, swap_failed: bool = False
) -> Response:
    """What runs is put to sleep on the dashboard: this page's origin has no rights over it. Guests do not see it.

    `swap_failed`: one was to be put to sleep for it a moment ago, and did not sleep in time.
    """
    running = [other for other in refused.running if mine and other.id != w.id]
    own = isinstance(refused, OwnLimit)
    kind = ("mine" if mine else "theirs") if own else "all"
    wait_url = _wait_url(request, w, home_url) if mine and not own else None
    return render(
        request,
        "entry_limit.html",
        502,
        home_url=home_url,
        w=w,
        kind=kind,
        limit=refused.limit,
        running=running,
        wait_url=wait_url,
        swap_failed=swap_failed,
        here=_here(request),
    )


def _wait_url(request: Request, w: Workspace, home_url: str) -> str:
    """Into the line, by one click, for exactly this workspace."""
    services = services_of(request)
    tickets = WaitTickets(services.settings.auth.secret_key or "", services.clock)
    return home_url.rstrip("/") + tickets.link(w.owner, w.id)


def not_found(request: Request, *, home_url: str) -> Response:
    return render(request, "entry_note.html", 404, home_url=home_url, kind="missing")


def no_pass(request: Request, *, home_url: str) -> Response:
    """In a frame of ours, which tells the page around it: that opens the workspace in a tab of its own."""
    origins = services_of(request).origins.frames(request.headers.get("host", ""))
    return render(request, "frame_over.html", 403, home_url=home_url, origins=" ".join(origins), here=_here(request))


def in_frame(request: Request, page: Response) -> Response:
    """On a workspace's origin, in a frame: that of our own page, and of no other."""
    ancestors = " ".join(services_of(request).origins.frames(request.headers.get("host", "")))
    page.headers["content-security-policy"] = policy_in_frame_of(ancestors)
    return page


def share_origin(request: Request, w: Workspace, *, home_url: str) -> Response:
    """What it means that this workspace has no origin of its own, before it is entered."""
    return render(request, "entry_shared.html", 403, home_url=home_url, w=w, here=_here(request))


def admins_stay_out(request: Request, *, home_url: str) -> Response:
    return render(request, "entry_note.html", 403, home_url=home_url, kind="admin")


def only_owners(request: Request, *, home_url: str) -> Response:
    return render(request, "entry_note.html", 403, home_url=home_url, kind="origin")


def _here(request: Request) -> str:
    """This very page, to come back to after a button; the language asked for is remembered by a cookie."""
    path: str = request.scope["raw_path"].decode("latin-1")
    query: str = request.scope["query_string"].decode("latin-1")
    kept = "&".join(part for part in query.split("&") if part and not part.startswith("lang="))
    return path + (f"?{kept}" if kept else "")
