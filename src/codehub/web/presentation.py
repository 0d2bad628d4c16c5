"""A workspace in words: its badge, what it does now, what comes next, what went wrong, what can be done. Pure.

`dashboard` puts it on cards and pages, `entry_pages` on the pages before a workspace opens.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from codehub.i18n.locales import Locale
from codehub.workspaces import rules
from codehub.workspaces.model import Desired, FetchStatus, Operation, Phase, Reason, Repository, Workspace

RISING = {Operation.PROVISIONING, Operation.RESTORING, Operation.STARTING}
FALLING = {Operation.STOPPING, Operation.ARCHIVING}


class Badge(StrEnum):
    """Colour and sign of a workspace's state; the word stands beside it."""

    RUNNING = "running"
    ASLEEP = "asleep"
    STORED = "stored"
    NEW = "new"
    WRONG = "wrong"
    MOVING = "moving"
    TRASH = "trash"


SIGNS = {"running": "●", "asleep": "☾", "stored": "▣", "new": "○", "wrong": "▲", "moving": "◐", "trash": "▽"}
BADGES = {
    Phase.RUNNING: Badge.RUNNING,
    Phase.STANDBY: Badge.ASLEEP,
    Phase.ARCHIVED: Badge.STORED,
    Phase.PENDING: Badge.NEW,
    Phase.ERROR: Badge.WRONG,
    Phase.DELETED: Badge.TRASH,
}


def waits(w: Workspace) -> bool:
    """Wanted running, and nothing is under way yet: it stands in line."""
    not_there = w.phase in {Phase.PENDING, Phase.STANDBY, Phase.ARCHIVED}
    return w.operation is Operation.NONE and w.desired_state is Desired.RUNNING and not_there and not w.deleted_at


def badge(w: Workspace) -> Badge:
    if w.deleted_at and w.operation is Operation.NONE:
        return Badge.TRASH
    if w.operation is not Operation.NONE or waits(w):
        return Badge.MOVING
    return BADGES[w.phase]


def state(w: Workspace) -> str:
    """The part of the text keys that names it: `state_…`, `now_…`."""
    if w.operation is not Operation.NONE:
        return "deleting" if w.deleted_at else w.operation.lower()
    return "waiting" if waits(w) else badge(w).value


def is_rising(w: Workspace) -> bool:
    return w.operation in RISING or waits(w)


# --- now and next ---------------------------------------------------------------------------------------------------


def now_line(
    w: Workspace, locale: Locale, now: datetime, *, position: int | None = None, trash_seconds: int = 0
) -> str:
    if w.failures and is_rising(w):
        return locale.say("now_again_once") if w.failures == 1 else locale.say("now_again", n=w.failures)
    if position and waits(w):
        return locale.say("now_waiting_behind", n=position)
    match state(w):
        case "running":
            return locale.say("now_running", since=locale.time(w.phase_changed_at, now))
        case "restoring" | "archiving" as moving:
            return progress_line(w, locale, now) or locale.say(f"now_{moving}")
        case "wrong":
            return locale.say(f"files_{files(w)}")
        case "trash":
            until = (w.deleted_at or now) + timedelta(seconds=trash_seconds)
            return locale.say("now_trash" if until > now else "now_trash_soon", until=locale.time(until, now))
        case other:
            return locale.say(f"now_{other}")


def progress_line(w: Workspace, locale: Locale, now: datetime) -> str | None:
    """`420 MB of 900 MB, about 12 s left`, by the speed so far; None when nothing is known yet."""
    done, total = progress(w)
    if not total:
        return None
    so_far = {"done": locale.size(done), "total": locale.size(total)}
    spent = (now - w.op_started_at).total_seconds() if w.op_started_at else 0.0
    if done * 20 < total or spent < 1 or done >= total:  # too early for a guess, or nothing left
        return locale.say("now_progress", **so_far)
    return locale.say("now_progress_left", **so_far, left=locale.span(spent * (total - done) / done))


def progress(w: Workspace) -> tuple[int, int]:
    """(done, total) bytes; (0, 0) when unknown."""
    known = w.progress or {}
    done, total = int(known.get("bytes") or 0), int(known.get("total") or 0)
    return min(done, total), total


def next_line(w: Workspace, locale: Locale, now: datetime, sleeps_at: datetime | None) -> str | None:
    if badge(w) is not Badge.RUNNING:
        return None
    if w.keep_awake_until and w.keep_awake_until > now:
        until = locale.time(max(w.keep_awake_until, sleeps_at or now), now)
        # A reason is not told of a time for which it is not the reason.
        why = w.keep_awake_reason if sleeps_at is None or sleeps_at <= w.keep_awake_until else None
        return locale.say("next_awake_why", until=until, reason=why) if why else locale.say("next_awake", until=until)
    if sleeps_at is None:
        return None
    return locale.say("next_sleeps", at=locale.time(sleeps_at, now), since=locale.time(w.idle_since, now))


# --- the git repository that it begins with -------------------------------------------------------------------------


@dataclass(frozen=True)
class Fetch:
    text: str
    said: str  # git's own words
    failed: bool = False
    moving: bool = False


