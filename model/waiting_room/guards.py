"""The guards of the protocol, each taken away: the model has to notice. `make model ARGS="waiting_room guards"`.

Each is a piece of the product that one of the traces in docs/waiting-room.md asks for, with a small scenario that leads
there. What is not noticed has to say why (`survives`).
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from codehub.waiting_room import rules, store
from codehub.waiting_room.model import Marked, State
from codehub.waiting_room.rules import Arrival, Grant
from model.waiting_room.explore import Found
from model.waiting_room.lua import Engine
from model.waiting_room.machine import CONFIG
from model.waiting_room.moves import Bounds
from model.waiting_room.rows import Rows
from model.waiting_room.scenarios import PAUSED, THREE, TWO, Scenario
from model.waiting_room.world import Left, World


def _small(left: Left, *pieces: str, kinds: tuple[str, ...] = (), capacity: int = 1, **more: Any) -> Scenario:
    joined = more.pop("joined", TWO)
    people = more.pop("people", TWO)
    bounds = Bounds(people=people, in_flight=2, kinds=kinds, pieces=pieces, left=left, **more)
    return Scenario(bounds, capacity, joined)


ENTERING = _small(Left(2, 0, 0, 0), "grant", kinds=("enter",))
RELEASING = _small(Left(2, 1, 0, 0), "grant", kinds=("enter", "release"))
SECOND_TAB = _small(Left(3, 0, 0, 0), "grant", kinds=("enter", "join"), capacity=2, joined=("ann",))
LEAVING = _small(Left(2, 1, 0, 0), "grant", kinds=("leave", "join"))
WAITING = _small(Left(0, 0, 0, 2), "grant", "sweep", jumps=(66.0, 96.0))
EMPTIED = _small(Left(1, 0, 1, 1), "grant", "tell", kinds=("join",), losses=("emptied",), jumps=(11.0,))
FAILED_OVER = _small(Left(1, 0, 1, 0), "grant", "tell", kinds=("join",), losses=("failed over",), joined=("ann",))


@dataclass(frozen=True)
class Guard:
    """`lua`: script, text, what stands there instead. `python`: what has it, its name, what takes its place."""

    name: str
    scenario: Scenario
    lua: tuple[str, str, str] | None = None
    python: tuple[Any, str, Any] | None = None
    survives: str = ""  # why it is no mistake that nothing breaks

    def hunt(self, most: int = 200_000) -> tuple[Found | None, int]:
        """What breaks without it, and how many states that took."""
        engine = Engine(CONFIG, *([self.lua] if self.lua else []))
        with contextlib.ExitStack() as stack:
            if self.python:
                stack.enter_context(mock.patch.object(*self.python))
            explorer = self.scenario.explorer(engine)
            return explorer.run(most=most), len(explorer.states)


async def _placed_only(c: Any, event_id: str) -> int:
    found = await store.count_places(c, event_id)
    return found.reserved + found.held


def _without_end(change: Callable[..., Any]) -> Callable[..., Any]:
    return lambda place, *args: replace(change(place, *args), gone_seq=place.gone_seq)


def _unfenced_note(self: Rows, _id: str, pids: list[str], _versions: list[int], _epoch: int) -> None:
    for pid in pids:
        self.places[pid]["noted"] = True


def _any_lapse(place: Any, _offer_id: int) -> bool:
    return place is not None and place.state is State.OFFERED


def _grants_placed(place: Any, seq: int) -> Grant:
    return Grant.GRANT if place and place.state in rules.PLACED else _grant(place, seq)


_grant, _arrival, _allowance, _has_heard = rules.grant, rules.arrival, rules.allowance, rules.has_heard


GUARDS = (
    Guard("offers count against the capacity (trace 1)", ENTERING, python=(store, "used", _placed_only)),
    Guard(
        "an offer that is never told ends (trace 2)",
        _small(Left(0, 0, 0, 1), "grant", jumps=(9.0,)),
        lua=("mark", "digits(tonumber(seen) + SILENT_MS)", "digits(tonumber(seen) + 1000000000)"),
    ),
    Guard(
        "sequences begin with the epoch (trace 3)",
        FAILED_OVER,
        lua=("join", "seq = epoch * EPOCH + redis.call", "seq = EPOCH + redis.call"),
    ),
    Guard("nothing is offered at first after a loss (trace 4)", EMPTIED, lua=("first", "now < hold or ", "")),
    Guard(
        "a place that ends leaves a tombstone (trace 5)",
        RELEASING,
        python=(rules, "released", _without_end(rules.released)),
    ),
    Guard("one with a place is refused another (trace 6)", SECOND_TAB, python=(rules, "grant", _grants_placed)),
    Guard(
        "who is refused makes way for the next (trace 6)",
        SECOND_TAB,
        lua=("drop", "local found = seq and seq <= most", "local found = seq and seq <= most and why ~= 'stale'"),
    ),
    Guard(
        "what is overdue is shown no more before it lapses (trace 7)",
        _small(Left(0, 0, 0, 2), "grant", "sweep", jumps=(96.0,)),
        lua=("sweep", "            set_mark(pid, id, seq, told, id)\n", ""),
    ),
    Guard(
        "a mark that comes late is refused (trace 8)",
        _small(Left(0, 0, 0, 1), "grant", "tell", "sweep", jumps=(96.0,)),
        lua=("mark", "closed >= offer or id > offer", "false"),
    ),
    Guard(
        "a lapse ends the offer that it names (trace 9)",
        _small(Left(0, 0, 0, 1), "grant", "sweep", jumps=(96.0,), people=("ann",), joined=("ann",)),
        python=(rules, "may_lapse", _any_lapse),
    ),
    Guard(
        "noted is fenced by version and epoch (trace 10)",
        _small(Left(0, 0, 1, 0), "grant", losses=("emptied",)),
        python=(Rows, "_note", _unfenced_note),
    ),
    Guard(
        "a new epoch says everything again (trace 11)",
        _small(Left(1, 0, 1, 0), "grant", "tell", kinds=("enter",), losses=("failed over",)),
        python=(Rows, "_forget_noted", lambda *_args: None),
    ),
    Guard(
        "who is put back is offered nothing before PostgreSQL was asked (trace 12)",
        _small(Left(1, 1, 1, 0), "grant", kinds=("leave",), losses=("emptied",)),
        lua=(
            "status",
            "        return answer(i, CHECK, asked, 0, 0)",
            "        redis.call('ZADD', LIVE, digits(asked), pid) return answer(i, CHECK, asked, 0, 0)",
        ),
        survives="the grant asks PostgreSQL again, refuses and drops: only positions of others are wrong for a while",
    ),
    Guard(
        "who did not take an offer goes behind (trace 16)",
        WAITING,
        lua=("lapse", "told > 0 and PASSED or LIVE", "LIVE"),
    ),
    Guard(
        "another Redis is a loss",
        FAILED_OVER,
        lua=("common", "local lost = meta[1] ~= run", "local lost = not meta[1]"),
    ),
    Guard(
        "a mark of another epoch is refused",
        EMPTIED,
        lua=("mark", "if tonumber(ARGV[5]) ~= epoch then", "if false then"),
        survives="what it marks is offered in PostgreSQL, and its mark is said again in the new epoch",
    ),
    Guard(
        "people of before a loss come back",
        EMPTIED,
        lua=("status", "local may_return = now < window and asked < epoch * EPOCH", "local may_return = false"),
    ),
    Guard(
        "one process at a time opens a line",
        _small(Left(2, 0, 1, 0), kinds=("join",), losses=("emptied",), joined=()),
        python=(World, "waits", lambda *_args: False),
    ),
    Guard(
        "who left does not come back after a loss",
        _small(Left(1, 0, 1, 0), "grant", kinds=("leave",), losses=("emptied",)),
        python=(
            rules,
            "arrival",
            lambda place, seq: Arrival.WAITS if place and place.state is State.NONE else _arrival(place, seq),
        ),
    ),
    Guard(
        "a grant refuses what is over",
        LEAVING,
        python=(
            rules,
            "grant",
            lambda place, seq: Grant.GRANT if place and place.state is State.NONE else _grant(place, seq),
        ),
    ),
    Guard(
        "a drop spares a later sequence",
        _small(Left(2, 0, 0, 0), "grant", kinds=("leave", "join")),
        lua=("drop", "local found = seq and seq <= most", "local found = seq"),
    ),
    Guard(
        "a confirmation is for the line as it was seen",
        _small(
            Left(2, 1, 1, 0), "grant", kinds=("leave", "join"), losses=("emptied",), people=("ann",), joined=("ann",)
        ),
        lua=("confirm", "if tonumber(redis.call('ZSCORE', EVENT, pid)) ~= expected then", "if false then"),
    ),
    Guard(
        "nothing is offered during a pause",
        _small(Left(0, 0, 0, 0, 1), "grant", settings=PAUSED[:1]),
        python=(rules, "allowance", lambda event, **more: _allowance(replace(event, paused=False), **more)),
    ),
    Guard(
        "of the live the first is next",
        _small(Left(0, 0, 0, 0), "grant", people=THREE, joined=THREE),
        lua=(
            "first",
            "redis.call('ZRANGE', LIVE, 0, last, 'WITHSCORES')",
            "redis.call('ZRANGE', LIVE, -1, -1, 'WITHSCORES')",
        ),
    ),
    Guard(
        "an offer that Redis could not show ends",
        _small(Left(1, 1, 0, 0), "grant", "tell", kinds=("leave",)),
        python=(rules, "has_heard", lambda marked: True if marked is Marked.ABSENT else _has_heard(marked)),
        survives="leaving ends the offer in PostgreSQL, too",
    ),
)


def report() -> int:
    """Prints what notices each; 1 when one is not noticed and does not say why, or says why and is noticed."""
    wrong = 0
    for guard in GUARDS:
        found, states = guard.hunt()
        verdict = f"{found.problem} ({len(found.trace)} steps)" if found else f"nothing: {guard.survives or 'WHY?'}"
        print(f"{states:8} states | {guard.name}: {verdict}", flush=True)
        wrong += bool(found) == bool(guard.survives)
    print(f"{len(GUARDS)} guards, {wrong} not as expected.")
    return int(wrong > 0)
