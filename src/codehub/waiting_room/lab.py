"""What admission asks the waiting room: are places promised, do people wait, has this owner a reservation?

Given to `workspaces.service` by `wiring`. Asked under admission's lock, answered from PostgreSQL alone: whether live
people wait is read from the row of `lab`, where join and pump write it. A word of more than ten seconds ago counts no
more: Redis is away then, and starting goes on without the line.
"""

from codehub.clock import Clock
from codehub.db import Connection
from codehub.waiting_room import rules, store, tokens
from codehub.waiting_room.model import LAB, Place
from codehub.waiting_room.store import sql
from codehub.waiting_room.tokens import Tokens
from codehub.workspaces.admission import LineState, Reservation
from codehub.workspaces.errors import ReservationExpiredError


class Lab:
    def __init__(self, clock: Clock, tokens_: Tokens) -> None:
        self._clock = clock
        self._tokens = tokens_

    async def state(self, c: Connection, owner: str) -> LineState:
        now = self._clock.now()
        found = await c.fetchrow(sql.lab_state, owner, now)
        assert found  # noqa: S101 (a migration made the event)
        mine = Reservation(LAB, found["pid"], found["seq"], lifts_limit=True) if found["pid"] else None
        waiting = rules.waiters(found["has_live_waiters"], found["waiters_seen_at"], now)
        return LineState(found["promised"] - (mine is not None), waiting, mine)

    async def named(self, c: Connection, owner: str, token: str) -> Reservation:
        found = await self._place(c, owner, token)
        if not rules.is_redeemable(found, found.seq, self._clock.now()):
            raise _over()
        return _reservation(found)

    async def _place(self, c: Connection, owner: str, token: str) -> Place:
        """The place that a token of this person was given for, whatever has become of it."""
        read = self._tokens.read_reservation(token)
        if read is None or read.person != await c.fetchval(sql.account, owner):
            raise _over()
        event = await store.find_event(c, read.event)
        found = await store.find_place(c, read.event, tokens.pid(event.secret, read.person)) if event else None
        if found is None or found.seq != read.seq:
            raise _over()
        return found

    async def redeem(self, c: Connection, reservation: Reservation, workspace_id: str) -> None:
        """The workspace holds the place now. In `lab` it is counted by itself, and the place is over."""
        now = self._clock.now()
        event = await store.lock_event(c, reservation.event_id)
        found = await store.find_place(c, reservation.event_id, reservation.pid)
        if event is None or found is None or not rules.is_redeemable(found, reservation.seq, now):
            raise _over()
        held = rules.redeemed(found, now, event.place_lease_seconds, workspace_id, None)
        await store.save(c, rules.released(found, now) if event.id == LAB else held)

    async def check_for_run(self, c: Connection, owner: str, token: str) -> None:
        """Before a session is started with it: is it good, or does a run hold the place by the same token?"""
        found = await self._place(c, owner, token)
        if found.run_id is None and not rules.is_redeemable(found, found.seq, self._clock.now()):
            raise _over()

    async def hold_for_run(self, c: Connection, owner: str, token: str, run_id: str) -> None:
        """The run holds the place until it ends. In `lab`, a workspace is what places are for: it is kept for one."""
        now = self._clock.now()
        named = await self._place(c, owner, token)
        event = await store.lock_event(c, named.event_id)
        found = await self._place(c, owner, token)
        if found.run_id == run_id or found.event_id == LAB:
            return
        if event is None or not rules.is_redeemable(found, found.seq, now):
            raise _over()
        await store.save(c, rules.redeemed(found, now, event.place_lease_seconds, None, run_id))


def _reservation(place: Place) -> Reservation:
    return Reservation(place.event_id, place.pid, place.seq, lifts_limit=place.event_id == LAB)


def _over() -> ReservationExpiredError:
    return ReservationExpiredError("this place is over, used, or another person's: join the line again")
