"""From lines of history to runs, as `what_if` reads them. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from codehub.activity.what_if import End, Past, Run, Stretch
from codehub.workspaces.idle_history import Facts, IdlePeriod, Line

RUNNING = "RUNNING"
WANTED = frozenset({"woken", "start_requested"})
ASKED = frozenset({"sleep_requested", "archive_requested", "owner_deactivated"})
DELETED = frozenset({"delete_requested", "purge_requested"})
REQUESTS = WANTED | ASKED | DELETED | {"idle_sleep", "idle_archive", "work_resumed", "kept_awake"}
MOMENT = timedelta(seconds=2)  # between a request and what it is dated by


@dataclass(frozen=True)
class Window:
    since: datetime
    until: datetime
    known_since: datetime  # from here on all idle periods are kept


def pasts(
    lines: Iterable[Line],
    periods: Iterable[IdlePeriod],
    workspaces: Iterable[Facts],
    seconds: Mapping[str, int],
    archives: Mapping[str, int | None],
    window: Window,
) -> list[Past]:
    """Of these workspaces; the newest of `lines` and `periods` first. `seconds`: after which each sleeps today."""
    said, idle = defaultdict(list), defaultdict(list)
    for line in lines:
        said[line.workspace_id].append(line)
    for period in periods:
        idle[period.workspace_id].append(period)
    found = []
    for w in workspaces:
        runs = _Reader(w, seconds[w.id], window).runs(said[w.id][::-1])
        computed = [line for line in said[w.id] if line.code == "kept_awake"]
        stretches = [_stretch(period, computed) for period in reversed(idle[w.id])]
        found.append(Past([_with_stretches(run, stretches) for run in runs], archives[w.id]))
    return found


class _Reader:
    """Goes through one workspace's lines, the oldest first."""

    def __init__(self, w: Facts, seconds: int, window: Window) -> None:
        self._w = w
        self._seconds = seconds
        self._window = window
        self._runs: list[Run] = []
        self._began: datetime | None = None
        self._request: Line | None = None  # the newest that has not been followed

    def runs(self, lines: Sequence[Line]) -> list[Run]:
        for line in lines:
            if line.code in REQUESTS:
                self._note_request(line)
            elif line.to_state == RUNNING:
                self._begin(line)
            elif line.from_state == RUNNING:
                self._finish(line)
        self._go_on()
        return self._runs

    def _note_request(self, line: Line) -> None:
        asleep = self._began is None
        if line.code == "work_resumed":
            self._request = None
        elif line.code == "idle_archive":
            self._amend(stored=True)
        elif line.code in DELETED and asleep:
            self._follow(line.at, came_back=False)
        elif line.code in WANTED and asleep:
            self._follow(line.at, came_back=True)
        elif line.code != "kept_awake":
            self._request = line

    def _begin(self, line: Line) -> None:
        self._follow(line.at, came_back=True)
        self._began, self._request = line.at, None

    def _finish(self, line: Line) -> None:
        began = self._began or self._window.since
        asked = self._request
        run = Run(began, line.at, End.GONE, seconds=self._seconds, seen=began >= self._window.known_since)
        if asked and asked.code == "idle_sleep":
            since = datetime.fromisoformat(asked.data["idle_since"])
            run = replace(
                run, ended=max(asked.at, began), end=End.TIMER, idle_since=since, seconds=int(asked.data["seconds"])
            )
        elif asked and asked.code in ASKED:
            run = replace(run, end=End.ASKED)
        self._runs.append(run)
        self._began = self._request = None

    def _go_on(self) -> None:
        """What runs now runs to the end of what is looked at."""
        w, window = self._w, self._window
        if w.phase != RUNNING:
            return
        began = max(self._began or w.phase_changed_at, window.since)
        if began < window.until:
            seen = began >= window.known_since
            state = Run(began, window.until, End.STILL, (), w.idle_since, w.keep_awake_until, self._seconds, seen)
            self._runs.append(state)

    def _follow(self, at: datetime, *, came_back: bool) -> None:
        """The run before is followed by this; the first that comes counts."""
        if self._runs and self._runs[-1].next_at is None:
            self._amend(next_at=at, came_back=came_back)

    def _amend(self, **changes: object) -> None:
        if self._runs and self._began is None:
            self._runs[-1] = replace(self._runs[-1], **changes)  # type: ignore[arg-type]


def _stretch(period: IdlePeriod, computed: Iterable[Line]) -> Stretch:
    """One in which the workspace computed kept itself awake."""
    kept = period.kept_awake_until
    for line in computed:
        since, until = (datetime.fromisoformat(line.data[name]) for name in ("idle_since", "until"))
        if since - MOMENT <= period.began_at and period.ended_at <= until + MOMENT:
            kept = period.ended_at
    return Stretch(period.began_at, period.ended_at, kept)


def _with_stretches(run: Run, stretches: Iterable[Stretch]) -> Run:
    """Those that lie in it. The last one of a timer's end is what the timer acted on."""
    within = [s for s in stretches if s.ended > run.began and s.ended <= run.ended + MOMENT and s.began < run.ended]
    if run.end is End.TIMER:
        within = [s for s in within if s.ended < run.ended - MOMENT]
    return replace(run, stretches=tuple(replace(s, ended=min(s.ended, run.ended)) for s in within))
