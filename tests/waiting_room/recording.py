"""Records what happens in a waiting room on real servers as a `History`: calls from outside, commits by triggers.

Used by `campaign`, and by the soak over several processes.
"""

import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import asyncpg

from codehub.db import Database
from codehub.errors import CodeHubError, UnavailableError
from codehub.waiting_room.status import Status
from codehub.waiting_room.tokens import Tokens
from tests.waiting_room.histories import (
    NEVER,
    Answer,
    Change,
    History,
    How,
    Kind,
    Loss,
    Op,
    Opening,
    Setting,
    State,
)

# A commit is written down where it happens. Of one event, the order of the numbers is that of the commits, as every
# change of a place is made under the event's lock.
TRIGGERS = """
CREATE TABLE recorded_places (
    n bigserial PRIMARY KEY, moment float8 NOT NULL, event_id text, pid text, before text, after text, seq bigint,
    gone_seq bigint, offer_id bigint, at timestamptz
);
CREATE TABLE recorded_events (
    n bigserial PRIMARY KEY, moment float8 NOT NULL, event_id text, capacity int, paused boolean, epoch bigint,
    opens_at timestamptz, at timestamptz
);
CREATE FUNCTION record_place() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR (OLD.state, OLD.seq, OLD.gone_seq) IS DISTINCT FROM (NEW.state, NEW.seq, NEW.gone_seq) THEN
        INSERT INTO recorded_places (moment, event_id, pid, before, after, seq, gone_seq, offer_id, at)
        VALUES (extract(epoch FROM clock_timestamp()), NEW.event_id, NEW.pid,
                CASE TG_OP WHEN 'INSERT' THEN 'none' ELSE OLD.state END, NEW.state, NEW.seq, NEW.gone_seq,
                coalesce(NEW.offer_id, 0), NEW.changed_at);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION record_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR (OLD.capacity, OLD.paused, OLD.epoch, OLD.opens_at)
       IS DISTINCT FROM (NEW.capacity, NEW.paused, NEW.epoch, NEW.opens_at) THEN
        INSERT INTO recorded_events (moment, event_id, capacity, paused, epoch, opens_at, at)
        VALUES (extract(epoch FROM clock_timestamp()), NEW.id, NEW.capacity, NEW.paused, NEW.epoch, NEW.opens_at,
                CASE WHEN TG_OP = 'UPDATE' AND OLD.epoch <> NEW.epoch THEN NEW.opened_at ELSE NEW.updated_at END);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER recorded AFTER INSERT OR UPDATE ON waiting_places FOR EACH ROW EXECUTE FUNCTION record_place();
CREATE TRIGGER recorded AFTER INSERT OR UPDATE ON waiting_events FOR EACH ROW EXECUTE FUNCTION record_event();
"""
CODES = {answer.value: answer for answer in Answer}


async def install(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute(TRIGGERS)
    await connection.close()


class Recorder:
    """Of one event."""

    def __init__(self, event: str, tokens: Tokens, now: Callable[[], float]) -> None:
        self.event = event
        self.history = History()
        self._tokens = tokens
        self._now = now
        self.people: dict[str, str] = {}  # pid → name

    def seq(self, token: str) -> int:
        read = self._tokens.read_waiting(token)
        assert read
        return read.seq

    def know(self, token: str) -> int:
        """Whose token it is goes with the rows; its sequence."""
        read = self._tokens.read_waiting(token)
        assert read
        self.people[read.pid] = read.name
        return read.seq

    async def call(self, kind: Kind, person: str, token: str, work: Awaitable[Any]) -> Any:
        """Await it, and write down what was answered; None for a refusal."""
        begin, at = time.time(), self._now()
        seq = self.seq(token) if token else 0
        answer, shown = Answer.LOST, {}
        result: Any = None
        try:
            result = await work
            answer, shown = Answer.OK, self._shown(kind, seq, result)
        except UnavailableError:
            answer = Answer.AWAY
        except CodeHubError as e:
            answer = CODES[e.code]
        finally:
            end = NEVER if answer is Answer.LOST else time.time()
            values = {"seq": seq, **shown}
            self.history.ops.append(Op(kind, begin, end, at, self._now(), person, answer=answer, **values))
        return result

    def _shown(self, kind: Kind, seq: int, result: Any) -> dict[str, Any]:
        if kind is Kind.ENTER:
            return {"reservation": result.reservation_token}
        if kind not in {Kind.JOIN, Kind.POLL}:
            return {}
        status: Status = result.status if kind is Kind.JOIN else result
        counts = self.know(status.token)
        deadline = status.offer_expires_at
        return {
            "seq": counts if kind is Kind.JOIN else seq,
            "stands": 0 if kind is Kind.JOIN or counts == seq else counts,
            "new": kind is Kind.JOIN and result.new,
            "position": status.position,
            "ready": status.ready_for_entry,
            "passed": status.passed,
            "deadline": deadline.timestamp() if deadline else None,
        }

    def lost(self, how: How, begin: float, at: float, *, idle: bool = False) -> None:
        self.history.losses.append(Loss(how, begin, time.time(), at, self._now(), idle))

    def opened(self) -> None:
        self.history.openings.append(Opening(time.time(), self._now()))

    async def gather(self, database: Database) -> History:
        """With what was committed."""
        async with database.connection() as c:
            places = await c.fetch("SELECT * FROM recorded_places WHERE event_id = $1 ORDER BY n", self.event)
            events = await c.fetch("SELECT * FROM recorded_events WHERE event_id = $1 ORDER BY n", self.event)
        self.history.changes = [
            Change(
                moment=row["moment"],
                at=row["at"].timestamp(),
                person=self.people.get(row["pid"], str(row["pid"])),
                before=State(row["before"]),
                after=State(row["after"]),
                seq=row["seq"],
                gone_seq=row["gone_seq"],
                offer_id=row["offer_id"],
            )
            for row in places
        ]
        self.history.settings = [self._setting(row) for row in events]
        return self.history

    def _setting(self, row: Any) -> Setting:
        opens_at: datetime | None = row["opens_at"]
        is_open = opens_at is None or opens_at <= row["at"]
        return Setting(row["moment"], row["at"].timestamp(), row["capacity"], row["paused"], row["epoch"], is_open)
