"""A leader's next step: what the product's code asks for, answered as it should be, and in every way that goes wrong.

Everything here is about leaders alone: what may come between their steps is in `moves`.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from codehub.workspaces.model import Operation
from model import machine, world
from model.asks import Ask, BrokenError
from model.database import View
from model.machine import Answer, Place
from model.tables import NONE, Leader, Tables
from model.world import World

QUESTIONS = {"read", "transaction"}  # to the database
# From these on, an attempt only looks, writes below a key of its own that nobody else writes, and ends with a fenced
# transaction. `Steps` makes sure of it at every step that it takes.
LAST_ASKS = {
    Operation.STARTING: frozenset({"container", "volumes"}),
    Operation.ARCHIVING: frozenset(
        {"list", "get_data", "get_meta", "pack", "put_data", "put_meta", "delete_data", "delete_meta"}
    ),
}
WRITES = {"put_data", "put_meta", "delete_data", "delete_meta"}
# What an attempt may change of a machine, and what each look is a look at. The first is made sure of, too.
EVERYTHING = frozenset(World._fields)
TOUCHES = {
    Operation.PROVISIONING: frozenset({"volume", "parked"}),
    Operation.RESTORING: frozenset({"volume", "parked", "staged"}),
    Operation.STARTING: frozenset({"container"}),
    Operation.STOPPING: frozenset({"container"}),
    Operation.ARCHIVING: frozenset({"volume", "parked", "archives"}),
    Operation.DELETING: EVERYTHING,
}
LOOKS_AT = {
    "containers": frozenset({"container"}),
    "container": frozenset({"container"}),
    "volumes": frozenset({"volume", "parked"}),
    "pack": frozenset({"volume", "parked"}),
    **dict.fromkeys(("list", "get_data", "get_meta"), frozenset({"archives"})),
}


class Step(NamedTuple):
    """What a leader's next question leads to."""

    label: str
    row: int
    world: int
    leader: int


Steps = tuple[Step, list[Step]]  # as it should go, and every way in which it goes wrong


class PremiseError(BaseException):
    """An operation (of a mutant) does not end as `LAST_ASKS` says, so nothing may be concluded from that."""


