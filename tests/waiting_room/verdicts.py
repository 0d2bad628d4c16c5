"""Finds what a waiting room promised and did not keep, in a history of it. Pure; `campaign` calls `judge`.

Where what really happened cannot be told from what was seen (a lost answer, two calls at once), nothing is claimed.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from tests.waiting_room import fairness
from tests.waiting_room.histories import (
    NEVER,
    PLACED,
    UNKNOWN,
    Answer,
    History,
    How,
    Kind,
    Op,
    State,
    Violation,
)

Check = Callable[[History], Iterator[Violation]]


def judge(h: History) -> list[Violation]:
    return [violation for check in CHECKS for violation in check(h)]


# --- places: what PostgreSQL committed


def over_capacity(h: History) -> Iterator[Violation]:
    """Also with a lowered capacity: what was offered stays, nothing new is."""
    taken: dict[str, State] = defaultdict(lambda: State.NONE)
    for change in h.changes:
        setting = h.setting_at(change.moment)
        used = sum(state is not State.NONE for state in taken.values())
        if taken[change.person] is State.NONE and change.after is not State.NONE:
            if used >= setting.capacity:
                yield Violation(
                    "capacity", f"{change.person} is given one of {setting.capacity} places, {used} are taken"
                )
            if setting.paused:
                yield Violation("pause", f"{change.person} is offered a place during a pause")
            if not setting.open:
                yield Violation("opening", f"{change.person} is offered a place before it opens")
        taken[change.person] = change.after


def admitted_twice(h: History) -> Iterator[Violation]:
    admissions = Counter((c.person, c.seq) for c in h.changes if c.after in PLACED and c.before not in PLACED)
    for (person, seq), times in admissions.items():
        if times > 1:
            yield Violation("admitted twice", f"{person} was admitted {times} times on {seq}")
    for c in h.changes:
        if c.after in PLACED and c.before is State.NONE:
            yield Violation("admitted unoffered", f"{c.person} got a place on {c.seq} without an offer")
    given: dict[tuple[str, int], str] = {}
    for op in h.ops:
        if op.kind is Kind.ENTER and op.answer is Answer.OK:
            first = given.setdefault((op.person, op.seq), op.reservation)
            if first != op.reservation:
                yield Violation("admitted twice", f"{op.person} has two reservations on {op.seq}")


def offered_after_the_end(h: History) -> Iterator[Violation]:
    """A token that entered or left is over: it is not offered a place again."""
    gone: dict[str, int] = defaultdict(int)
    for c in h.changes:
        if c.grants and c.seq <= gone[c.person]:
            yield Violation("offered after the end", f"{c.person} is offered a place on {c.seq}, which is over")
        gone[c.person] = max(gone[c.person], c.gone_seq, c.seq if c.after in PLACED else 0)


# --- tokens: what people were answered


def two_places_in_line(h: History) -> Iterator[Violation]:
    """Joining again gives the same token, unless the first came to its end, or may have been forgotten."""
    for person in h.people():
        joins = [op for op in h.of(person, Kind.JOIN) if op.answer is Answer.OK]
        for first, second in itertools.pairwise(sorted(joins, key=lambda op: op.end)):
            if second.counts != first.counts and not _may_have_ended(h, first, second.end):
                yield Violation("two places in line", f"{person} has {first.counts} and {second.counts}")


def died_alive(h: History) -> Iterator[Violation]:
    """Who goes on asking is not told that the token expired; after a loss they are back within a heartbeat."""
    for op in h.ops:
        if op.kind is not Kind.POLL or op.answer is not Answer.EXPIRED:
            continue
        known = [o for o in h.of(op.person) if o.waits and o.counts == op.seq and o.end < op.begin]
        if known and not _may_have_ended(h, max(known, key=lambda o: o.end), op.end, losses=False):
            yield Violation("expired alive", f"{op.person}'s {op.seq} at {op.at:.0f}")


def _may_have_ended(h: History, seen: Op, end: float, *, losses: bool = True) -> bool:
    """May the token that `seen` was answered with be over by `end`? By an act, an admission, silence, or a loss."""
    seq = seen.counts
    # While people come back after a loss, a person may have two tokens for one place, and leave with either.
    doubled = h.unsettled(seen.at, end)
    ended = [op for op in h.of(seen.person, Kind.LEAVE, Kind.ENTER) if op.begin <= end and _may_end(op)]
    if any(op.counts >= seq or (doubled and op.kind is Kind.LEAVE) for op in ended):
        return True
    if any(c.person == seen.person and c.moment <= end and (c.gone_seq >= seq or c.after in PLACED) for c in h.changes):
        return True
    if losses and h.unsettled(seen.at, end):
        return True
    heard = [
        op.at for op in h.of(seen.person, Kind.JOIN, Kind.POLL) if op.counts == seq and seen.begin <= op.begin <= end
    ]
    last = max((op.until for op in h.ops if op.end <= end), default=seen.until)
    heard = sorted([seen.at, *heard, last])
    return any(b - a >= h.times.heartbeat for a, b in itertools.pairwise(heard))


def _may_end(op: Op) -> bool:
    return op.kind is Kind.LEAVE or op.answer is Answer.OK or op.answer in UNKNOWN


def joined_ahead(h: History) -> Iterator[Violation]:
    """Who joins later goes behind."""
    if h.lottery:
        return
    joins = sorted((op for op in h.ops if op.kind is Kind.JOIN and op.waits and op.new), key=lambda op: op.end)
    for i, first in enumerate(joins):
        for second in joins[i + 1 :]:
            if second.person != first.person and second.begin > first.end and second.seq <= first.seq:
                yield Violation("joined ahead", f"{second.person} ({second.seq}) of {first.person} ({first.seq})")


# --- told ready


def ready_in_vain(h: History) -> Iterator[Violation]:
    """Who was told that it is their turn, and enters in the time that they were told, is let in."""
    for op in h.ops:
        if op.kind is Kind.ENTER and op.answer in {Answer.NOT_YET, Answer.EXPIRED}:
            told = [o for o in h.of(op.person) if o.waits and o.ready and o.counts == op.seq and o.end < op.begin]
            if told and _entitled(h, max(told, key=lambda o: o.end), op):
                yield Violation("ready in vain", f"{op.person} was told ready, and answered {op.answer} at {op.at:.0f}")


def _entitled(h: History, told: Op, enter: Op) -> bool:
    deadline = told.deadline if told.deadline is not None else told.at + h.times.offer
    if enter.until > deadline:
        return False
    if any(op.begin <= enter.end for op in h.of(enter.person, Kind.LEAVE)):
        return False
    if any(s.paused and s.moment <= enter.end for s in h.settings[1:]) or h.setting_at(told.begin).paused:
        return False
    # A place that was used and given back since is not owed again.
    return not any(c.person == enter.person and c.before in PLACED and c.seq == enter.seq for c in h.changes)


# --- positions


def position_rose(h: History) -> Iterator[Violation]:
    """Of one token, from one answer to a later one; except while people come back after a loss."""
    polls: dict[tuple[str, int], list[Op]] = defaultdict(list)
    for op in h.ops:
        if op.waits and op.position is not None:
            polls[op.person, op.counts].append(op)
    for (person, _), answers in polls.items():
        lowest: list[Op] = []
        for op in sorted(answers, key=lambda op: op.begin):
            for before in lowest:
                risen = op.position is not None and before.position is not None and op.position > before.position
                if before.end < op.begin and risen and not h.unsettled(before.at, op.end):
                    yield Violation("position rose", f"{person}: {before.position} to {op.position} at {op.at:.0f}")
            lowest.append(op)


def out_of_order(h: History) -> Iterator[Violation]:
    """Of two who are both in line, the one with the lower sequence has the lower position."""
    answers = sorted((op for op in h.ops if op.waits and op.position is not None), key=lambda op: op.begin)
    for op in answers:
        for person in {o.person for o in answers} - {op.person}:
            theirs = [o for o in answers if o.person == person and o.counts < op.counts]
            before = [o for o in theirs if o.end < op.begin]
            after = [o for o in theirs if o.begin > op.end and any(o.counts == b.counts for b in before)]
            if not before or not after or h.unsettled(before[-1].at, after[0].end):
                continue
            if (op.position or 0) <= (after[0].position or 0):
                yield Violation(
                    "out of order", f"{op.person} is at {op.position}, before {person} at {after[0].position}"
                )


def not_back_in_order(h: History) -> Iterator[Violation]:
    """At the end, when nothing happens any more, positions are in order of the sequences, and none is shared."""
    last = max((c.moment for c in h.changes), default=0.0)
    last = max([last, *(op.end for op in h.ops if op.kind not in {Kind.POLL, Kind.PUMP} and op.end != NEVER)])
    last = max([last, *(loss.over for loss in h.losses)])
    finals = {op.person: op for op in h.ops if op.kind is Kind.POLL and op.begin > last}
    order = sorted((op for op in finals.values() if op.waits and op.position), key=lambda op: op.counts)
    for a, b in itertools.pairwise(order):
        if (a.position or 0) >= (b.position or 0) and not h.unsettled(min(a.at, b.at), max(a.end, b.end)):
            yield Violation("not back in order", f"{a.person} at {a.position}, {b.person} at {b.position}")


def granted_during_hold(h: History) -> Iterator[Violation]:
    """After an emptying nothing is offered for the silent time, after a failover for ten seconds.

    What was picked before the loss may still be granted. A replica that takes over after an emptying has the line. Who
    comes back is waited for: where nobody had been told a place in line before it was lost, nobody can.
    """
    for loss in h.real_losses():
        if loss.idle or not any(op.waits and op.end <= loss.over for op in h.ops):
            continue
        if any(later.how is How.FAILED_OVER and later.moment > loss.moment for later in h.real_losses()):
            continue
        hold = h.times.silent if loss.how is How.EMPTIED else min(h.times.survived_hold, h.times.silent)
        end = h.window_end(loss) - h.times.heartbeat + hold
        for c in h.changes:
            if c.grants and c.at < end and fairness.pick_began(h, c) > loss.over:
                yield Violation("hold", f"{c.person} is offered a place {end - c.at:.0f} s before the hold ends")


CHECKS: tuple[Check, ...] = (
    over_capacity,
    admitted_twice,
    offered_after_the_end,
    two_places_in_line,
    died_alive,
    joined_ahead,
    ready_in_vain,
    position_rose,
    out_of_order,
    not_back_in_order,
    granted_during_hold,
    fairness.overtaken,
    fairness.passed_preferred,
    fairness.left_free,
)
