"""Gathers what a session's page shows of the line for a place in the lab, which only its PRACTICE needs.

Called by `player_view` and `player_line`; the result goes to the template `line_pieces`. Nothing is shown where nobody
has to wait. The session itself needs none of this: whatever the line answers, or does not, its page goes on.
"""

import asyncio
from dataclasses import dataclass
from math import ceil

from starlette.requests import Request

from codehub.errors import NotFoundError, UnavailableError
from codehub.policy.model import Principal
from codehub.sessions.blueprint import Step
from codehub.sessions.blueprints import Lesson
from codehub.sessions.model import Run
from codehub.waiting_room.errors import TokenExpiredError
from codehub.waiting_room.model import LAB, State
from codehub.waiting_room.status import Status
from codehub.web import dashboard_view, waiting_memory
from codehub.web import waiting_presentation as presentation
from codehub.web.rendering import locale_for
from codehub.web.services import services_of
from codehub.web.waiting_presentation import Screen
from codehub.workspaces import rules as workspace_rules
from codehub.workspaces.admission import NoPlace

PATIENCE_SECONDS = 2.0  # with the line: the session's own page does not wait for it
RELOAD_SECONDS = 10  # without JavaScript; well below what counts as silent
NEEDS_PLACE = frozenset({Screen.JOIN, Screen.GONE, *presentation.IN_LINE})


@dataclass(frozen=True)
class LineView:
    screen: Screen
    practice: bool  # the present step is the one that needs the place
    token: str = ""
    position: int | None = None
    wait: str = ""
    opens: str = ""
    offer: str = ""  # how long one has to take the place
    left_seconds: int | str = ""
    heartbeat: str = ""  # how long one may be away
    held_until: str = ""
    card: dashboard_view.Card | None = None  # of the workspace that has the place

    @property
    def blocks(self) -> bool:
        """There is no place: the workspace cannot be opened now."""
        return self.screen in NEEDS_PLACE


class Reader:
    """One request's view of the line, for one run."""

    def __init__(self, request: Request, caller: Principal) -> None:
        self._request = request
        self._caller = caller
        self._services = services_of(request)
        self._locale = locale_for(request)
        self._now = self._services.clock.now()
        self._kept = waiting_memory.read(request, caller, LAB)

    async def view(self, lesson: Lesson, run: Run) -> LineView | None:
        """None: there is nothing to be said, because no PRACTICE is ahead, or nobody waits."""
        activity = lesson.activity
        limited = bool(self._services.settings.limits.max_running_global)
        if activity is None or Step.PRACTICE not in lesson.steps[run.step_index :]:
            return None
        if not limited and not self._kept.token:
            return None
        practice = lesson.steps[run.step_index] is Step.PRACTICE
        w = await self._services.practice.workspace(run, activity)
        if w and workspace_rules.counts_as_running(w):
            card = dashboard_view.Reader(self._request, self._caller).card(w)
            return None if practice else LineView(Screen.HELD, practice, card=card)
        return await self._line(w.id if w else "", practice=practice)

    async def _line(self, workspace_id: str, *, practice: bool) -> LineView | None:
        heartbeat = self._span(self._services.settings.queue.heartbeat_seconds)
        try:
            if self._kept.token:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    status = await self._services.waiting_room.status(self._kept.token)
                return self._in_line(status, practice=practice)
        except TokenExpiredError:
            pass
        except (UnavailableError, TimeoutError):
            return LineView(Screen.AWAY, practice)
        if held := await self._held(practice=practice):
            return held
        outcome = await self._services.workspaces.expected(self._caller, workspace_id)
        if isinstance(outcome, NoPlace):
            gone = self._kept.token and not await self._services.waiting_room.was_left(self._kept.token)
            return LineView(Screen.GONE if gone else Screen.JOIN, practice, heartbeat=heartbeat)
        return LineView(Screen.FREE, practice) if self._kept.token else None

    def _in_line(self, status: Status, *, practice: bool) -> LineView:
        left = ceil((status.offer_expires_at - self._now).total_seconds()) if status.offer_expires_at else None
        return LineView(
            presentation.screen_of(status, self._now),
            practice,
            token=status.token,
            position=status.position,
            wait=presentation.wait(status.eta_low_sec, status.eta_high_sec, self._locale),
            opens=self._locale.time(status.opens_at, self._now) if status.opens_at else "",
            offer=self._span(left or self._services.settings.queue.offer_seconds),
            left_seconds="" if left is None else left,
        )

    async def _held(self, *, practice: bool) -> LineView | None:
        """A place that was taken, with which nothing was started yet."""
        try:
            held = await self._services.waiting_room.place(self._caller, LAB)
        except NotFoundError:
            return None
        if held.state is not State.RESERVED:
            return None
        return LineView(Screen.HELD, practice, held_until=self._locale.time(held.expires_at, self._now))

    def _span(self, seconds: float) -> str:
        whole = ceil(seconds)
        return self._locale.say("wait_minute") if whole == presentation.MINUTE else self._locale.length(whole)
