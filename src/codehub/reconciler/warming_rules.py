"""Which templates are kept ready. Pure; used by `warming`."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from codehub.templates.model import Template

AT_MOST = 8  # templates at a time: each that is ready takes memory


class Why(StrEnum):
    """Why a start may come soon; the surest first."""

    OFFERED = "offered"  # a place is offered or reserved to its user
    LESSON = "lesson"  # a schedule will start it
    HERE = "here"  # its user has just logged in, or has a page open
    STARTED = "started"  # another one of the same template was started: a class rarely comes alone


@dataclass(frozen=True)
class Soon:
    template: str
    why: Why
    starts: int  # how many may come


def which(soon: Iterable[Soon], templates: Iterable[Template]) -> list[Template]:
    """Those that can be kept ready and may be started soon: the surest first, then those of the most starts."""
    by_name = {one.name: one for one in templates if one.process and one.process.warm}
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(Why))
    for one in soon:
        if one.template in by_name and one.starts > 0:
            counts[one.template][list(Why).index(one.why)] += one.starts
    order = sorted(counts, key=lambda name: ([-n for n in counts[name]], name))
    return [by_name[name] for name in order[:AT_MOST]]
