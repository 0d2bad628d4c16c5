"""Every way on from a state: leaders' steps, faults, requests, timers, the person; and what each costs."""

from collections.abc import Container, Iterator
from typing import Any

from codehub.workspaces.model import Reason, Workspace
from model import properties, requests
from model.asks import BrokenError
from model.canonical import Canonical, State
from model.database import LATER, NOW, View, settled
from model.properties import LOST
from model.steps import Step, Stepper
from model.tables import NONE, Leader
from model.world import Verbs, World

# Label, the state it leads to, how many faults and requests it takes, and: does it happen by itself?
Move = tuple[str, int, int, int, bool]
MOST_LOOKS = 20  # at once: whatever a mutant does, it ends


class Moves:
    def __init__(self, stepper: Stepper, known: Container[int]) -> None:
        self._stepper = stepper
        self._tables = stepper.tables
        self._plain = stepper.plain
        self._state = Canonical(stepper, known).state
        self._asked: dict[int, list[tuple[str, int]]] = {}
        self._timer = 0  # as it is after any move that does not concern it

    def beginning(self, row: Workspace, there: World, work: str) -> int:
        tables = self._tables
        numbers = tables.rows.number(row), tables.worlds.number(there), self._stepper.idle(1)
        return self._state(*numbers, NONE, tables.works.number(work), 0)

    def all(self, state: State, *, faults: bool, asked: bool) -> Iterator[Move]:
        """With faults, when some may still happen; with requests, when some may still come."""
        tables = self._tables
        row, leader = tables.rows.values[state.row], tables.leaders.values[state.leader]
        self._timer = 2 if state.timer == 1 and not requests.may_sleep(row) else state.timer
        if leader.heard != NONE and leader.order == NONE and not self._plain:
            yield from self._in_a_tick(state, faults=faults)
            return
        if state.timer:
            yield self._timer_acts(state, row)
        if leader.heard == NONE:
            yield from self._tick_or_wait(state, row, leader, faults=faults)
        else:
            yield from self._works_on(state, leader, faults=faults)
        if faults:
            crashed = self._replaced(state, leader, state.stale)
            yield "the leader crashes", crashed, 1, 0, False
        if state.stale != NONE:
            yield from self._comes_late(state, faults=faults)
        yield from self._person_works(state)
        if asked:
            yield from self._requests(state, row)

    # --- leaders

    def _of_leader(self, state: State, step: Step, faults: int, said: str = "", *, by_itself: bool = False) -> Move:
        to = self._state(step.row, step.world, step.leader, state.stale, state.work, self._timer)
        return f"{said}{step.label}" if said else step.label, to, faults, 0, by_itself

    def _tick_or_wait(self, state: State, row: Workspace, leader: Leader, *, faults: bool) -> Iterator[Move]:
        tick = self._stepper.tick(state.row, state.world, state.leader, self._fresh_operation(state))
        if (tick.row, tick.leader) != (state.row, state.leader):
            yield self._of_leader(state, tick, 0, by_itself=True)
            if faults and tick.row != state.row:
                label = f"{tick.label}, but the answer to COMMIT is lost"
                yield self._of_leader(state, Step(label, tick.row, state.world, state.leader), 1)
        elif row.attention_at == LATER:
            passed = self._tables.rows.number(settled({**vars(row), "attention_at": NOW}))
            yield self._of_leader(state, Step("time passes", passed, state.world, state.leader), 0, by_itself=True)
        if faults:
            yield from self._torn_ticks(state)
        if state.stale != NONE and self._plain:
            ticking = self._tables.leader(leader._replace(heard=self._tables.nothing))
            yield self._of_leader(state, Step("leader: a tick begins", state.row, state.world, ticking), 0)
        elif state.stale != NONE and self._would_be_seen(state):
            begun, _ = self._stepper.look(state.row, state.world, state.leader, "")
            yield self._of_leader(state, begun._replace(label="leader: a tick begins"), 0)

    def _torn_ticks(self, state: State) -> Iterator[Move]:
        """Ticks that cannot read what is there of a container or of volumes."""
        there = self._tables.worlds.values[state.world]
        looks = {"containers": there.container, "volumes": there.volume or there.parked}
        for look in [look for look, found in looks.items() if found]:
            torn = self._stepper.tick(state.row, state.world, state.leader, self._fresh_operation(state), look)
            if (torn.row, torn.leader) != (state.row, state.leader):
                yield self._of_leader(state, torn, 1)

    def _would_be_seen(self, state: State) -> bool:
        """Would a tick see it if the former leader took its next step now?"""
        normal, wrong = self._late_steps(state)
        before = self._look(state.world)
        return any(self._look(step.world) != before for step in (normal, *wrong) if step.world != state.world)

    def _look(self, number: int) -> tuple[Any, Any]:
        there = self._tables.worlds.values[number]
        return there.container, Verbs.volumes(there)[0]

    def _in_a_tick(self, state: State, *, faults: bool) -> Iterator[Move]:
        """In the middle of one only what it could see, or what leads to that, has to come between."""
        fresh = self._fresh_operation(state)
        normal, wrong = self._stepper.look(state.row, state.world, state.leader, fresh)
        yield self._of_leader(state, normal, 0, by_itself=True)
        for step in wrong if faults else ():
            yield self._of_leader(state, step, 1)
        if state.stale != NONE:
            yield from self._comes_late(state, faults=faults)
            yield from self._person_works(state)

    def _works_on(self, state: State, leader: Leader, *, faults: bool) -> Iterator[Move]:
        """Its next step; after a look that nobody can disturb also the one after that, as if it had looked just now."""
        number, said = state.leader, ""
        for _ in range(MOST_LOOKS):
            extra = self._extra(state, number)
            normal, wrong = self._stepper.step(state.row, state.world, number, leader.epoch, extra)
            if faults and leader.order != NONE:
                stopped = self._replaced(state, leader, number)
                yield f"{said}the leader is stopped, another takes over", stopped, 1, 0, False
            for step in wrong if faults else ():
                yield self._of_leader(state, step, 1, said)
            over = self._tables.leaders.values[normal.leader].heard == NONE
            if over or not self._stepper.is_undisturbed(number, state.stale):
                break
            number, said = normal.leader, f"{said}{normal.label}; "
        yield self._of_leader(state, normal, 0, said, by_itself=True)

    def _replaced(self, state: State, leader: Leader, former: int) -> int:
        successor = self._stepper.idle(leader.epoch + 1)
        return self._state(state.row, state.world, successor, former, state.work, self._timer)

    def _comes_late(self, state: State, *, faults: bool) -> Iterator[Move]:
        """A former leader goes on with what it was about to do."""
        normal, wrong = self._late_steps(state)
        for step in (normal, *(wrong if faults else ())):
            over = self._tables.leaders.values[step.leader].heard == NONE
            stale = NONE if over else step.leader
            to = self._state(step.row, step.world, state.leader, stale, state.work, self._timer)
            yield f"former {step.label}", to, int(step is not normal), 0, False

    def _late_steps(self, state: State) -> tuple[Step, list[Step]]:
        extra = self._extra(state, state.stale)
        return self._stepper.step(state.row, state.world, state.stale, 0, extra)

    # --- the person, and whatever asks

    def _person_works(self, state: State) -> Iterator[Move]:
        tables = self._tables
        there = tables.worlds.values[state.world]
        if there.container and there.volume:
            newest = f"v{len(self._used(state, 'v')) + 1}"
            edited = tables.worlds.number(there._replace(volume=there.volume._replace(version=newest)))
            work = tables.works.number(newest)
            to = self._state(state.row, edited, state.leader, state.stale, work, self._timer)
            yield "the person works", to, 0, 0, False

    def _timer_acts(self, state: State, row: Workspace) -> Move:
        """By what it found before. A person's request since then stays."""
        changed = requests.put_to_sleep(row, moved=state.timer == 2)
        if state.timer == 2 and changed != row:
            raise BrokenError("a timer overwrites what a person asked for since it decided")
        number, told = self._tables.rows.number(changed), state.leader if changed == row else self._told(state.leader)
        to = self._state(number, state.world, told, state.stale, state.work, 0)
        return "the timer asks for STANDBY", to, 0, 0, False

    def _requests(self, state: State, row: Workspace) -> Iterator[Move]:
        found = self._asked.get(state.row)
        if found is None:
            after = [(label, changed) for label, changed in requests.every(row) if changed != row]
            found = self._asked[state.row] = [(label, self._tables.rows.number(changed)) for label, changed in after]
        for label, changed in found:
            timer = 2 if state.timer and label != requests.TIMER_STORES else self._timer
            work = self._accepted(state, row) if label == "user recovers" else state.work
            to = self._state(changed, state.world, self._told(state.leader), state.stale, work, timer)
            yield label, to, 0, 1, False
        if state.timer == 0 and requests.may_sleep(row):
            to = self._state(state.row, state.world, state.leader, state.stale, state.work, 1)
            yield "the timer finds it idle", to, 0, 1, False

    def _told(self, number: int) -> int:
        """A leader in the middle of a tick (in a plain search) finds out that the row has changed since it looked."""
        leader = self._tables.leaders.values[number]
        if leader.heard == NONE or leader.order != NONE or leader.changed:
            return number
        looked = any(isinstance(value, View) for _, value in self._tables.answers(leader.heard))
        return self._tables.leader(leader._replace(changed=True)) if looked else number

    def _accepted(self, state: State, row: Workspace) -> int:
        """The person's work, after they accepted that it may be lost."""
        there, work = self._tables.worlds.values[state.world], self._tables.works.values[state.work]
        lost = (row.error_info or {}).get("reason") == Reason.DATA_LOST
        gone = lost and not properties.is_kept(row, there, work)
        return self._tables.works.number(LOST) if gone else state.work

    # --- names that nobody uses

    def _used(self, state: State, kind: str) -> set[str]:
        tables = self._tables
        used = {*tables.rows.names[state.row], *tables.worlds.names[state.world], *tables.leaders.names[state.leader]}
        used |= {*tables.works.names[state.work], *(tables.leaders.names[state.stale] if state.stale != NONE else ())}
        return {name for name in used if name[0] == kind}

    def _fresh_operation(self, state: State) -> str:
        """In a state under its own names they are numbered through."""
        return f"o{len(self._used(state, 'o')) + 1}"

    def _extra(self, state: State, number: int) -> Any:
        """What a step needs to be told: the name of what it makes."""
        asks = self._tables.place(number).asks
        assert asks is not None
        return self._fresh_operation(state) if asks.verb == "transaction" else None
