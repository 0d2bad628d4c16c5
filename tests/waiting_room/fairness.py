"""Who is offered a place while another ought to be: the part of `verdicts` that is about order among the live.

A person counts as waiting only when they were in line for certain, from before the pick to the commit: heard of lately,
not passed over, without an offer, and not about to leave.
"""

import itertools
from collections.abc import Iterator

from tests.waiting_room.histories import (
    NEVER,
    UNKNOWN,
    Answer,
    Change,
    History,
    Kind,
    Op,
    State,
    Violation,
)


def overtaken(h: History) -> Iterator[Violation]:
    for grant in (c for c in h.changes if c.grants):
        begin = pick_began(h, grant)
        for person in h.people():
            waits = surely_waiting(h, person, begin, grant.moment, grant.at)
            if person != grant.person and waits and waits.counts < grant.seq:
                yield Violation(
                    "overtaken", f"{person} ({waits.counts}) by {grant.person} ({grant.seq}) at {grant.at:.0f}"
                )


def passed_preferred(h: History) -> Iterator[Violation]:
    """Who did not take an offer goes behind everybody who was not offered one."""
    for grant in (c for c in h.changes if c.grants):
        begin = pick_began(h, grant)
        if not _surely_passed(h, grant, begin):
            continue
        for person in h.people():
            if person != grant.person and surely_waiting(h, person, begin, grant.moment, grant.at):
                yield Violation("passed preferred", f"{grant.person} did not take an offer, and comes before {person}")


def left_free(h: History) -> Iterator[Violation]:
    """A free place is offered by the next pump that is not disturbed."""
    for pump in (op for op in h.ops if op.kind is Kind.PUMP and op.answer is Answer.OK):
        setting = h.setting_at(pump.begin)
        if setting.paused or not setting.open or h.setting_at(pump.end) is not setting or _holding(h, pump):
            continue
        placed = _placed(h, pump.begin - h.times.unseen)
        if placed != _placed(h, pump.end) or len(placed) >= setting.capacity or _disturbed(h, pump):
            continue  # as many as before may be others: one place was offered while another became free
        waiting = [p for p in h.people() if surely_waiting(h, p, pump.begin, pump.end, pump.until)]
        if waiting:
            taken = f"{len(placed)} of {setting.capacity}"
            yield Violation("left free", f"{taken} are taken at {pump.at:.0f}, {waiting} wait")


def surely_waiting(h: History, person: str, begin: float, end: float, at: float) -> Op | None:
    """The last that was heard of this person, if from `begin` to `end` they were live, unpassed, without an offer."""
    mine = h.of(person)
    heard = [op for op in h.of(person, Kind.JOIN, Kind.POLL) if op.end < begin]
    if not heard:
        return None
    last = max(heard, key=lambda op: op.end)
    if not last.waits or last.ready or last.passed or at - last.at >= h.times.silent:
        return None
    # Whose own request is under way, or was lost, may be in any state. A poll changes nothing for the worse.
    acts = [op for op in mine if op.kind is not Kind.POLL and op is not last and op.begin <= end]
    ends = [op for op in acts if op.answer in UNKNOWN or op.kind is Kind.LEAVE]
    if any(op.end >= begin for op in acts) or any(op.end >= last.begin for op in ends):
        return None
    if any(loss.over >= last.begin and loss.moment <= end for loss in h.losses):
        return None
    states = [c for c in h.changes if c.person == person]
    before = [c for c in states if c.moment < begin]
    # Who has left and asks on may be told a place by a replica that had not heard of it; it is not theirs any more.
    if any(c.gone_seq >= last.counts for c in before):
        return None
    if any(begin <= c.moment <= end for c in states) or (before and before[-1].after is not State.NONE):
        return None
    # An offer that ended since the last answer may have left them passed over.
    if any(c.moment >= last.begin for c in before):
        return None
    return last


def pick_began(h: History, grant: Change) -> float:
    pumps = [op.begin for op in h.ops if op.kind is Kind.PUMP and op.begin <= grant.moment <= op.end]
    return min(pumps, default=-NEVER)


def _surely_passed(h: History, grant: Change, begin: float) -> bool:
    mine = [c for c in h.changes if c.person == grant.person and c.moment < begin]
    if not mine or mine[-1].before is not State.OFFERED or mine[-1].after is not State.NONE:
        return False
    lapse = mine[-1]
    told = [op for op in h.of(grant.person) if op.ready and op.end < lapse.moment and op.counts == lapse.seq]
    acts = [op for op in h.of(grant.person) if op.kind is not Kind.POLL and op.end > told[0].begin] if told else []
    polls = sorted(op.at for op in h.of(grant.person, Kind.POLL) if told and op.at >= told[0].at)
    gaps = [b - a for a, b in itertools.pairwise([*polls, grant.at])]
    losses = [loss for loss in h.losses if told and loss.over >= told[0].begin]
    offers = [c for c in mine if c.grants and c.seq == lapse.seq]
    return bool(told) and len(offers) == 1 and not acts and not losses and all(gap < h.times.silent for gap in gaps)


def _placed(h: History, moment: float) -> set[str]:
    """Who has a place, or is offered one."""
    states = {c.person: c.after for c in h.changes if c.moment <= moment}
    return {person for person, state in states.items() if state is not State.NONE}


def _holding(h: History, pump: Op) -> bool:
    """Longer than the hold itself: the epoch may be opened some time after the loss."""
    return any(loss.moment <= pump.end and pump.at <= h.window_end(loss) for loss in h.real_losses())


def _disturbed(h: History, pump: Op) -> bool:
    if any(loss.moment <= pump.end and loss.over >= pump.begin for loss in h.losses):
        return True
    others = [op for op in h.ops if op.kind is Kind.PUMP and op is not pump]
    return any(op.begin <= pump.end and op.end >= pump.begin for op in others)
