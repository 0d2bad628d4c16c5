"""The checker of histories: it finds each violation that is planted, and has nothing against correct histories."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.waiting_room.histories import (
    NEVER,
    Answer,
    Change,
    History,
    How,
    Kind,
    Loss,
    Op,
    Setting,
    State,
    Times,
)
from tests.waiting_room.verdicts import judge

N, O, R = State.NONE, State.OFFERED, State.RESERVED  # noqa: E741


class Story:
    """A history in which one second passes between any two things, unless it says otherwise."""

    def __init__(self, capacity: int = 1, *, lottery: bool = False) -> None:
        self.history = History(Times(), lottery=lottery)
        self._moment, self._ahead = 0.0, 0.0
        self.setting(capacity)

    def _tick(self) -> float:
        self._moment += 1.0
        return self._moment

    def wait(self, seconds: float) -> "Story":
        """Only the platform's clock goes on."""
        self._ahead += seconds
        return self

    @property
    def at(self) -> float:
        return self._moment + self._ahead

    def setting(self, capacity: int = 1, *, paused: bool = False, epoch: int = 1, is_open: bool = True) -> "Story":
        self._tick()
        self.history.settings.append(Setting(self._moment, self.at, capacity, paused, epoch, is_open))
        return self

    def op(self, kind: Kind, person: str = "", seq: int = 0, answer: Answer = Answer.OK, **more: Any) -> "Story":
        begin, at = self._tick(), self.at
        end = NEVER if answer is Answer.LOST else begin + 0.5
        self.history.ops.append(Op(kind, begin, end, at, at + 0.5, person, seq, answer, **more))
        return self

    def join(self, person: str, seq: int, position: int | None = None, **more: Any) -> "Story":
        return self.op(Kind.JOIN, person, seq, position=position, **{"new": True, **more})

    def poll(self, person: str, seq: int, position: int | None = None, **more: Any) -> "Story":
        return self.op(Kind.POLL, person, seq, position=position, **more)

    def ready(self, person: str, seq: int, position: int = 1) -> "Story":
        return self.poll(person, seq, position, ready=True, deadline=self.at + 61)

    def enter(self, person: str, seq: int, answer: Answer = Answer.OK, held: str = "r") -> "Story":
        return self.op(Kind.ENTER, person, seq, answer, reservation=f"{held}{seq}" if answer is Answer.OK else "")

    def place(self, person: str, before: State, after: State, seq: int, gone: int = 0) -> "Story":
        moment = self._tick()
        self.history.changes.append(Change(moment, self.at, person, before, after, seq, gone))
        return self

    def pump(self, *grants: tuple[str, int], meanwhile: tuple[str, int] | None = None) -> "Story":
        """`meanwhile`: whose place becomes free after the grants."""
        begin, at = self._tick(), self.at
        for person, seq in grants:
            self.place(person, N, O, seq)
        if meanwhile:
            self.released(*meanwhile)
        self._tick()
        self.history.ops.append(Op(Kind.PUMP, begin, self._moment, at, self.at))
        return self

    def entered(self, person: str, seq: int) -> "Story":
        """A whole visit of one who was offered a place."""
        return self.ready(person, seq).place(person, O, R, seq).enter(person, seq)

    def released(self, person: str, seq: int) -> "Story":
        return self.place(person, R, N, seq, gone=seq)

    def lost(self, how: How, epoch: int = 2) -> "Story":
        begin, at = self._tick(), self.at
        over = self._tick()
        self.history.losses.append(Loss(how, begin, over, at, self.at))
        capacity = self.history.settings[-1].capacity
        return self.setting(capacity, epoch=epoch)


def two() -> Story:
    return Story().join("ann", 1, 1).join("bob", 2, 2)


