"""Which screen a waiting person sees, and its words: the range of minutes, the dots of the line. Pure.

`waiting` puts it on the page. `static/waiting.js` follows with the same rules (`screenOf`, `rangeOf`, `dotsOf`) between
two pages of the server's; a test compares them.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil, floor

from codehub.i18n.locales import Locale
from codehub.waiting_room.status import Status

MINUTE, HOUR = 60, 3600
WIDE = 10  # a range over an hour whose ends are further apart than this says nothing: only its lower end is told
DRAWN = 18  # people ahead of one who are drawn each; of more, some of the first and some of the last
FRONT, NEAR = 8, 6


class Screen(StrEnum):
    WAITING = "waiting"
    READY = "ready"
    PAUSED = "paused"
    BEFORE = "before"  # it has not opened
    PASSED = "passed"  # an offer was not taken
    GONE = "gone"
    JOIN = "join"  # not in line
    FREE = "free"  # nobody needs to wait
    HELD = "held"  # has a place
    OPENED = "opened"  # what one wanted runs already
    CLOSED = "closed"
    AWAY = "away"


IN_LINE = frozenset({Screen.WAITING, Screen.READY, Screen.PAUSED, Screen.BEFORE, Screen.PASSED})


def screen_of(status: Status, now: datetime) -> Screen:
    if status.ready_for_entry:
        return Screen.READY
    if status.opens_at is not None and status.opens_at > now:
        return Screen.BEFORE
    if status.paused:
        return Screen.PAUSED
    return Screen.PASSED if status.passed else Screen.WAITING


def wait(low: float, high: float | None, locale: Locale) -> str:
    """`Between 3 and 6 minutes.` Without an upper bound there is nothing to be said."""
    if high is None:
        return locale.say("wait_unknown")
    if high < MINUTE:
        return locale.say("wait_less")
    hours = low >= 2 * HOUR
    unit = HOUR if hours else MINUTE
    least, most = max(1, floor(low / unit)), max(1, ceil(high / unit))
    if high >= HOUR and high > WIDE * max(low, MINUTE):
        if least == 1:
            return locale.say("wait_unknown")
        return locale.say("wait_hours_least" if hours else "wait_least", n=least)
    if least < most:
        return locale.say("wait_hours_between" if hours else "wait_between", low=least, high=most)
    if hours:
        return locale.say("wait_hours_about", n=most)
    return locale.say("wait_about_one") if most == 1 else locale.say("wait_about", n=most)


@dataclass(frozen=True)
class Dots:
    """The people ahead, from the door on: some of the first, how many are not drawn, and those next to one."""

    front: int
    hidden: int
    near: int


def dots(position: int) -> Dots:
    ahead = position - 1
    return Dots(0, 0, ahead) if ahead <= DRAWN else Dots(FRONT, ahead - FRONT - NEAR, NEAR)
