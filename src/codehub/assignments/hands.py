"""The use cases about raised hands, each one transaction: a learner asks for help, and a teacher answers.

Called by the API and by pages. What was asked and answered is kept. With a run that is given up a hand ends, by a
trigger.
"""

from datetime import datetime

from codehub import ids
from codehub.assignments import progress_store as store
from codehub.assignments.errors import HandEndedError, HandNotFoundError, NoTeacherError
from codehub.assignments.model import Hand
from codehub.assignments.progress_store import sql
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.classes import rules as class_rules
from codehub.classes.service import Classes
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.events import model as events
from codehub.events import outbox
from codehub.events.model import Event
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions.runs import Runs


class Hands:
    def __init__(self, database: Database, clock: Clock, classes: Classes, runs: Runs) -> None:
        self._database = database
        self._clock = clock
        self._classes = classes
        self._runs = runs

    # --- the learner

    async def raise_hand(
        self, caller: Principal, run_id: str, message: str, fence: int | None = None
    ) -> tuple[Hand, bool]:
        """One at a time for a run: the open one, and False, if there is one."""
        async with self._database.transaction() as c:
            run = await self._runs.writable(c, caller, run_id, Action.RUN_HELP, fence)
            if not await c.fetchval(sql.is_taught, run.owner_id):
                raise NoTeacherError("you are in no class that has a teacher: nobody would see it")
            now, id_ = self._clock.now(), ids.new()
            row = (id_, run.id, run.owner_id, run.step_index, message.strip(), now)
            made = await c.fetchval(sql.raise_hand, *row)
            hand = await store.last_hand(c, run.id)
            assert hand  # noqa: S101 (there is one)
            if made:
                await audit.record(c, now, caller.origin, Code.HAND_RAISE, hand.id, run=run.id)
                await self._announce(c, hand, now)
            return hand, bool(made)

    async def lower(self, caller: Principal, run_id: str) -> None:
        """Twice is once."""
        async with self._database.transaction() as c:
            run = await self._runs.owned(c, caller, run_id, Action.RUN_HELP)
            hand = await store.last_hand(c, run.id)
            now = self._clock.now()
            if hand and await c.fetchval(sql.end_hand, hand.id, now, None, None):
                await audit.record(c, now, caller.origin, Code.HAND_LOWER, hand.id, run=run.id)
                await self._announce(c, hand, now)

    async def last(self, caller: Principal, run_id: str) -> Hand | None:
        """Of a run: the newest, also one that was answered."""
        async with self._database.connection() as c:
            run = await self._runs.owned(c, caller, run_id, Action.RUN_SEE)
            return await store.last_hand(c, run.id)

    async def could_ask(self, caller: Principal) -> bool:
        """Is there a teacher who would see it?"""
        async with self._database.connection() as c:
            return bool(await c.fetchval(sql.is_taught, caller.id))

    # --- the teacher

    async def raised(self, caller: Principal, class_id: str, *, after: store.After, limit: int) -> list[Hand]:
        """Open ones of the class's learners: who asked first is first."""
        async with self._database.connection() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_PROGRESS)
            return await store.hands(c, class_id, after, limit)

    async def answer(self, caller: Principal, class_id: str, id_: str, message: str = "") -> Hand:
        """With words, or without any: the teacher came in person."""
        async with self._database.transaction() as c:
            class_rules.check_open(await self._classes.authorized(c, caller, class_id, Action.CLASS_ANSWER))
            hand = await store.hand(c, id_) if ids.is_label(id_) else None
            if hand is None or not await c.fetchval(sql.is_in_class, class_id, hand.owner_id):
                raise HandNotFoundError(f"no learner of this class asks for help with {id_[:63]}")
            now = self._clock.now()
            if not await c.fetchval(sql.end_hand, id_, now, caller.name, message.strip()):
                raise HandEndedError("another teacher has answered it, or the learner took it back")
            await audit.record(c, now, caller.origin, Code.HAND_ANSWER, id_, user=hand.owner)
            await self._announce(c, hand, now)
            answered = await store.hand(c, id_)
            assert answered  # noqa: S101 (just answered)
            return answered

    async def _announce(self, c: Connection, hand: Hand, now: datetime) -> None:
        """To the learner, and to the teachers of their classes."""
        about = {"hand_id": hand.id, "run_id": hand.run_id, "session_id": hand.session_id, "plan_id": hand.plan_id}
        told = [Event(events.user(hand.owner_id), "hand_updated", hand.id, about)]
        for class_id in await store.classes_of(c, hand.owner_id):
            data = {**about, "class_id": class_id, "learner": hand.owner}
            told.append(Event(f"class:{class_id}", "hand_updated", hand.id, data))
        await outbox.write(c, now, told)