CORRECT: dict[str, Callable[[], Story]] = {
    "one after the other": lambda: (
        two().pump(("ann", 1)).entered("ann", 1).poll("bob", 2, 1).released("ann", 1).poll("bob", 2, 1).pump(("bob", 2))
    ),
    "a repeated join and enter": lambda: (
        Story().join("ann", 1).join("ann", 1, new=False).pump(("ann", 1)).entered("ann", 1).enter("ann", 1)
    ),
    "a silent one is passed over": lambda: two().wait(95).poll("bob", 2, 2).pump(("bob", 2)),
    "one who did not take the offer goes behind": lambda: (
        two()
        .pump(("ann", 1))
        .ready("ann", 1)
        .wait(30)
        .ready("ann", 1)
        .wait(40)
        .place("ann", O, N, 1)
        .poll("ann", 1, 1, passed=True)
        .poll("bob", 2, 2)
        .pump(("bob", 2))
    ),
    "an offer that was not taken in time is over": lambda: (
        two().pump(("ann", 1)).ready("ann", 1).wait(70).place("ann", O, N, 1).enter("ann", 1, Answer.NOT_YET)
    ),
    "positions rise after an emptying, and then it is as before": lambda: (
        two()
        .join("cy", 3, 3)
        .lost(How.EMPTIED)
        .poll("bob", 2, 1)
        .poll("ann", 1, 1)
        .poll("cy", 3, 3)
        .poll("bob", 2, 2)
        .wait(301)
        .poll("ann", 1, 1)
        .poll("bob", 2, 2)
        .poll("cy", 3, 3)
    ),
    "a token that was not heard of for a heartbeat": lambda: (
        two().wait(300).poll("ann", 1, answer=Answer.EXPIRED).join("ann", 3, 2)
    ),
    "left, and joined again": lambda: (
        two().op(Kind.LEAVE, "ann", 1).join("ann", 3, 2).poll("ann", 1, answer=Answer.EXPIRED)
    ),
    "a lowered capacity": lambda: (
        Story(2)
        .join("ann", 1)
        .join("bob", 2)
        .pump(("ann", 1), ("bob", 2))
        .setting(1)
        .entered("ann", 1)
        .entered("bob", 2)
    ),
    "a pause": lambda: (
        two().pump(("ann", 1)).ready("ann", 1).setting(1, paused=True).enter("ann", 1, Answer.NOT_YET).pump()
    ),
    "a lost leave": lambda: two().op(Kind.LEAVE, "ann", 1, Answer.LOST).pump(("bob", 2)),
    "an offer after an emptying of a line that nobody had been told of": lambda: (
        Story().lost(How.EMPTIED).join("ann", 1).pump(("ann", 1))
    ),
    "a place that becomes free while another is offered": lambda: (
        Story(2)
        .join("ann", 1)
        .pump(("ann", 1))
        .entered("ann", 1)
        .join("bob", 2)
        .join("cy", 3)
        .pump(("bob", 2), meanwhile=("ann", 1))
        .pump(("cy", 3))
    ),
    "one who has left and is told a place by a replica that had not heard of it": lambda: (
        two()
        .place("ann", N, N, 1, gone=1)
        .op(Kind.LEAVE, "ann", 1)
        .lost(How.FAILED_OVER)
        .wait(15)
        .poll("ann", 1, 1)
        .poll("bob", 2, 2)
        .pump(("bob", 2))
    ),
    "a lottery": lambda: Story(lottery=True).join("ann", 9).join("bob", 4).pump(("bob", 4)),
}


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_history_passes(name: str) -> None:
    assert [str(v) for v in judge(CORRECT[name]().history)] == []


