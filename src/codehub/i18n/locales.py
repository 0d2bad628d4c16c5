"""One reader's language and time zone: texts, times, spans and sizes as that person would write them. Pure.

`web.rendering` makes one for a page, `of_request` for an answer of the API, `of_shell` for the command line.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from codehub.i18n import texts

ZONE_NAME = re.compile(r"[A-Za-z]{1,20}(?:[/_+-][A-Za-z0-9]{1,20}){0,6}")
MB, GB = 10**6, 10**9
SPANS = ((86400 * 2, 86400, "span_days"), (7200, 3600, "span_hours"), (120, 60, "span_minutes"))


@lru_cache(maxsize=600)
def zone(name: str) -> tzinfo | None:
    """As the browser named it. None, this machine's own, without a name (no JavaScript) or with an unknown one."""
    try:
        return ZoneInfo(name) if ZONE_NAME.fullmatch(name) else None
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None


class _Gaps(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return "?"


@dataclass(frozen=True)
class Locale:
    language: str
    zone: tzinfo | None  # None: this machine's
    texts: Mapping[str, str]

    def say(self, key: str, **values: object) -> str:
        return self.texts[key].format(**values)

    def tell(self, key: str, values: Mapping[str, object]) -> str:
        """Of data that was kept: where it lacks something, there is a gap and not an error."""
        return self.texts[key].format_map(_Gaps(values))

    def knows(self, key: str) -> bool:
        return key in self.texts

    def time(self, at: datetime, now: datetime) -> str:
        """`14:35`, `tomorrow 09:10`, `3 Nov, 18:00`."""
        today = now.astimezone(self.zone).date()
        days = {timedelta(0): "today", timedelta(1): "tomorrow", timedelta(-1): "yesterday"}
        return self._time(days.get(at.astimezone(self.zone).date() - today, "other"), at)

    def dated(self, at: datetime) -> str:
        """`3 Nov, 18:00`, whatever day it is: for what is printed, and read later."""
        return self._time("other", at)

    def _time(self, kind: str, at: datetime) -> str:
        local = at.astimezone(self.zone)
        month = self.say("months").split(" ")[local.month - 1]
        return self.say(f"time_{kind}", clock=f"{local:%H:%M}", day=local.day, month_name=month)

    def exact(self, at: datetime) -> str:
        """`2026-03-02 09:00:00 UTC`."""
        local = at.astimezone(self.zone)
        return self.say("time_exact", date=f"{local:%Y-%m-%d}", clock=f"{local:%H:%M:%S}", zone=f"{local:%Z}")

    def span(self, seconds: float) -> str:
        """`12 s`, `3 min`, `2 h`: as exact as a reader needs."""
        for at_least, unit, key in SPANS:
            if seconds >= at_least:
                return self.say(key, n=round(seconds / unit))
        return self.say("span_seconds", n=max(1, round(seconds)))

    def length(self, seconds: int) -> str:
        """`45 s`, `1 h 30 min`, `2 d`: a setting, as exact as it was made."""
        minutes, s = divmod(seconds, 60)
        hours, m = divmod(minutes, 60)
        days, h = divmod(hours, 24)
        parts = ((days, "span_days"), (h, "span_hours"), (m, "span_minutes"), (s, "span_seconds"))
        return " ".join(self.say(key, n=count) for count, key in parts if count) or self.say("span_seconds", n=0)

    def size(self, amount: int) -> str:
        """`0.4 MB`, `420 MB`, `1.2 GB`."""
        if amount >= GB:
            return self.say("size_gb", n=f"{amount / GB:.1f}")
        whole = amount == 0 or amount >= 10 * MB
        return self.say("size_mb", n=f"{amount / MB:.0f}" if whole else f"{max(amount / MB, 0.1):.1f}")


def of_request(accept_language: str) -> Locale:
    """For a client of the API: its language, and the time that its other moments are in."""
    language = texts.choose(accept_language)
    return Locale(language, UTC, texts.TEXTS[language])


def of_shell(environment: Mapping[str, str]) -> Locale:
    language = texts.of_environment(environment)
    return Locale(language, None, texts.TEXTS[language])
