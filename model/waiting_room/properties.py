"""What must hold: the strong promises of docs/waiting-room.md. `moves` asks about every step, `explore` about rest.

A violation is raised as a `BrokenError`, with what is wrong.
"""

from dataclasses import replace
from typing import Any

from codehub.waiting_room.model import EPOCH
from model.asks import BrokenError
from model.waiting_room import machine
from model.waiting_room.machine import CONFIG, Request
from model.waiting_room.world import BEAT, LINE, Ghosts, Slot, State, World

PLACED = ("reserved", "held")
BEFORE = "picked before the loss"


def committed(world: World, before: State, after: State, slot: Slot, ghosts: Ghosts) -> Ghosts:
    """A transaction that changed rows: nobody too many, nobody twice, nobody out of turn."""
    old, new = world.places(before.rows), world.places(after.rows)
    event = world.event(after.rows)
    granted = []
    for pid, row in new.items():
        was = old.get(pid, {"state": "none", "gone_seq": 0, "seq": 0})
        if row["state"] == "offered" and was["state"] != "offered":
            _may_be_offered(was, row)
            granted.append((pid, row["seq"]))
        if was["state"] == "offered" and row["state"] == "none" and row["gone_seq"] < row["seq"]:
            ghosts = _lapsed(world, after, ghosts, pid)
        if row["state"] in PLACED and was["state"] not in PLACED:
            ghosts = _admitted(ghosts, was, row)
    if granted:
        _in_turn(world, after, slot, ghosts, granted)
        if sum(row["state"] != "none" for row in new.values()) > event["capacity"]:
            raise BrokenError("more places are given than there are")
        if event["paused"]:
            raise BrokenError("a place is offered during a pause")
    told = [t for t in ghosts.told if not _is_settled(new.get(machine.pid(t[0])), t[1])]
    return replace(ghosts, told=tuple(told))


def _may_be_offered(was: dict[str, Any], row: dict[str, Any]) -> None:
    if was["state"] in PLACED:
        raise BrokenError("a person with a place is offered another")
    if row["seq"] <= max(was["gone_seq"], row["gone_seq"]):
        raise BrokenError("a sequence that is over is offered a place")


def _admitted(ghosts: Ghosts, was: dict[str, Any], row: dict[str, Any]) -> Ghosts:
    token = (row["pid"], row["seq"])
    if was["state"] == "none":
        raise BrokenError("a person enters without an offer")
    if token in ghosts.admitted:
        raise BrokenError("a token is admitted twice")
    return replace(ghosts, admitted=tuple(sorted({*ghosts.admitted, token})))


def _in_turn(world: World, after: State, slot: Slot, ghosts: Ghosts, granted: list[tuple[str, int]]) -> None:
    places = world.places(after.rows)
    names = dict(granted)
    for pid, seq in granted:
        for rival, waits in slot.rivals or ():
            if rival not in names and (waits < seq or pid in slot.passed):
                raise BrokenError("one who waits is overtaken")
            if rival not in names and pid in ghosts.lapsed:
                raise BrokenError("one who did not take an offer comes before one who waits")
        for owed, waits, until in ghosts.owed if BEFORE not in slot.passed else ():
            place = places.get(owed)
            free = place is None or (place["state"] == "none" and place["gone_seq"] < waits)
            if owed not in names and waits < seq and after.now < until and free:
                raise BrokenError("one who waited before the loss, and can still come back, is overtaken")


def _lapsed(world: World, state: State, ghosts: Ghosts, pid: str) -> Ghosts:
    """Of one who is silent by now: coming back is an act."""
    told = any(machine.pid(person) == pid for person, _, _ in ghosts.told) and pid in world.zset(state.redis, BEAT)
    return replace(ghosts, lapsed=tuple(sorted({*ghosts.lapsed, pid}))) if told else ghosts


def acted(ghosts: Ghosts, request: Request) -> Ghosts:
    """A join and an enter are acts: who was passed over is no longer."""
    if request.kind not in {"join", "enter"} or not ghosts.lapsed:
        return ghosts
    return replace(ghosts, lapsed=tuple(pid for pid in ghosts.lapsed if pid != machine.pid(request.person)))


def _is_settled(place: dict[str, Any] | None, seq: int) -> bool:
    """Entered, or left by their own act: nothing is owed any more."""
    return place is not None and ((place["state"] in PLACED and place["seq"] == seq) or place["gone_seq"] >= seq)


def joined(world: World, before: State, after: State, ghosts: Ghosts) -> None:
    """Who joins goes behind everybody who has a token."""
    old, new = world.zset(before.redis, LINE), world.zset(after.redis, LINE)
    for pid, seq in new.items():
        if pid not in old and seq <= ghosts.issued:
            raise BrokenError("a person who joins goes before one who has joined")


def answered(world: World, state: State, request: Request, outcome: Any, ghosts: Ghosts) -> Ghosts:
    """What a person learns."""
    person, what = request.person, outcome[0]
    if what in {"joined", "again", "waits"}:
        seq, ready = outcome[1], outcome[2]
        ghosts = replace(
            ghosts,
            tokens=tuple(sorted({*ghosts.tokens, (person, seq)})),
            heard=_put(ghosts.heard, person, seq, state.now),
            issued=max(ghosts.issued, seq),
        )
        if ready and not _is_settled(world.places(state.rows).get(machine.pid(person)), seq):
            until = ready[0] if ready[0] is not None else state.now + CONFIG.offer_seconds
            kept = tuple(t for t in ghosts.told if t[0] != person)
            ghosts = replace(ghosts, told=tuple(sorted((*kept, (person, seq, until)))))
    elif what == "TOKEN_EXPIRED" and request.kind == "poll":
        _expired(world, state, request, ghosts)
    return ghosts


