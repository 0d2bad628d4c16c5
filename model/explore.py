"""Breadth first through every state that the bounds allow, each checked, each with the way that led to it."""

from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

from codehub.workspaces.model import Reason, Workspace
from model import machine, naming, properties, requests, world
from model.asks import Ask, BrokenError
from model.database import LATER, NOW, View, settled
from model.machine import Answer, Place
from model.properties import LOST, Violation
from model.tables import NONE, Leader, Tables
from model.world import World

QUESTIONS = {"read", "transaction"}


class Bounds(NamedTuple):
    faults: int = 2
    requests: int = 3


class State(NamedTuple):
    """Numbers stand for values in the tables. `work` is the version that the person made last."""

    row: int
    world: int
    leader: int
    stale: int  # a former leader that does not know it yet
    work: str
    faults: int  # that may still happen
    requests: int  # that may still come
    timer: int = 0  # it has found the workspace idle (1), and somebody did something since (2)


class Step(NamedTuple):
    """What a leader's next question leads to."""

    label: str
    row: int
    world: int
    leader: int


Steps = tuple[Step, list[Step]]  # as it should go, and every way in which it goes wrong
Way = tuple[str, State, bool]  # label, where to, does it happen by itself?
Numbers = tuple[int, int, int, int, str]  # row, world, leader, former leader; the person's work


