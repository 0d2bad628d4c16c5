"""One state of the waiting room with everything around it, and what a step makes of it.

Redis, rows, requests and ghosts (what only the properties need) are kept in tables, so that a state is a few numbers.
`explore` goes through them; `properties` says what must hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from codehub.waiting_room import keys
from codehub.waiting_room.model import EPOCH
from model.waiting_room import machine
from model.waiting_room.lua import Engine
from model.waiting_room.machine import EVENT, Answered, Request
from model.waiting_room.redis import Hash, Redis, ZSet
from model.waiting_room.rows import Rows

T = TypeVar("T")
KEYS = keys.of_event(EVENT)
LINE, LIVE, PASSED, BEAT, SILENT, OFFER, OFFERID, META, LOG = KEYS
# Nothing decides by these.
SHOWN = ("logn", "fresh", "eta", "entered", "left", "expired")


class Table(Generic[T]):
    """Values by number."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class Path(NamedTuple):
    """A request and its answers so far: one more than those of the path before it."""

    request: Request
    before: int = -1
    now: float = 0.0  # when it asked
    value: int = -1  # what it was answered


class Slot(NamedTuple):
    """A request under way. `rivals`: who may not be overtaken by what was picked, and who of the picked was passed."""

    request: Request
    path: int
    rivals: frozenset[tuple[str, int]] | None = None
    passed: frozenset[str] = frozenset()


class Left(NamedTuple):
    """How much may still happen."""

    requests: int
    crashes: int
    losses: int
    hours: int  # jumps of time
    settings: int = 0  # changes of capacity, pauses


@dataclass(frozen=True)
class Ghosts:
    """What the outside knows. Of each person: tokens they were given, and what they were told last."""

    tokens: tuple[tuple[str, int], ...] = ()
    heard: tuple[tuple[str, int, float], ...] = ()  # person, sequence, when they were last answered that they wait
    told: tuple[tuple[str, int, float], ...] = ()  # person, sequence, until when they may enter
    admitted: tuple[tuple[str, int], ...] = ()
    lapsed: tuple[str, ...] = ()  # who did not take an offer, and has only polled since
    issued: int = 0  # the highest sequence that a person was given
    owed: tuple[tuple[str, int, float], ...] = ()  # after a loss: pid, sequence, until when they may come back
    replica: int = -1  # what a replica has that no longer follows; -1: it follows
    earlier: int = -1  # the event's row before it was last changed


class State(NamedTuple):
    redis: int
    run: int
    rows: int
    now: float
    slots: tuple[int, ...]
    ghosts: int
    left: Left