def _put(heard: tuple[tuple[str, int, float], ...], person: str, seq: int, now: float) -> Any:
    return tuple(sorted((*(h for h in heard if h[0] != person), (person, seq, now))))


def _expired(world: World, state: State, request: Request, ghosts: Ghosts) -> None:
    """Only after silence, or the person's own act."""
    heard = [h for h in ghosts.heard if h[:2] == (request.person, request.seq)]
    if not heard or state.now - heard[0][2] >= CONFIG.heartbeat_seconds:
        return
    place = world.places(state.rows).get(machine.pid(request.person))
    over = place is not None and (place["gone_seq"] >= request.seq or place["state"] in PLACED)
    # After a loss a person may have two tokens for one place: leaving with either of them ends it.
    over = over or (place is not None and place["gone_seq"] > 0 and world.event(state.rows)["epoch"] > 1)
    leaving = any(world.slots.values[n].request[:2] == ("leave", request.person) for n in state.slots)
    # Who had a place, and gave it back while another join of theirs was under way, may be dropped by that one.
    returned = any(pid == machine.pid(request.person) for pid, _ in ghosts.admitted)
    if not over and not leaving and not returned:
        raise BrokenError("a token that is used is answered TOKEN_EXPIRED")


def always(world: World, state: State) -> None:
    """In every state: who was told ready, and still has time, has the offer."""
    ghosts = world.ghosts.values[state.ghosts]
    if not ghosts.told:
        return
    places = world.places(state.rows)
    for person, seq, until in ghosts.told:
        place = places.get(machine.pid(person))
        offered = place is not None and (place["state"], place["seq"]) == ("offered", seq)
        if state.now <= until and not offered and not _is_settled(place, seq):
            raise BrokenError("told ready, and the offer is gone")


def at_rest(world: World, state: State) -> None:
    """Nothing is under way: when people go on asking and the pump pumps, places fill up, and all is noted.

    Also when one who has an offer never asks again.
    """
    people = sorted({person for person, _ in world.ghosts.values[state.ghosts].tokens})
    places = world.places(state.rows)
    offered = [person for person in people if places.get(machine.pid(person), {}).get("state") == "offered"]
    for absent in ["", *offered]:
        _goes_on(world, state, [person for person in people if person != absent], 11 if absent else 7)


def _goes_on(world: World, state: State, people: list[str], rounds: int) -> None:
    """Every 20 s. An offer that was told lasts for three minutes at most, one that was not for one and a half."""
    ghosts = world.ghosts.values[state.ghosts]
    newest = {person: max(seq for p, seq in ghosts.tokens if p == person) for person in people}
    for round_ in range(rounds):
        waits = set()
        for person in people:
            state, outcome = world.whole(state, Request("poll", person, newest[person]))
            if outcome[0] == "waits":
                waits.add(person)
                newest[person] = outcome[1]
                if outcome[2]:
                    state = _entered(world, state, Request("enter", person, newest[person]))
        state, _ = world.whole(state, Request("tick"))
        if round_ == 0:
            _is_offered(world, state, waits)
        state = world.pass_time(state, 20.0, swept=True)
    state, _ = world.whole(state, Request("tick"))
    waits = set()
    for person in people:
        state, outcome = world.whole(state, Request("poll", person, newest[person]))
        if outcome[0] == "waits":
            waits.add(person)
    _is_full(world, state, waits)


def _is_offered(world: World, state: State, waits: set[str]) -> None:
    """A free place is offered by the next pump, outside the hold after a loss."""
    event, places = world.event(state.rows), world.places(state.rows)
    hold = int(world.meta(state.redis).get("hold", "0")) / 1000 - machine.BEGAN.timestamp()
    used = sum(row["state"] != "none" for row in places.values())
    over = {p for p in waits if world.places(state.rows).get(machine.pid(p), {"gone_seq": 0})["gone_seq"]}
    waiting = {p for p in waits - over if places.get(machine.pid(p), {"state": "none"})["state"] == "none"}
    if waiting and used < event["capacity"] and state.now >= hold and not event["paused"]:
        raise BrokenError(f"a pump leaves a place free although {', '.join(sorted(waiting))} wait")


def _entered(world: World, state: State, enter: Request) -> State:
    """One who was just told ready."""
    after, entered = world.whole(state, enter)
    over = _is_settled(world.places(state.rows).get(machine.pid(enter.person)), enter.seq)
    if entered[0] != "entered" and not over and not world.event(state.rows)["paused"]:
        raise BrokenError(f"told ready, and answered {entered[0]}")
    return after


def _is_full(world: World, state: State, waits: set[str]) -> None:
    event, places = world.event(state.rows), world.places(state.rows)
    used = sum(row["state"] != "none" for row in places.values())
    asks = {machine.pid(person) for person in waits}
    waits = {p for p in waits if places.get(machine.pid(p), {"state": "none"})["state"] == "none"}
    if used < event["capacity"] and waits and not event["paused"]:
        raise BrokenError(f"a place stays free although {', '.join(sorted(waits))} wait")
    for pid, row in places.items():
        if row["state"] == "offered" and pid not in asks and not event["paused"]:
            raise BrokenError("an offer stays to one who does not ask")
        # With a later sequence it is a join that ended between its two steps: five minutes, and never admitted.
        if row["state"] in PLACED and world.zset(state.redis, LINE).get(pid, row["seq"] + 1) <= row["seq"]:
            raise BrokenError("a person with a place stays in line")
        if not row["noted"] and event["activity"] != "idle":
            raise BrokenError("what PostgreSQL has decided is never noted")
    epochs = {seq // EPOCH for seq in world.zset(state.redis, LINE).values()}
    if epochs and max(epochs) > event["epoch"]:
        raise BrokenError("Redis has a sequence of an epoch that PostgreSQL does not know")