def fetch(repository: Repository | None, w: Workspace, locale: Locale) -> Fetch | None:
    """None: there is none, or it is there."""
    if repository is None or w.deleted_at or repository.status is FetchStatus.DONE:
        return None
    where = {"url": repository.url, "folder": repository.folder}
    why = locale.say(f"fetch_{repository.cause}") if repository.cause else ""
    if repository.status is FetchStatus.FAILED:
        return Fetch(locale.say("fetch_failed", **where, why=why), repository.said or "", failed=True)
    if repository.status is FetchStatus.RUNNING:
        return Fetch(locale.say("fetch_now", **where), "", moving=True)
    if w.phase is not Phase.RUNNING:
        return Fetch(locale.say("fetch_later", **where), "")
    text = locale.say("fetch_again_soon", **where, why=why) if why else locale.say("fetch_now", **where)
    return Fetch(text, "", moving=True)


# --- what went wrong ------------------------------------------------------------------------------------------------


class Files(StrEnum):
    SAFE = "safe"
    OLDER = "older"  # those of now are gone; an archive is there
    LOST = "lost"
    UNSURE = "unsure"


def files(w: Workspace) -> Files:
    """What an error means for the person's work. `safe` is said only when it is so."""
    info = w.error_info or {}
    match info.get("reason"):
        case Reason.DATA_LOST | Reason.CONTAINER_WITHOUT_VOLUME:
            return Files.OLDER if w.archive_key else Files.LOST
        case Reason.VOLUME_UNREADABLE:
            return Files.UNSURE
        case Reason.ARCHIVE_CORRUPTED | Reason.ARCHIVE_NOT_FOUND:
            # While it is made the home is still there; when it is fetched, it is all there is.
            return Files.SAFE if info.get("operation") == Operation.ARCHIVING else Files.UNSURE
        case _:
            return Files.SAFE


@dataclass(frozen=True)
class Trouble:
    what: str
    files: str
    safe: bool
    advice: str
    recover: str  # the words on the button
    accept_loss: bool
    message: str


ADVICE = {Files.OLDER: "advice_older", Files.LOST: "advice_empty", Files.UNSURE: "advice_operator"}
RECOVER = {Files.OLDER: "do_recover_older", Files.LOST: "do_recover_empty"}


def trouble(w: Workspace, locale: Locale) -> Trouble:
    info = w.error_info or {}
    reason = str(info.get("reason") or "other")
    key = f"trouble_{reason.lower()}"
    found = files(w)
    advice = "advice_install" if reason == Reason.IMAGE_NOT_FOUND else ADVICE.get(found, "advice_again")
    return Trouble(
        what=locale.say(key if locale.knows(key) else "trouble_other"),
        files=locale.say(f"files_{found}"),
        safe=found is Files.SAFE,
        advice=locale.say(advice),
        recover=locale.say(RECOVER.get(found, "do_recover")),
        accept_loss=found in {Files.OLDER, Files.LOST},
        message=str(info.get("last_error") or reason),
    )


# --- what can be done -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Action:
    """`text` is a key; `verb` names what is posted, and is empty for a link that opens the workspace."""

    text: str
    verb: str = ""
    opens: bool = True


PRIMARY = {
    Badge.RUNNING: Action("do_open"),
    Badge.ASLEEP: Action("do_wake"),
    Badge.STORED: Action("do_restore", "start"),
    Badge.NEW: Action("do_begin", "start"),
    Badge.WRONG: Action("do_details", opens=False),
    Badge.TRASH: Action("do_undelete", "undelete", opens=False),
}


def primary(w: Workspace) -> Action | None:
    """The one thing most people want now."""
    if badge(w) is not Badge.MOVING:
        return PRIMARY[badge(w)]
    if w.deleted_at:
        return None
    return Action("do_open_later") if is_rising(w) else Action("do_wake_again")


MENUS: dict[Badge, tuple[str, ...]] = {
    Badge.RUNNING: ("stop", "archive", "delete"),
    Badge.ASLEEP: ("start", "archive", "delete"),
    Badge.STORED: ("start", "delete"),
    Badge.NEW: ("start", "delete"),
    Badge.WRONG: ("delete",),
}


def menu(w: Workspace) -> tuple[str, ...]:
    """The other verbs. While something is under way nothing else can be asked for."""
    return MENUS.get(badge(w), ())


def has_files(w: Workspace) -> bool:
    """Is there something to download? Also in an error, as long as the files are there."""
    return not w.deleted_at and not rules.download_source(w)[1].code


# --- when it sleeps -------------------------------------------------------------------------------------------------

SLEEP_CHOICES = (300, 600, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600)  # seconds that a page offers


@dataclass(frozen=True)
class SleepChoice:
    value: str  # seconds; empty: as its kind says
    text: str
    chosen: bool


def sleep_choices(own: int | None, usual: int, most: int, locale: Locale) -> list[SleepChoice]:
    """After how long without activity it may be let sleep. `most`: the operator's bound; 0: there is none."""
    seconds = {choice for choice in SLEEP_CHOICES if not most or choice <= most}
    seconds |= {own} if own else set()  # what is set now is shown, whoever set it
    default = locale.say("sleep_usual", time=locale.length(usual)) if usual else locale.say("sleep_usual_never")
    choices = [SleepChoice("", default, own is None)]
    choices += [SleepChoice(str(n), locale.length(n), own == n) for n in sorted(seconds)]
    return [*choices, SleepChoice("0", locale.say("sleep_never"), chosen=True)] if own == 0 else choices