PLANTED: dict[str, tuple[str, Callable[[], Story]]] = {
    "more places than there are": ("capacity", lambda: two().pump(("ann", 1), ("bob", 2))),
    "a new offer although the capacity was lowered": (
        "capacity",
        lambda: Story(2).join("ann", 1).join("bob", 2).pump(("ann", 1)).setting(1).pump(("bob", 2)),
    ),
    "an offer during a pause": ("pause", lambda: two().setting(1, paused=True).pump(("ann", 1))),
    "an offer before it opens": ("opening", lambda: two().setting(1, is_open=False).pump(("ann", 1))),
    "a token admitted twice": (
        "admitted twice",
        lambda: two().pump(("ann", 1)).entered("ann", 1).place("ann", R, N, 1).pump(("ann", 1)).entered("ann", 1),
    ),
    "two reservations": (
        "admitted twice",
        lambda: two().pump(("ann", 1)).entered("ann", 1).enter("ann", 1, held="other"),
    ),
    "a place without an offer": ("admitted unoffered", lambda: two().place("ann", N, R, 1)),
    "an offer on a token that left": (
        "offered after the end",
        lambda: two().place("ann", N, N, 1, gone=1).op(Kind.LEAVE, "ann", 1).pump(("ann", 1)),
    ),
    "an offer on a token that entered": (
        "offered after the end",
        lambda: two().pump(("ann", 1)).entered("ann", 1).released("ann", 1).pump(("ann", 1)),
    ),
    "two places in line": ("two places in line", lambda: Story().join("ann", 1).join("ann", 2)),
    "a token that expires although it is used": (
        "expired alive",
        lambda: two().wait(200).poll("ann", 1, 1).wait(200).poll("ann", 1, answer=Answer.EXPIRED),
    ),
    "one who does not come back after an emptying": (
        "expired alive",
        lambda: two().lost(How.EMPTIED).wait(60).poll("ann", 1, answer=Answer.EXPIRED),
    ),
    "a later arrival ahead": ("joined ahead", lambda: Story().join("ann", 2).join("bob", 1)),
    "told ready, and refused": (
        "ready in vain",
        lambda: two().pump(("ann", 1)).ready("ann", 1).enter("ann", 1, Answer.NOT_YET),
    ),
    "told ready, and expired after a failover": (
        "ready in vain",
        lambda: two().pump(("ann", 1)).ready("ann", 1).lost(How.FAILED_OVER).enter("ann", 1, Answer.EXPIRED),
    ),
    "a position that rises": ("position rose", lambda: two().poll("bob", 2, 1).poll("bob", 2, 2)),
    "a position that rises long after a loss": (
        "position rose",
        lambda: two().lost(How.RESTARTED).wait(301).poll("bob", 2, 1).poll("bob", 2, 2),
    ),
    "one ahead of another with a lower sequence": (
        "out of order",
        lambda: two().poll("ann", 1, 1).poll("bob", 2, 1).poll("ann", 1, 1),
    ),
    "not in the old order after an emptying": (
        "not back in order",
        lambda: two().lost(How.EMPTIED).wait(301).poll("ann", 1, 2).poll("bob", 2, 1),
    ),
    "an offer during the hold after an emptying": (
        "hold",
        lambda: two().lost(How.EMPTIED).wait(60).join("cy", 9).pump(("cy", 9)),
    ),
    "an offer during the hold after a failover": ("hold", lambda: two().lost(How.FAILED_OVER).pump(("bob", 2))),
    "one who waits is overtaken": ("overtaken", lambda: two().pump(("bob", 2))),
    "one who came back after a loss is overtaken": (
        "overtaken",
        lambda: two().lost(How.EMPTIED).wait(89).poll("ann", 1, 1).wait(20).pump(("bob", 2)),
    ),
    "one who did not take the offer gets the next": (
        "passed preferred",
        lambda: (
            two()
            .pump(("ann", 1))
            .ready("ann", 1)
            .wait(50)
            .poll("ann", 1, 1, ready=True)
            .wait(20)
            .place("ann", O, N, 1)
            .poll("ann", 1, 1, passed=True)
            .poll("bob", 2, 2)
            .pump(("ann", 1))
        ),
    ),
    "a free place that nobody is offered": ("left free", lambda: two().pump()),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_found(name: str) -> None:
    rule, story = PLANTED[name]
    assert rule in {v.rule for v in judge(story().history)}