class World:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.redis: Table[Any] = Table()
        self.rows: Table[Any] = Table()
        self.slots: Table[Slot] = Table()
        self.ghosts: Table[Ghosts] = Table()
        self.events: Table[Any] = Table()
        self.values: Table[Any] = Table()
        self.paths: Table[Path] = Table()
        self._script = lru_cache(maxsize=None)(self._run_script)
        self._transact = lru_cache(maxsize=None)(self._run_transaction)
        self._next = lru_cache(maxsize=None)(self._run_on)
        self.zset = lru_cache(maxsize=None)(self._zset)
        self.places = lru_cache(maxsize=None)(self._places)
        self.event = lru_cache(maxsize=None)(self._event)
        self.eligible = lru_cache(maxsize=None)(self._eligible)

    # --- steps of the product, remembered

    def begin(self, request: Request, *answers: Answered) -> Slot:
        path = self.paths.number(Path(request))
        for answered in answers:
            path = self.paths.number(Path(request, path, answered.now, self.values.number(answered.value)))
        return Slot(request, path)

    def _answers(self, path: int) -> tuple[Request, list[Answered]]:
        answers: list[Answered] = []
        at = self.paths.values[path]
        while at.before >= 0:
            answers.append(Answered(at.now, self.values.values[at.value]))
            at = self.paths.values[at.before]
        return at.request, answers[::-1]

    def _run_on(self, path: int, now: float) -> machine.Step:
        request, answers = self._answers(path)
        return machine.run(request, answers, now)

    def _run_script(
        self, redis: int, run: int, name: str, names: tuple[str, ...], args: tuple[Any, ...]
    ) -> tuple[int, int]:
        there = Redis.thaw(self.redis.values[redis], f"run{run}")
        reply = self.engine.run(there, name, names, args)
        return self.values.number(_hashable(reply)), self.keep(there)

    def keep(self, there: Redis) -> int:
        there.data.pop(LOG, None)
        meta = there.data.get(META)
        if isinstance(meta, Hash):
            for name in SHOWN:
                meta.pop(name, None)
        for key in [key for key in there.data if key.startswith("heartbeat:")]:
            del there.data[key]
        return self.redis.number(there.freeze())

    def _run_transaction(self, path: int, now: float, rows: int) -> tuple[int, int]:
        request, answers = self._answers(path)
        done = machine.run(request, answers, now, Rows.thaw(self.rows.values[rows]))
        assert done.rows
        return self.values.number(done.reads), self.rows.number(done.rows.freeze())

    def step(self, state: State, slot: Slot) -> tuple["Slot | None", State, Any, str]:
        """One step of a request: where it is then (None: done), the state without it, its outcome, what it did."""
        asks = self._next(slot.path, state.now).asks
        assert asks
        if asks.verb == "lock":
            value, after, what = self.values.number(None), state, "lock"
        elif asks.verb == "transaction":
            value, rows = self._transact(slot.path, state.now, state.rows)
            after, what = state._replace(rows=rows), "transaction"
        else:
            what = str(asks.args[0])
            value, redis = self._script(state.redis, state.run, *asks.args)
            after = state._replace(redis=redis)
        further = slot._replace(path=self.paths.number(Path(slot.request, slot.path, state.now, value)))
        done = self._next(further.path, state.now)
        return (further if done.asks else None), after, done.outcome, what

    def waits(self, state: State, slot: Slot) -> bool:
        """For the lock that another one has; who crashes has it no longer."""
        asks = self._next(slot.path, state.now).asks
        others = (self.slots.values[number] for number in state.slots)
        return asks is not None and asks.verb == "lock" and any(self._next(o.path, state.now).opens for o in others)

    def whole(self, state: State, request: Request) -> tuple[State, Any]:
        """A request from beginning to end, with nothing in between."""
        slot: Slot | None = self.begin(request)
        outcome: Any = None
        while slot:
            slot, state, outcome, _ = self.step(state, slot)
        return state, outcome

    def pass_time(self, state: State, seconds: float, *, swept: bool) -> State:
        """With a pump that sweeps all the while, or, in an outage, without."""
        until = state.now + seconds
        while swept and state.now + 9.0 < until:
            state = state._replace(now=state.now + 9.0)
            state = self._sweep(state)
        state = state._replace(now=until)
        return self._sweep(state) if swept else state

    def _sweep(self, state: State) -> State:
        now_ms = int(machine.moment(state.now).timestamp() * 1000)
        _, redis = self._script(state.redis, state.run, "sweep", KEYS, (now_ms, 500))
        return state._replace(redis=redis)

    # --- what a state says

    def _zset(self, redis: int, key: str) -> dict[str, int]:
        found = next(
            (dict(value) for name, kind, value in self.redis.values[redis] if name == key and kind is ZSet), {}
        )
        return {member: int(score) for member, score in found.items()}

    def _places(self, rows: int) -> dict[str, dict[str, Any]]:
        return {pid: dict(row) for pid, row in self.rows.values[rows][1]}

    def _event(self, rows: int) -> dict[str, Any]:
        return dict(self.rows.values[rows][0])

    def meta(self, redis: int) -> dict[str, str]:
        return next((dict(value) for name, _, value in self.redis.values[redis] if name == META), {})

    def _eligible(self, redis: int, rows: int) -> frozenset[tuple[str, int]]:
        """Live, unpassed, without an offer, and nothing is against them: pid and sequence."""
        places = self.places(rows)
        live = self.zset(redis, LIVE)
        return frozenset((pid, seq) for pid, seq in live.items() if _may_have(places.get(pid), seq))


def _may_have(place: dict[str, Any] | None, seq: int) -> bool:
    return place is None or (place["state"] == "none" and place["gone_seq"] < seq)


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def describe(world: World, state: State) -> str:
    """For traces: who is where."""
    names = {machine.pid(person): person for person in ("ann", "bob", "cy", "dan")}

    def shown(key: str) -> str:
        return " ".join(f"{names[pid]}:{machine.short(seq)}" for pid, seq in world.zset(state.redis, key).items())

    sets = {"line": LINE, "live": LIVE, "passed": PASSED, "offer": OFFER, "silent": SILENT}
    line = ", ".join(
        f"{name} [{' '.join(names[p] for p in world.zset(state.redis, key))}]" for name, key in sets.items()
    )
    rows = ", ".join(
        f"{names[pid]} {row['state']} {machine.short(row['seq'])} gone {machine.short(row['gone_seq'])}"
        f"{'' if row['noted'] else ' unnoted'}"
        for pid, row in world.places(state.rows).items()
    )
    epoch = world.event(state.rows)["epoch"]
    return f"{state.now:g} s | {shown(LINE)} | {line} | {rows} | epoch {epoch}"


def sequences(world: World, state: State) -> Iterator[int]:
    yield from (seq // EPOCH for seq in world.zset(state.redis, LINE).values())


__all__ = ["Ghosts", "Left", "Slot", "State", "World", "describe", "replace"]
