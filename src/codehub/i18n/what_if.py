"""What the answer to "what if" rests on, in sentences. Pure."""

from datetime import datetime
from typing import Protocol

from codehub.i18n.locales import Locale


class Basis(Protocol):
    """What `activity.what_if_service` answers, as far as these sentences are about it."""

    @property
    def since(self) -> datetime: ...
    @property
    def until(self) -> datetime: ...
    @property
    def cut(self) -> bool: ...
    @property
    def known_since(self) -> datetime: ...
    @property
    def others(self) -> int: ...
    @property
    def is_exact(self) -> bool: ...


def notes(locale: Locale, answer: Basis) -> list[str]:
    """What was assumed, and where the bounds come from."""
    found = [locale.say("what_if_people")]
    if not answer.is_exact:
        later = answer.known_since > answer.since
        known = locale.exact(answer.known_since) if later else ""
        found.append(locale.say("what_if_unknown_before", time=known) if later else locale.say("what_if_unknown_short"))
    if answer.others:
        found.append(locale.say("what_if_others" if answer.others > 1 else "what_if_other", n=answer.others))
    if answer.cut:
        found.append(locale.say("what_if_cut", time=locale.exact(answer.since)))
    return found
