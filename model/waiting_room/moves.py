"""Everything that may happen next: steps of what is under way, new requests, the pump, crashes, losses, time.

Used by `explore`. Each move yields its name and the state after it; `properties` is asked about each.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from codehub.waiting_room.store import sql
from model.waiting_room import machine, properties
from model.waiting_room.machine import CONFIG, EVENT, Answered, Request
from model.waiting_room.redis import Redis
from model.waiting_room.rows import Rows
from model.waiting_room.world import BEAT, LINE, PASSED, Ghosts, Left, Slot, State, World

PIECES = ("sweep", "grant", "tell", "rest")


class Move(NamedTuple):
    label: str
    state: State


@dataclass(frozen=True)
class Bounds:
    """`in_flight` counts people's requests and the pumps' pieces; a person has at most two requests under way."""

    people: tuple[str, ...] = ("ann", "bob", "cy")
    in_flight: int = 3
    pumps: int = 2
    pieces: tuple[str, ...] = PIECES
    kinds: tuple[str, ...] = ("join", "enter", "leave", "release")
    losses: tuple[str, ...] = ()  # of "emptied", "restarted", "failed over"
    jumps: tuple[float, ...] = ()  # seconds that may pass at once
    settings: tuple[tuple[tuple[str, Any], ...], ...] = ()
    left: Left = field(default_factory=lambda: Left(3, 1, 1, 1))


class Moves:
    def __init__(self, world: World, bounds: Bounds) -> None:
        self._world = world
        self._bounds = bounds
        self._nothing = world.keep(Redis())
        self._seen = lru_cache(maxsize=None)(self._look)

    def all(self, state: State) -> Iterator[Move]:
        yield from self._steps(state)
        yield from self._people(state)
        yield from self._pumps(state)
        yield from self._faults(state)
        yield from self._time(state)
        yield from self._settings(state)

    # --- what is under way, and what begins

    def _steps(self, state: State) -> Iterator[Move]:
        for i, number in enumerate(state.slots):
            slot = self._world.slots.values[number]
            others = state._replace(slots=state.slots[:i] + state.slots[i + 1 :])
            if not self._world.waits(others, slot):
                yield from self.take(others, slot)
            if state.left.crashes:
                left = state.left._replace(crashes=state.left.crashes - 1)
                yield Move(f"crash of {slot.request}", others._replace(left=left))

    def _people(self, state: State) -> Iterator[Move]:
        if len(state.slots) >= self._bounds.in_flight:
            return
        ghosts, busy = self._world.ghosts.values[state.ghosts], self._busy(state)
        mine = [(person, seq) for person, seq in ghosts.tokens if busy.count(person) < 2]
        for person, seq in mine:
            yield from self.take(state, self._world.begin(Request("poll", person, seq)))
        if not state.left.requests:
            return
        spent = state._replace(left=state.left._replace(requests=state.left.requests - 1))
        for person in self._bounds.people:
            if busy.count(person) < 2 and "join" in self._bounds.kinds:
                yield from self.take(spent, self._world.begin(Request("join", person)))
        kinds = [kind for kind in ("enter", "leave") if kind in self._bounds.kinds]
        for (person, seq), kind in itertools.product(mine, kinds):
            yield from self.take(spent, self._world.begin(Request(kind, person, seq)))
        places = self._world.places(state.rows)
        if "release" in self._bounds.kinds:
            placed = [p for p in self._bounds.people if places.get(machine.pid(p), {}).get("state") == "reserved"]
            for person in placed:
                yield from self.take(spent, self._world.begin(Request("release", person)))

    def _busy(self, state: State) -> list[str]:
        return [self._world.slots.values[number].request.person for number in state.slots]

    def _pumps(self, state: State) -> Iterator[Move]:
        """A piece of the pump has read the event a moment ago, or before it was last changed."""
        if len(state.slots) >= self._bounds.in_flight or self._busy(state).count("") >= self._bounds.pumps:
            return
        earlier = self._world.ghosts.values[state.ghosts].earlier
        for kind in self._bounds.pieces:
            for event in [None] if earlier < 0 else [None, earlier]:
                seen = self._seen(state.rows, event, state.now)
                if seen[0]:
                    slot = self._world.begin(Request(kind), Answered(state.now, seen))
                    yield from self.take(state, slot, " (of before)" if event is not None else "")

    def _look(self, of: int, event: int | None, now: float) -> Any:
        rows = Rows.thaw(self._world.rows.values[of])
        if event is not None:
            rows.event = dict(self._world.events.values[event])
        return (tuple(tuple(row.items()) for row in rows.run(sql.watched, ("", 1), machine.moment(now))),)

    def take(self, state: State, slot: Slot, more: str = "") -> Iterator[Move]:
        """One step. Where it was the last, its answer may be lost on the way."""
        further, after, outcome, what = self._world.step(state, slot)
        label = f"{slot.request}{more}: {what}" + (f" → {outcome}" if further is None else "")
        if further and what == "first":
            passed = frozenset(self._world.zset(after.redis, PASSED))
            further = further._replace(rivals=self._world.eligible(after.redis, after.rows), passed=passed)
        after = self._changed(state, after, slot, what)
        slots = list(after.slots)
        if further:
            slots.append(self._world.slots.number(further))
        after = after._replace(slots=tuple(sorted(slots)))
        if further is None:
            known = self._answered(after, slot.request, outcome)
            if known != after and after.left.crashes:
                left = after.left._replace(crashes=after.left.crashes - 1)
                yield Move(f"{label}, and the answer is lost", after._replace(left=left))
            after = known
        yield Move(label, after)

    # --- what only the properties need

    def _changed(self, before: State, after: State, slot: Slot, what: str) -> State:
        world = self._world
        ghosts = world.ghosts.values[after.ghosts]
        if after.rows != before.rows:
            ghosts = properties.committed(world, before, after, slot, ghosts)
            old, new = world.rows.values[before.rows][0], world.rows.values[after.rows][0]
            if old != new:
                ghosts = replace(ghosts, earlier=world.events.number(old))
        elif what == "join":
            properties.joined(world, before, after, ghosts)
        ghosts = properties.acted(ghosts, slot.request)
        after = after._replace(ghosts=world.ghosts.number(ghosts))
        if after.redis == before.redis and after.rows == before.rows:
            return after
        eligible, slots = world.eligible(after.redis, after.rows), []
        for number in after.slots:
            other = world.slots.values[number]
            if other.rivals:
                other = other._replace(rivals=other.rivals & eligible)
            slots.append(world.slots.number(other))
        return after._replace(slots=tuple(sorted(slots)))

    def _answered(self, state: State, request: Request, outcome: Any) -> State:
        ghosts = properties.answered(self._world, state, request, outcome, self._world.ghosts.values[state.ghosts])
        return state._replace(ghosts=self._world.ghosts.number(ghosts))

    # --- what goes wrong, and what passes

    def _faults(self, state: State) -> Iterator[Move]:
        if not state.left.losses:
            return
        lost = state._replace(left=state.left._replace(losses=state.left.losses - 1))
        ghosts = self._world.ghosts.values[state.ghosts]
        if "emptied" in self._bounds.losses:
            yield Move("Redis is emptied", self._lose(lost, self._nothing, state.run, ghosts))
        if "restarted" in self._bounds.losses:
            yield Move("Redis is restarted", self._lose(lost, state.redis, state.run + 1, ghosts))
        if "failed over" in self._bounds.losses:
            if ghosts.replica < 0:
                following = replace(ghosts, replica=state.redis)
                yield Move("a replica stops following", state._replace(ghosts=self._world.ghosts.number(following)))
            elif ghosts.replica != state.redis:
                yield Move("the replica takes over", self._lose(lost, ghosts.replica, state.run + 1, ghosts))

    def _lose(self, state: State, redis: int, run: int, ghosts: Ghosts) -> State:
        """Who waited, and is not in what is left, may come back before a later one gets a place."""
        world = self._world
        there, beats = world.eligible(redis, state.rows), world.zset(state.redis, BEAT)
        survived = bool(world.zset(redis, LINE))
        given = {(machine.pid(person), seq) for person, seq in ghosts.tokens}
        idle = world.event(state.rows)["activity"] == "idle"  # who is in line there was not told so yet
        owed = []
        for pid, seq in world.eligible(state.redis, state.rows) - there:
            if idle and (pid, seq) not in given:
                continue
            seen = beats[pid] / 1000 - machine.BEGAN.timestamp()
            silent = seen + CONFIG.silent_seconds
            owed.append((pid, seq, min(silent, state.now + 10.0) if survived else silent))
        ghosts = replace(ghosts, owed=tuple(sorted(owed)), replica=-1)
        slots = [world.slots.number(self._after_loss(world.slots.values[number])) for number in state.slots]
        return state._replace(redis=redis, run=run, slots=tuple(sorted(slots)), ghosts=world.ghosts.number(ghosts))

    @staticmethod
    def _after_loss(slot: Slot) -> Slot:
        """Of what was picked before the loss, less than two seconds ago, nothing is promised."""
        picked = slot.rivals is not None
        return slot._replace(rivals=frozenset(), passed=frozenset({properties.BEFORE})) if picked else slot

    def _time(self, state: State) -> Iterator[Move]:
        if state.left.hours:
            # One who goes silent meanwhile, and comes back, is no longer passed over.
            ghosts = self._world.ghosts.number(replace(self._world.ghosts.values[state.ghosts], lapsed=()))
            spent = state._replace(left=state.left._replace(hours=state.left.hours - 1), ghosts=ghosts)
            for seconds in self._bounds.jumps:
                yield Move(f"{seconds:g} s pass", self._world.pass_time(spent, seconds, swept=True))
            yield Move("an outage of 100 s", self._world.pass_time(spent, 100.0, swept=False))

    def _settings(self, state: State) -> Iterator[Move]:
        if not state.left.settings:
            return
        spent = state._replace(left=state.left._replace(settings=state.left.settings - 1))
        for setting in self._bounds.settings:
            rows = Rows.thaw(self._world.rows.values[state.rows])
            old = self._world.rows.values[state.rows][0]
            rows.event.update(setting)
            ghosts = replace(self._world.ghosts.values[state.ghosts], earlier=self._world.events.number(old))
            if rows.event["paused"]:
                ghosts = replace(ghosts, told=())
            after = spent._replace(
                rows=self._world.rows.number(rows.freeze()), ghosts=self._world.ghosts.number(ghosts)
            )
            yield Move(f"set {dict(setting)}", after)


def beginning(world: World, bounds: Bounds, *, capacity: int = 1, joined: tuple[str, ...] = ()) -> State:
    """An event that was just made; or one where these have joined, one after the other."""
    event = {
        "id": EVENT,
        "owner": None,
        "capacity": capacity,
        "admission_rate": None,
        "next_grant_at": None,
        "opens_at": None,
        "order": "fifo",
        "drawn": False,
        "place_lease_seconds": 3600,
        "paused": False,
        "draining": False,
        "secret": machine.SECRET,
        "epoch": 0,
        "opened_at": None,
        "lost_line": False,
        "activity": "idle",
        "has_live_waiters": False,
        "waiters_version": 0,
        "waiters_seen_at": None,
        "created_at": machine.BEGAN,
        "updated_at": machine.BEGAN,
    }
    rows = world.rows.number(Rows(event).freeze())
    state = State(world.keep(Redis()), 1, rows, 0.0, (), world.ghosts.number(Ghosts()), bounds.left)
    for person in joined:
        state, outcome = world.whole(state, Request("join", person))
        ghosts = properties.answered(world, state, Request("join", person), outcome, world.ghosts.values[state.ghosts])
        state = state._replace(ghosts=world.ghosts.number(ghosts))
    return state