class Explorer:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.tables = Tables()
        self._steps: dict[tuple[Any, ...], tuple[Step, list[Step]]] = {}
        self._ticks: dict[tuple[Any, ...], Step] = {}
        self._asked: dict[int, list[tuple[str, int]]] = {}
        self._canonical: dict[tuple[int, int, int, int, str], tuple[int, int, int, int, str]] = {}
        self.index: dict[State, int] = {}
        self.states: list[State] = []
        self.transitions = 0
        self._parents = array("q")
        self._labels = array("i")
        self._on = array("q")  # where it goes when nothing goes wrong and nobody asks; itself: at rest
        self._label_numbers: dict[str, int] = {}
        self._timer = 0  # of the state that is being left

    # --- the search

    def run(self, initial: list[tuple[Workspace, World, str]]) -> Violation | None:
        for row, there, work in initial:
            numbers = (self.tables.rows.number(row), self.tables.worlds.number(there), self._idle_leader(1), NONE, work)
            self._add(self._state(numbers, self.bounds.faults, self.bounds.requests), -1, "the beginning")
        at = 0
        while at < len(self.states):
            try:
                if problem := self._visit(at):
                    return Violation(problem, self.trace(at))
            except BrokenError as e:
                return Violation(str(e), self.trace(at))
            at += 1
        return self._find_circle()

    def _visit(self, at: int) -> str | None:
        state = self.states[at]
        tables = self.tables
        row, there, leader = (
            tables.rows.values[state.row],
            tables.worlds.values[state.world],
            tables.leaders.values[state.leader],
        )
        order = None if leader.order == NONE else tables.orders.values[leader.order]
        if problem := properties.always(row, there, order, state.work):
            return problem
        if state.faults == self.bounds.faults and (problem := properties.without_faults(row)):
            return problem
        on = at
        for label, after, by_itself in self._ways(state, row, there, leader):
            self.transitions += 1
            number = self._add(after, at, label)
            if by_itself:
                on = number
        self._on[at] = on
        return properties.at_rest(row, there, state.work) if on == at else None

    def _add(self, state: State, parent: int, label: str) -> int:
        found = self.index.get(state)
        if found is None:
            found = self.index[state] = len(self.states)
            self.states.append(state)
            self._parents.append(parent)
            self._labels.append(self._label_numbers.setdefault(label, len(self._label_numbers)))
            self._on.append(-1)
        return found

    def _find_circle(self) -> Violation | None:
        """Without new faults and requests every state has one way on: it must end at rest."""
        done = bytearray(len(self.states))
        for start in range(len(self.states)):
            path, at = [], start
            while not done[at]:
                done[at] = 2
                path.append(at)
                if self._on[at] == at:
                    break
                at = self._on[at]
                if done[at] == 2:
                    return Violation("it goes round in circles for ever", self.trace(at))
            for passed in path:
                done[passed] = 1
        return None

    def trace(self, at: int) -> list[str]:
        """How it came to this, step by step, with what each step changed."""
        way: list[int] = []
        while at >= 0:
            way.insert(0, at)
            at = self._parents[at]
        texts = list(self._label_numbers)
        lines, before = [], ("", "")
        for at in way:
            state = self.states[at]
            row, there = self.tables.rows.values[state.row], self.tables.worlds.values[state.world]
            now = (properties.describe_row(row), properties.describe_world(there, state.work))
            changed = [f"      {text}" for text, old in zip(now, before, strict=True) if text != old]
            lines.append("\n".join([texts[self._labels[at]], *changed]))
            before = now
        return lines

    # --- states

    def _idle_leader(self, epoch: int, answered: int | None = None) -> int:
        return self.tables.leader(Leader(epoch, answered))

    def _state(
        self, numbers: tuple[int, int, int, int, str], faults: int, asked: int, timer: int | None = None
    ) -> State:
        found = self._canonical.get(numbers)
        if found is None:
            found = self._canonical[numbers] = self._canonically(*numbers)
        return State(*found, faults, asked, self._timer if timer is None else timer)

    def _canonically(self, row: int, there: int, leader: int, stale: int, work: str) -> tuple[int, int, int, int, str]:
        tables = self.tables
        there = self._without_what_is_over(row, there, leader, stale)
        leader, there = self._without_identity(leader, there)
        order = [*tables.rows.names[row], *tables.worlds.names[there], *tables.leaders.names[leader]]
        order += [*(tables.leaders.names[stale] if stale != NONE else ()), *naming.names(work)]
        to = naming.canonical(order)
        if all(old == new for old, new in to.items()):
            return row, there, leader, stale, work
        return (
            tables.rows.renamed(row, to),
            tables.worlds.renamed(there, to),
            tables.leaders.renamed(leader, to),
            tables.leaders.renamed(stale, to),
            to.get(work, work),
        )

    def _without_what_is_over(self, row: int, there: int, leader: int, stale: int) -> int:
        """Archives and leftovers that nobody can come back to are forgotten."""
        tables = self.tables
        the_row, the_world = tables.rows.values[row], tables.worlds.values[there]
        if not the_world.archives and not the_world.staged:
            return there
        needed = {the_row.op_id, *naming.names(the_row.archive_key), *tables.leaders.names[leader]}
        needed |= set(tables.leaders.names[stale]) if stale != NONE else set()
        archives = tuple(a for a in the_world.archives if a.key.split("/")[1] in needed)
        staged = tuple(s for s in the_world.staged if s[0].split("-")[0] in needed)
        if (archives, staged) == (the_world.archives, the_world.staged):
            return there
        return tables.worlds.number(the_world._replace(archives=archives, staged=staged))

    def _without_identity(self, leader: int, there: int) -> tuple[int, int]:
        """Which container it is matters only as far as a leader knows it."""
        tables = self.tables
        the_leader, the_world = tables.leaders.values[leader], tables.worlds.values[there]
        if the_leader.heard != NONE or (the_leader.answered is None and the_world.container in {None, 1}):
            return leader, there
        known = the_leader.answered is not None and the_leader.answered == the_world.container
        leader = self._idle_leader(the_leader.epoch, 1 if known else None)
        if the_world.container not in {None, 1}:
            there = tables.worlds.number(the_world._replace(container=1))
        return leader, there

    def _used(self, state: State) -> set[str]:
        tables = self.tables
        used = {*tables.rows.names[state.row], *tables.worlds.names[state.world], *tables.leaders.names[state.leader]}
        used |= {state.work} if naming.NAME.fullmatch(state.work) else set()
        return used | (set(tables.leaders.names[state.stale]) if state.stale != NONE else set())

    # --- ways on

    def _ways(self, state: State, row: Workspace, there: World, leader: Leader) -> Iterator[Way]:  # noqa: C901 (all there are)
        faults, asked, stale, work = state.faults, state.requests, state.stale, state.work
        self._timer = state.timer
        if state.timer:
            yield from self._timer_acts(state, row)
            if state.timer == 1 and not requests.may_sleep(row):
                self._timer = 2  # whatever it is now, it is not what was found idle
        if leader.heard == NONE:
            yield from self._tick_or_wait(state, row, leader)
        else:
            normal, wrong = self._step(state, state.leader, fence=leader.epoch)
            yield normal.label, self._state((*normal[1:], stale, work), faults, asked), True
            for step in wrong if faults else ():
                yield step.label, self._state((*step[1:], stale, work), faults - 1, asked), False
        if faults:
            successor = self._idle_leader(leader.epoch + 1)
            crashed = self._state((state.row, state.world, successor, stale, work), faults - 1, asked)
            yield "the leader crashes", crashed, False
            if leader.order != NONE:
                former = self.tables.leader(leader._replace(answered=None))
                stopped = self._state((state.row, state.world, successor, former, work), faults - 1, asked)
                yield "the leader is stopped, another takes over", stopped, False
        if stale != NONE:
            yield from self._comes_late(state)
        if there.container is not None and there.volume:
            newest = naming.fresh("v", self._used(state))
            edited = self.tables.worlds.number(there._replace(volume=there.volume._replace(version=newest)))
            yield (
                "the person works",
                self._state((state.row, edited, state.leader, stale, newest), faults, asked),
                False,
            )
        if asked:
            yield from self._requests(state, row, there)
            if state.timer == 0 and requests.may_sleep(row):
                numbers = (state.row, state.world, state.leader, stale, work)
                yield "the timer finds it idle", self._state(numbers, faults, asked - 1, 1), False

    def _tick_or_wait(self, state: State, row: Workspace, leader: Leader) -> Iterator[Way]:
        rest = (state.stale, state.work)
        tick = self._tick(state)
        if (tick.row, tick.leader) != (state.row, state.leader):
            yield tick.label, self._state((*tick[1:], *rest), state.faults, state.requests), True
            if state.faults and tick.row != state.row:
                unheard = (tick.row, state.world, state.leader, *rest)
                label = f"{tick.label}, but the answer to COMMIT is lost"
                yield label, self._state(unheard, state.faults - 1, state.requests), False
        elif row.attention_at == LATER:
            passed = self.tables.rows.number(settled({**vars(row), "attention_at": NOW}))
            numbers = (passed, state.world, state.leader, *rest)
            yield "time passes", self._state(numbers, state.faults, state.requests), True
        if state.stale != NONE:  # what is seen may change while it is looked at
            ticking = self.tables.leader(leader._replace(heard=self.tables.nothing))
            numbers = (state.row, state.world, ticking, *rest)
            yield "leader: a tick begins", self._state(numbers, state.faults, state.requests), False

    def _comes_late(self, state: State) -> Iterator[Way]:
        """A former leader goes on with what it was about to do."""
        normal, wrong = self._step(state, state.stale, fence=0)
        for step in (normal, *(wrong if state.faults else ())):
            over = self.tables.leaders.values[step.leader].heard == NONE
            numbers = (step.row, step.world, state.leader, NONE if over else step.leader, state.work)
            used = 0 if step is normal else 1
            yield f"former {step.label}", self._state(numbers, state.faults - used, state.requests), False

    def _timer_acts(self, state: State, row: Workspace) -> Iterator[Way]:
        """By what it found before. A person's wish since then stays."""
        changed = requests.put_to_sleep(row, moved=state.timer == 2)
        if state.timer == 2 and changed != row:
            raise BrokenError("a timer overwrites what a person wished since it decided")
        told = self._told(state.leader) if changed != row else state.leader
        numbers = (self.tables.rows.number(changed), state.world, told, state.stale, state.work)
        yield "the timer asks for STANDBY", self._state(numbers, state.faults, state.requests, 0), False

    def _told(self, number: int) -> int:
        """A leader in the middle of a tick finds out that the row has changed since it looked."""
        leader = self.tables.leaders.values[number]
        ticking = leader.heard != NONE and leader.order == NONE and not leader.changed
        looked = ticking and any(isinstance(value, View) for _, value in self.tables.answers(leader.heard))
        return self.tables.leader(leader._replace(changed=True)) if looked else number

    def _requests(self, state: State, row: Workspace, there: World) -> Iterator[Way]:
        found = self._asked.get(state.row)
        if found is None:
            after = [(label, changed) for label, changed in requests.every(row) if changed != row]
            found = self._asked[state.row] = [(label, self.tables.rows.number(changed)) for label, changed in after]
        for label, changed in found:
            told, work = self._told(state.leader), state.work
            lost = label == "user recovers" and (row.error_info or {}).get("reason") == Reason.DATA_LOST
            if lost and not properties.is_kept(row, there, work):
                work = LOST
            numbers = (changed, state.world, told, state.stale, work)
            timer = 2 if state.timer and label != requests.TIMER_STORES else state.timer
            yield label, self._state(numbers, state.faults, state.requests - 1, timer), False

    # --- steps of leaders

    def _tick(self, state: State) -> Step:
        """A whole tick at once. When nobody else acts, nothing comes between that its write would not notice."""
        fresh = naming.fresh("o", self._used(state))
        key = (state.row, state.world, state.leader, fresh)
        found = self._ticks.get(key)
        if found is None:
            row, there = self.tables.rows.values[state.row], self.tables.worlds.values[state.world]
            leader = self.tables.leaders.values[state.leader]

            def respond(asks: Ask) -> Answer:
                if asks.verb in QUESTIONS:
                    return "returns", View(row, leader.epoch, fresh)
                return world.perform(there, asks.verb, asks.args)[0]

            place = machine.run_tick(leader.epoch, leader.answered, respond)
            found = self._ticks[key] = self._arrived("tick", place, state.row, state.world, leader)
        return found

    def _arrived(self, label: str, place: Place, row: int, there: int, leader: Leader, going: int = NONE) -> Step:
        """Still at it, at the work it began, or at rest."""
        begun = f": {place.spawned.operation} {place.spawned.op_id}" if place.spawned else ""
        row = self.tables.rows.number(place.committed) if place.committed else row
        if place.asks is None and place.spawned:
            order = self.tables.orders.number(place.spawned)
            going = self.tables.leader(Leader(leader.epoch, place.answered, order, self.tables.nothing))
        elif place.asks is None:
            going = self._idle_leader(leader.epoch, place.answered)
        return Step(f"leader: {label}{begun}", row, there, going)

    def _step(self, state: State, number: int, fence: int) -> Steps:
        """As it should go, and every way in which it goes wrong."""
        place = self.tables.place(number)
        assert place.asks is not None
        extra: Any = None
        if place.asks.verb == "transaction":
            extra = naming.fresh("o", self._used(state))
        elif place.asks.verb == "start":
            extra = self._new_identity(state)
        key = (number, state.row, state.world, fence, extra)
        found = self._steps.get(key)
        if found is None:
            made = self._question if place.asks.verb in QUESTIONS else self._deed
            found = self._steps[key] = made(place, number, state.row, state.world, fence, extra)
        return found

    def _hears(self, label: str, answer: Answer, number: int, row: int, there: int) -> Step:
        leader = self.tables.leaders.values[number]
        going = self.tables.hear(leader, answer)
        return self._arrived(label, self.tables.place(going), row, there, leader, going)

    def _question(
        self, place: Place, number: int, row: int, there: int, fence: int, extra: Any
    ) -> tuple[Step, list[Step]]:
        """To the database."""
        assert place.asks is not None
        leader = self.tables.leaders.values[number]
        view = View(self.tables.rows.values[row], fence, extra or "o1", changed=leader.changed)
        normal = self._hears(place.asks.verb, ("returns", view), number, row, there)
        wrong = []
        if place.asks.verb == "transaction" and fence:
            if leader.order != NONE:
                wrong.append(self._hears("the database is away", ("raises", "no database"), number, row, there))
            if normal.row != row:
                unheard = ("returns", view._replace(unheard=True))
                wrong.append(self._hears("the answer to COMMIT is lost", unheard, number, row, there))
        return normal, wrong

    def _deed(
        self, place: Place, number: int, row: int, there: int, _fence: int, extra: Any
    ) -> tuple[Step, list[Step]]:
        """To the runtime or the object store."""
        assert place.asks is not None
        asks, the_world = place.asks, self.tables.worlds.values[there]
        args = (extra,) if asks.verb == "start" else asks.args
        answer, after = world.perform(the_world, asks.verb, args)
        refused = " is refused" if answer[0] == "raises" else ""
        normal = self._hears(f"{asks}{refused}", answer, number, row, self.tables.worlds.number(after))
        if self.tables.leaders.values[number].order == NONE:
            return normal, []  # a look that fails is a tick that did not happen
        wrong = []
        for how, (said, then) in world.faults(the_world, asks.verb, args):
            if place.bounded or not how.startswith("hangs"):
                wrong.append(self._hears(f"{asks} {how}", said, number, row, self.tables.worlds.number(then)))
        return normal, wrong

    def _new_identity(self, state: State) -> int:
        used: set[Any] = {self.tables.worlds.values[state.world].container}
        for number in (state.leader, state.stale):
            leader = self.tables.leaders.values[number] if number != NONE else Leader(0)
            used.add(leader.answered)
            if leader.heard != NONE:
                used |= {value for _, value in self.tables.answers(leader.heard) if isinstance(value, int)}
        return next(n for n in range(1, 9) if n not in used)
