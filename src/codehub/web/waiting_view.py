"""Gathers what the waiting page shows: where one stands, or why one does not, in the reader's words.

Reads through the services and words it with `waiting_presentation`; `waiting` hands the result to the template.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil

from starlette.requests import Request

from codehub.errors import CodeHubError, NotFoundError, UnavailableError
from codehub.policy.model import Principal
from codehub.waiting_room.errors import TokenExpiredError
from codehub.waiting_room.model import LAB, State
from codehub.waiting_room.service import Reservation
from codehub.waiting_room.status import Status
from codehub.waiting_room.view import free
from codehub.web import waiting_presentation as presentation
from codehub.web.rendering import locale_for
from codehub.web.services import services_of
from codehub.web.waiting_memory import Kept, Want
from codehub.web.waiting_presentation import Dots, Screen
from codehub.workspaces import rules as workspace_rules

LEAST_RELOAD, MOST_RELOAD = 5, 15  # seconds between reloads without JavaScript: a page that is read must stand still
MINUTE, HOUR = 60, 3600


@dataclass(frozen=True)
class Since:
    """What happened ahead of one since one came."""

    entered: int = 0
    left: int = 0


@dataclass(frozen=True)
class View:
    event: str
    screen: Screen
    label: str = ""  # of an event that is not the lab
    token: str = ""
    position: int | None = None
    wait: str = ""
    dots: Dots | None = None
    since: Since = field(default_factory=Since)
    offer: str = ""  # how long one has to enter
    left_seconds: int | str = ""  # of that, now
    heartbeat: str = ""  # how long one may be away
    opens: str = ""
    count: int = 0  # who waits
    full: bool = True
    wanted: str = ""  # its name
    want: Mapping[str, str] = field(default_factory=dict)
    target: str = "/"  # where it opens
    held_until: str = ""
    problem: str | None = None
    left: bool = False
    refresh: int | None = None


class Reader:
    def __init__(self, request: Request, caller: Principal, event: str) -> None:
        self._services = services_of(request)
        self._caller = caller
        self._event = event
        self._locale = locale_for(request)
        self._now = self._services.clock.now()
        self._query = request.query_params

    async def view(self, kept: Kept, want: Want) -> View:
        """Raises EVENT_NOT_FOUND."""
        shown = await self._screen(kept)
        name, target, runs = await self._wanted(want)
        if runs and shown.screen not in presentation.IN_LINE | {Screen.HELD}:
            shown = View(self._event, Screen.OPENED)
        config = self._services.settings.queue
        code = self._query.get("problem", "")
        key = f"refused_{code.lower()}"
        return replace(
            shown,
            label="" if self._event == LAB else self._event,
            offer=shown.offer or self._span(config.offer_seconds),
            heartbeat=self._span(config.heartbeat_seconds),
            wanted=name,
            want=want.parts,
            target=target,
            problem=self._locale.say(key if self._locale.knows(key) else "refused_other") if code else None,
            left=self._query.get("done") == "left" and shown.screen is Screen.JOIN,
        )

    async def _screen(self, kept: Kept) -> View:
        try:
            if kept.token:
                status = await self._services.waiting_room.status(kept.token)
                return await self._in_line(status, kept)
        except TokenExpiredError:
            if place := await self._place():
                return place
            left = await self._services.waiting_room.was_left(kept.token)
            return await self._outside() if left else View(self._event, Screen.GONE)
        except UnavailableError:
            return View(self._event, Screen.AWAY, refresh=LEAST_RELOAD)
        return await self._place() or await self._outside()

    async def _in_line(self, status: Status, kept: Kept) -> View:
        screen, position = presentation.screen_of(status, self._now), status.position
        left = ceil((status.offer_expires_at - self._now).total_seconds()) if status.offer_expires_at else None
        return View(
            self._event,
            screen,
            token=status.token,
            position=position,
            wait=presentation.wait(status.eta_low_sec, status.eta_high_sec, self._locale),
            dots=presentation.dots(position) if position else None,
            since=await self._since(kept, status),
            offer=self._span(left) if left else "",
            left_seconds=left if left is not None else "",
            opens=self._locale.time(status.opens_at, self._now) if status.opens_at else "",
            refresh=min(max(LEAST_RELOAD, ceil(status.poll_after_ms / 1000)), MOST_RELOAD),
        )

    async def _since(self, kept: Kept, status: Status) -> Since:
        if kept.since is None:
            return Since()
        try:
            found = await self._services.waiting_streams.changes_since(status.token, kept.since)
        except CodeHubError:
            found = None
        moves = found or {}
        return Since(moves.get("entered", 0), moves.get("left", 0) + moves.get("expired", 0))

    async def _place(self) -> View | None:
        try:
            held = await self._services.waiting_room.place(self._caller, self._event)
        except NotFoundError:
            return None
        return View(self._event, Screen.HELD, held_until=self._until(held))

    def _until(self, held: Reservation) -> str:
        return self._locale.time(held.expires_at, self._now) if held.state is State.RESERVED else ""

    async def _outside(self) -> View:
        view = await self._services.waiting_events.get(self._caller, self._event)
        event, waiting = view.event, view.line.waiting if view.line else 0
        if event.draining:
            return View(self._event, Screen.CLOSED)
        if self._event == LAB and free(view) != 0 and not waiting:
            return View(self._event, Screen.FREE)
        opens = self._locale.time(event.opens_at, self._now) if event.opens_at and event.opens_at > self._now else ""
        full = not opens and free(view) == 0
        return View(self._event, Screen.JOIN, count=waiting, full=full, opens=opens)

    async def _wanted(self, want: Want) -> tuple[str, str, bool]:
        """Its name, where it opens, and whether it runs already; nothing of what this person may not see."""
        try:
            if want.workspace:
                w = await self._services.workspaces.get(self._caller, want.workspace)
                return w.name, f"/open/{w.id}", self._event == LAB and workspace_rules.counts_as_running(w)
            if want.session:
                session = await self._services.sessions.session(self._caller, want.session)
                return session.title, f"/sessions/{session.id}", False
        except NotFoundError:
            return "", "/", False
        return want.name, "/", False

    def _span(self, seconds: float) -> str:
        whole = ceil(seconds)
        if whole == MINUTE:
            return self._locale.say("wait_minute")
        minutes = whole % MINUTE == 0 and whole < HOUR
        return self._locale.say("wait_minutes", n=whole // MINUTE) if minutes else self._locale.length(whole)