class Stepper:
    """`plain`: step by step, without any of the conclusions that spare steps. For comparison."""

    def __init__(self, tables: Tables, without: Iterable[Operation] = (), *, plain: bool = False) -> None:
        self.tables = tables
        self.plain = plain
        unusual = set(Operation if plain else without)
        self._last_asks = {op: asks for op, asks in LAST_ASKS.items() if op not in unusual}
        self._touches = {op: EVERYTHING if op in unusual else parts for op, parts in TOUCHES.items()}
        self._steps: dict[tuple[Any, ...], Steps] = {}
        self._ticks: dict[tuple[Any, ...], Step] = {}
        self._former: dict[int, int] = {}
        self._undisturbed: dict[tuple[int, int], bool] = {}

    def idle(self, epoch: int) -> int:
        return self.tables.leader(Leader(epoch))

    # --- former leaders

    def former(self, number: int) -> int:
        """What is left of a leader when another leads; NONE: nothing that anybody could notice.

        Its transactions are refused whatever the row says, so they are over at once. One that only looks from here on
        might as well be gone.
        """
        found = self._former.get(number)
        if found is None:
            going = number
            while going != NONE and not self.plain and self._asks(going) in {None, "transaction"}:
                going = NONE if self._asks(going) is None else self._refused(going)
            if going != NONE and self._is_at_its_last(going, Operation.STARTING):
                going = NONE
            found = self._former[number] = going
        return found

    def stores_only(self, number: int) -> str | None:
        """The key below which an archiving writes, when that is all it will do from here on."""
        if not self._is_at_its_last(number, Operation.ARCHIVING):
            return None
        return self._own(self.tables.leaders.values[number])

    def _asks(self, number: int) -> str | None:
        asks = self.tables.place(number).asks
        return None if asks is None else asks.verb

    def _refused(self, number: int) -> int:
        """The fence comes first: it must not even look at the row, which is not shown to it."""
        return self.tables.hear(self.tables.leaders.values[number], ("returns", View(None, 0)))

    def _is_at_its_last(self, number: int, operation: Operation) -> bool:
        return self._operation(number) is operation and self._asks(number) in self._last_asks.get(operation, ())

    def _operation(self, number: int) -> Operation | None:
        order = self.tables.leaders.values[number].order
        return None if order == NONE else self.tables.orders.values[order].operation

    def _own(self, leader: Leader) -> str:
        order = self.tables.orders.values[leader.order]
        return f"{order.id}/{order.op_id}/{leader.epoch}/"

    # --- looks that nobody can disturb

    def is_undisturbed(self, number: int, stale: int) -> bool:
        """Does it look at something that a former leader, whatever it does from here on, does not change?"""
        asks = self.tables.place(number).asks
        if asks is None or asks.verb not in LOOKS_AT or self.plain:
            return False
        if stale == NONE:
            return True
        key = (number, stale)
        found = self._undisturbed.get(key)
        if found is None:
            found = self._undisturbed[key] = self._are_apart(asks, stale)
        return found

    def _are_apart(self, asks: Ask, stale: int) -> bool:
        operation = self._operation(stale)
        assert operation
        touched = {"archives"} if self.stores_only(stale) else self._touches[operation]
        if not touched & LOOKS_AT[asks.verb]:
            return True
        if "archives" not in LOOKS_AT[asks.verb] or self._touches[operation] != TOUCHES[Operation.ARCHIVING]:
            return False
        looked_at, own = _below(asks), self._own(self.tables.leaders.values[stale])
        return not looked_at.startswith(own) and not own.startswith(looked_at)

    def look_of_its_own(self, row: int, there: int, stale: int) -> int:
        """A former leader that stores an archive, after it looked at what only it writes. NONE: it does not.

        When that look fails it ends, which is as if it never went on.
        """
        own, asks = self.stores_only(stale), self.tables.place(stale).asks
        if own is None or asks is None or asks.verb not in LOOKS_AT or asks.verb == "pack":
            return NONE
        if not _below(asks).startswith(own):
            return NONE
        normal, wrong = self.step(row, there, stale, 0, None)
        ends = all(step.world == there and self.former(step.leader) == NONE for step in wrong)
        return normal.leader if ends else NONE

    # --- premises

    def _require_last(self, before: Place, number: int) -> None:
        """From its last asks on, an attempt does nothing else; an archiving writes only below a key of its own."""
        operation, asks = self._operation(number), self.tables.place(number).asks
        if operation is None or before.asks is None or asks is None:
            return
        holds, last = True, self._last_asks.get(operation, frozenset())
        if before.asks.verb in last and asks.verb == "transaction":
            holds = self._asks(self._refused(number)) is None
        elif before.asks.verb in last:
            holds = asks.verb in last
        if operation is Operation.ARCHIVING and asks.verb in WRITES and last:
            holds = holds and asks.args[0].startswith(self._own(self.tables.leaders.values[number]))
        if not holds:
            raise PremiseError(operation)

    def _require_untouched(self, operation: Operation | None, before: World, after: World) -> None:
        changed = {name for name, a, b in zip(World._fields, before, after, strict=True) if a != b}
        if operation and not changed <= self._touches[operation]:
            raise PremiseError(operation)

    # --- ticks

    def tick(self, row: int, there: int, number: int, fresh: str, torn: str = "") -> Step:
        """A whole tick at once. When nobody else acts, nothing comes between that its write would not notice.

        `torn` is a look of it whose answer cannot be read.
        """
        key = (row, there, number, fresh, torn)
        found = self._ticks.get(key)
        if found is None:
            leader = self.tables.leaders.values[number]
            place = self._run_tick(row, there, leader, fresh, torn)
            doomed = self._run_tick(row, there, leader, fresh, torn, changed=True)
            if doomed.committed or doomed.spawned:
                raise BrokenError("a tick acts on a row that changed since it looked")
            label = f"tick, and what {torn} answers cannot be read" if torn else "tick"
            found = self._ticks[key] = self._arrived(label, place, row, there, leader)
        return found

    def _run_tick(self, row: int, there: int, leader: Leader, fresh: str, torn: str, *, changed: bool = False) -> Place:
        the_row, the_world = self.tables.rows.values[row], self.tables.worlds.values[there]

        def respond(asks: Ask) -> Answer:
            if asks.verb in QUESTIONS:
                return "returns", View(the_row, leader.epoch, fresh, changed=changed and asks.verb == "transaction")
            if asks.verb == torn:
                return "returns", world.TORN
            return world.perform(the_world, asks.verb, asks.args)[0]

        return machine.run_tick(leader.epoch, respond)

    def look(self, row: int, there: int, number: int, fresh: str) -> Steps:
        """A tick's next look at the machine, and what it then asks of the database."""
        leader = self.tables.leaders.values[number]
        if leader.heard == NONE:
            number = self.tables.leader(leader._replace(heard=self.tables.nothing))
        steps = self.step(row, there, number, leader.epoch, None)
        while (going := steps[0].leader) != number and self._ticks_on(going) and self._asks(going) in QUESTIONS:
            number = going
            steps = self.step(steps[0].row, there, number, leader.epoch, fresh)
        return steps

    def _ticks_on(self, number: int) -> bool:
        leader = self.tables.leaders.values[number]
        return leader.heard != NONE and leader.order == NONE

    # --- steps

    def step(self, row: int, there: int, number: int, fence: int, extra: Any) -> Steps:
        """As it should go, and every way in which it goes wrong."""
        key = (number, row, there, fence, extra)
        found = self._steps.get(key)
        if found is None:
            place = self.tables.place(number)
            assert place.asks is not None
            made = self._question if place.asks.verb in QUESTIONS else self._deed
            found = self._steps[key] = made(place, number, row, there, fence, extra)
        return found

    def _hears(self, label: str, answer: Answer, number: int, row: int, there: int) -> Step:
        leader = self.tables.leaders.values[number]
        going = self.tables.hear(leader, answer)
        self._require_last(self.tables.place(number), going)
        return self._arrived(label, self.tables.place(going), row, there, leader, going)

    def _arrived(self, label: str, place: Place, row: int, there: int, leader: Leader, going: int = NONE) -> Step:
        """Still at it, at the work it began, or at rest."""
        begun = f": {place.spawned.operation} {place.spawned.op_id}" if place.spawned else ""
        row = self.tables.rows.number(place.committed) if place.committed else row
        if place.asks is None and place.spawned:
            order = self.tables.orders.number(place.spawned)
            going = self.tables.leader(Leader(leader.epoch, order, self.tables.nothing))
        elif place.asks is None:
            going = self.idle(leader.epoch)
        return Step(f"leader: {label}{begun}", row, there, going)

    def _question(self, place: Place, number: int, row: int, there: int, fence: int, extra: Any) -> Steps:
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

    def _deed(self, place: Place, number: int, row: int, there: int, _fence: int, _extra: Any) -> Steps:
        """To the runtime or the object store."""
        assert place.asks is not None
        asks, the_world = place.asks, self.tables.worlds.values[there]
        args = asks.args
        answer, after = world.perform(the_world, asks.verb, args)
        operation = self._operation(number)
        self._require_untouched(operation, the_world, after)
        refused = " is refused" if answer[0] == "raises" else ""
        normal = self._hears(f"{asks}{refused}", answer, number, row, self.tables.worlds.number(after))
        if operation is None:
            return normal, []  # a look that fails is a tick that did not happen
        wrong = []
        for how, (said, then) in world.faults(the_world, asks.verb, args):
            if place.bounded or not how.startswith("hangs"):
                wrong.append(self._hears(f"{asks} {how}", said, number, row, self.tables.worlds.number(then)))
        return normal, wrong


def _below(asks: Ask) -> str:
    """Where a look at the object store looks."""
    return f"{asks.args[0]}/" if asks.verb == "list" else str(asks.args[0])
