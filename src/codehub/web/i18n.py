"""One reader's language and time zone: texts, times, spans and sizes as that person would write them. Pure."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from codehub.web import texts

ZONE_NAME = re.compile(r"[A-Za-z]{1,20}(?:[/_+-][A-Za-z0-9]{1,20}){0,6}")
MB, GB = 10**6, 10**9
SPANS = ((86400 * 2, 86400, "span_days"), (7200, 3600, "span_hours"), (120, 60, "span_minutes"))


@lru_cache(maxsize=600)
def zone(name: str) -> tzinfo | None:
    """As the browser named it. None, this machine's own, without a name (no JavaScript) or with one nobody knows."""
    try:
        return ZoneInfo(name) if ZONE_NAME.fullmatch(name) else None
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None


@dataclass(frozen=True)
class Words:
    language: str
    zone: tzinfo | None  # None: this machine's

    def say(self, key: str, **values: object) -> str:
        return texts.TEXTS[self.language][key].format(**values)

    def knows(self, key: str) -> bool:
        return key in texts.TEXTS[self.language]

    def time(self, at: datetime, now: datetime) -> str:
        """`14:35`, `tomorrow 09:10`, `3 Nov, 18:00`."""
        local, today = at.astimezone(self.zone), now.astimezone(self.zone).date()
        days = {timedelta(0): "today", timedelta(1): "tomorrow", timedelta(-1): "yesterday"}
        month = self.say("months").split(" ")[local.month - 1]
        key = f"time_{days.get(local.date() - today, 'other')}"
        return self.say(key, clock=f"{local:%H:%M}", day=local.day, month_name=month)

    def span(self, seconds: float) -> str:
        """`12 s`, `3 min`, `2 h`: as exact as anybody cares."""
        for at_least, unit, key in SPANS:
            if seconds >= at_least:
                return self.say(key, n=round(seconds / unit))
        return self.say("span_seconds", n=max(1, round(seconds)))

    def size(self, amount: int) -> str:
        """`0.4 MB`, `420 MB`, `1.2 GB`."""
        if amount >= GB:
            return self.say("size_gb", n=f"{amount / GB:.1f}")
        whole = amount == 0 or amount >= 10 * MB
        return self.say("size_mb", n=f"{amount / MB:.0f}" if whole else f"{max(amount / MB, 0.1):.1f}")
