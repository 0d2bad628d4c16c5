"""A leader as a value: what it was answered so far. The product's code is run again to learn what it asks next.

A coroutine cannot be copied, but it does the same again when it is answered the same. So a leader's place is the list
of answers it got, and its next question is found by feeding these to a new coroutine, once for each list.
"""

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from codehub.archives.model import ArchiveNotFoundError, ObjectStoreError
from codehub.archives.objects import AlreadyStoredError
from codehub.coordinator.leader import Lease
from codehub.errors import CodeHubError, UnavailableError
from codehub.reconciler.controller import Controller
from codehub.reconciler.homes import Homes
from codehub.reconciler.operations import Operations
from codehub.runtimes.base import RuntimeFailureError, StartFailedError
from codehub.settings import CoordinatorConfig, ShareConfig
from codehub.workspaces.model import Operation, Workspace
from model import doubles, world
from model.asks import Ask, BrokenError, ExpiredError
from model.database import Database, View
from model.world import ID

# Two faults are enough to give up: one attempt and one more.
CONFIG = CoordinatorConfig(max_retry=1, max_concurrent_starts=1)
ERRORS: dict[str, type[Exception]] = {
    world.FAILED: RuntimeFailureError,
    world.START_FAILED: StartFailedError,
    world.EXISTS: AlreadyStoredError,
    world.MISSING: ArchiveNotFoundError,
    world.AWAY: ObjectStoreError,
    "no database": UnavailableError,
}
Answer = tuple[str, Any]
Respond = Callable[[Ask], Answer | None]


class Order(NamedTuple):
    """An attempt at an operation, as the controller began it: of the row only what an attempt may use."""

    id: str
    owner: str
    template: str
    operation: Operation
    op_id: str | None
    archive_key: str | None
    volume_generation: str | None
    volume_parked: bool
    purge: bool

    @classmethod
    def of(cls, w: Workspace) -> "Order":
        return cls(**{name: getattr(w, name) for name in cls._fields})


class Ordered:
    """The row that an attempt was begun with. What is not in the order may not be used by it."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in Order._fields:
            raise BrokenError(f"an attempt uses {name} of a row that is not the newest")
        return getattr(self._order, name)


@dataclass(frozen=True)
class Place:
    """Where a leader is, after all its answers."""

    asks: Ask | None  # None: it is done
    committed: Workspace | None = None  # the row that its last answer led to
    spawned: Order | None = None
    bounded: bool = False  # does a time-out end it when it hangs?


def find_place(epoch: int, order: Order | None, answers: list[Answer]) -> Place:
    """Run the product's code with these answers: a tick, or the attempt that was ordered."""
    remaining = iter(answers)
    return _run(epoch, order, lambda _asks: next(remaining, None))


def run_tick(epoch: int, respond: Respond) -> Place:
    """A whole tick at once."""
    return _run(epoch, None, respond)


def _run(epoch: int, order: Order | None, respond: Respond) -> Place:
    run = _Run(epoch, order)
    try:
        return run.until_nobody_answers(respond)
    finally:
        run.close()


class _Run:
    def __init__(self, epoch: int, order: Order | None) -> None:
        doubles.Timeouts.inside = 0
        self._order = order
        self._database = Database()
        lease = Lease(self._database, "leader", epoch)  # type: ignore[arg-type]
        runtime, clock, templates = doubles.Runtime(), doubles.Clock(), doubles.Templates()
        shares = ShareConfig(disk_reserve_mb=0)  # its disks have no size
        archives = Homes(doubles.Objects(), templates, clock, self._database, shares)  # type: ignore[arg-type]
        self._operations = Operations(lease, runtime, archives, templates, clock, CONFIG)  # type: ignore[arg-type]
        self._controller = Controller(
            lease,
            runtime,  # type: ignore[arg-type]
            self._operations,
            clock,
            CONFIG,
            lambda: None,
            doubles.IdleRecheck(),
        )
        self._task: Any = None
        self._looked: View | None = None
        if order is None:
            self._coroutine: Any = self._controller.tick()
        else:
            work = self._controller._execute(Ordered(order))  # type: ignore[arg-type]
            self._controller._under_way.begin(ID, order.operation, work)
            self._task = self._controller._under_way.tasks()[ID]
            self._coroutine = self._task.work

    def until_nobody_answers(self, respond: Respond) -> Place:
        asks = self._feed(("returns", None))
        while asks is not None and (answer := respond(asks)) is not None:
            self._database.committed = None
            asks = self._feed(answer)
        return Place(
            asks,
            self._database.committed,
            self._spawned(asks),
            doubles.Timeouts.inside > 0,
        )

    def close(self) -> None:
        Ask.closing = True
        try:
            for task in self._controller._under_way.tasks().values():
                task.work.close()  # type: ignore[attr-defined]
            with contextlib.suppress(CodeHubError):
                self._coroutine.close()
        finally:
            Ask.closing = False

    def _feed(self, answer: Answer) -> Ask | None:
        """Answer, and go on to the next question that somebody else has a say in."""
        asks = self._send(answer)
        while asks is not None:
            self._database.refuse_inside(asks.verb)
            if asks.verb == "sleep":
                asks = self._send(("returns", None))
            elif asks.verb == "read" and self._order is not None:  # of anything but the row, which is not shown to it
                asks = self._send(("returns", View(None, 0)))
            elif asks.verb == "read" and self._looked is not None:  # only for how long to pause
                asks = self._send(("returns", self._looked))
            else:
                return asks
        return None

    def _send(self, answer: Answer) -> Ask | None:
        kind, value = answer
        if isinstance(value, View):
            doubles.IDS.fresh, self._looked = value.fresh, value
        try:
            if kind == "raises":
                return self._coroutine.throw(ERRORS[value]("so the model says"))  # type: ignore[no-any-return]
            if kind == "expires":
                return self._coroutine.throw(ExpiredError())  # type: ignore[no-any-return]
            return self._coroutine.send(value)  # type: ignore[no-any-return]
        except StopIteration:
            self._ended(None)
        except CodeHubError as e:  # the lease is lost, or the database away: the next tick looks again
            self._ended(e)
        return None

    def _ended(self, error: BaseException | None) -> None:
        if self._task is not None:
            self._task.end(error)
            if self._controller._under_way:
                raise BrokenError("a task that is over is still counted")

    def _spawned(self, asks: Ask | None) -> Order | None:
        tasks = self._controller._under_way.tasks()
        if asks is not None or self._order is not None or ID not in tasks:
            return None
        task: Any = tasks[ID]
        begun = inspect.getcoroutinelocals(task.work)
        return Order.of(begun["w"])
