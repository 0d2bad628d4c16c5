"""What a session's page shows of a PRACTICE: its workspace, the starter files in it, what is checked and how it went.

Called by `player_view`; the result goes to the template `steps`. Commands of checks are not in it, and hints only of
checks that were run and did not pass.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup
from starlette.requests import Request

from codehub import markdown
from codehub.errors import NotFoundError
from codehub.policy.model import Principal
from codehub.sessions import practice
from codehub.sessions.blueprint import Activity
from codehub.sessions.model import Run
from codehub.web import dashboard_view
from codehub.web.attempts import Attempts
from codehub.web.presentation import Badge
from codehub.web.services import services_of
from codehub.workspaces.model import Workspace


@dataclass(frozen=True)
class CheckView:
    """One check: as it is announced, or as it went."""

    title: str
    passed: bool | None  # None: not run yet
    output: str = ""
    left_out: str | None = None  # how much was printed before that
    same_as: str | None = None  # the title of a check before it that printed the same
    hint: Markup | None = None
    timed_out: bool = False


@dataclass(frozen=True)
class PracticeView:
    instructions: Markup
    checks: Sequence[CheckView]
    tried: bool
    card: dashboard_view.Card | None  # of its workspace, if it has one
    runs: bool
    stuck: bool  # it did not start
    files: Sequence[Mapping[str, str]] | None  # None: not put there yet
    has_files: bool


async def read(request: Request, caller: Principal, activity: Activity, run: Run, index: int) -> PracticeView:
    attempts = Attempts(services_of(request).redis)
    attempt = await attempts.of(run.id, index)
    results = {str(check["id"]): check for check in attempt.checks}
    w = await workspace_of(request, caller, run)
    card = dashboard_view.Reader(request, caller).card(w) if w else None

    def rendered() -> tuple[Markup, list[CheckView]]:  # 100 KB of brackets take a second
        checks = [_check(check.title, results.get(check.id)) for check in activity.checks]
        return html(activity.instructions), once(checks)

    instructions, checks = await asyncio.to_thread(rendered)
    return PracticeView(
        instructions=instructions,
        checks=checks,
        tried=bool(results),
        card=card,
        runs=w is not None and practice.is_running(w),
        stuck=card is not None and card.badge is Badge.WRONG,
        files=await attempts.files(run.id, w.id) if w else None,
        has_files=bool(activity.files),
    )


async def workspace_of(request: Request, caller: Principal, run: Run) -> Workspace | None:
    """The run's, unless it is gone for good."""
    if run.workspace_id is None:
        return None
    try:
        return await services_of(request).workspaces.get(caller, run.workspace_id)
    except NotFoundError:
        return None


def _check(title: str, found: Mapping[str, Any] | None) -> CheckView:
    if found is None:
        return CheckView(title, None)
    hint, left_out = found.get("hint"), int(found.get("left_out") or 0)
    return CheckView(
        title,
        bool(found.get("passed")),
        output=str(found.get("output") or "").strip("\n"),
        left_out=f"{math.ceil(left_out / 1024)} KB" if left_out else None,
        hint=html(str(hint)) if hint else None,
        timed_out=bool(found.get("timed_out")),
    )


def once(checks: Sequence[CheckView]) -> list[CheckView]:
    """Of checks that failed with the same output (one missing file can do that to all), only the first shows it."""
    first: dict[str, str] = {}
    shown = list[CheckView]()
    for check in checks:
        repeats = check.passed is False and check.output in first
        if check.passed is False and check.output:
            first.setdefault(check.output, check.title)
        shown.append(replace(check, output="", left_out=None, same_as=first[check.output]) if repeats else check)
    return shown


def html(text: str) -> Markup:
    return Markup(markdown.render(text, headings_from=3))  # noqa: S704 (safe, whatever the text is)
