"""Twelve people in three processes hammer three places of `lab`: never over the limit, and no waiting person overtaken.

The database itself counts at every commit; who waited when is read from what the processes were answered.
"""

import asyncio
import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field

from codehub.db import Database
from codehub.waiting_room import tokens
from tests.waiting_room.hall import LAB, Hall
from tests.waiting_room.lab_process import LIMITS, STARTS

PICK = 2.0  # seconds that a pick may be old
# Whoever commits one too many is refused, and the test fails with it. And who was given what, when, is written down.
WATCH = """
CREATE TABLE granted (at timestamptz DEFAULT clock_timestamp(), pid text, before text, after text, seq bigint);
CREATE TABLE too_many (at timestamptz DEFAULT clock_timestamp(), running bigint, promised bigint);
CREATE FUNCTION count_all() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE running bigint; promised bigint;
BEGIN
    SELECT count(*) INTO running FROM workspaces WHERE desired_state = 'RUNNING';
    SELECT count(*) INTO promised FROM waiting_places WHERE event_id = 'lab' AND state IN ('offered', 'reserved');
    IF running + promised > 3 THEN INSERT INTO too_many (running, promised) VALUES (running, promised); END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION write_down() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR OLD.state <> NEW.state THEN
        INSERT INTO granted (pid, before, after, seq)
        VALUES (NEW.pid, CASE WHEN TG_OP = 'INSERT' THEN 'none' ELSE OLD.state END, NEW.state, NEW.seq);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER counts_w AFTER INSERT OR UPDATE ON workspaces
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_all();
CREATE CONSTRAINT TRIGGER counts_p AFTER INSERT OR UPDATE ON waiting_places
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_all();
CREATE TRIGGER writes AFTER INSERT OR UPDATE ON waiting_places FOR EACH ROW EXECUTE FUNCTION write_down();
"""


@dataclass
class Wait:
    """A person surely was in line from here to there, and had no offer before `offered`."""

    person: str
    seq: int
    since: float
    until: float = float("inf")
    offered: float = float("inf")


@dataclass
class Seen:
    waits: list[Wait] = field(default_factory=list)
    free_starts: list[tuple[float, float, str]] = field(default_factory=list)
    started: int = 0


def read(lines: list[list[object]]) -> Seen:
    seen, waiting = Seen(), dict[str, Wait]()
    for begin, end, who, what, answer in sorted(lines, key=lambda line: str(line[2:3]) + f"{line[1]:030.6f}"):
        assert isinstance(begin, float)
        assert isinstance(end, float)
        name = str(who)
        if what == "seq":
            waiting[name] = Wait(name, int(str(answer)), end)
            seen.waits.append(waiting[name])
        elif what in {"enter", "leave"} and name in waiting:
            waiting[name].until = min(waiting[name].until, begin)
        elif what == "start" and answer == "ok":
            seen.free_starts.append((begin, end, name))
        seen.started += str(what).startswith("start") and answer == "ok"
    return seen


async def test_twelve_people_in_three_processes_never_pass_the_limit_and_none_is_overtaken(
    hall: Hall, database: Database, database_url: str, redis_url: str
) -> None:
    names = [f"p{n}" for n in range(12)]
    for name in names:
        await hall.person(name)
    async with database.connection() as c:
        await c.execute(WATCH)
    python = [sys.executable, "-m", "tests.waiting_room.lab_process", database_url, redis_url]
    processes = [
        await asyncio.create_subprocess_exec(*python, str(n), *names[4 * n : 4 * n + 4], stdout=asyncio.subprocess.PIPE)
        for n in range(3)
    ]
    answers = [await process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    seen = read([json.loads(line) for said, _ in answers for line in said.splitlines()])
    async with database.connection() as c:
        assert await c.fetch("SELECT * FROM too_many") == []
        granted = await c.fetch("SELECT * FROM granted WHERE before = 'none' AND after = 'offered' ORDER BY at")
    pids = {hall_pid: name for name in names for hall_pid in [await pid_of(hall, name)]}
    offers = defaultdict(list)
    for row in granted:
        offers[pids[row["pid"]], row["seq"]].append(row["at"].timestamp())
    for wait in seen.waits:
        wait.offered = min(offers.get((wait.person, wait.seq), [float("inf")]))
    assert LIMITS.max_running_global == 3
    assert seen.started >= 3 * STARTS
    assert [overtaken(seen, *start) for start in seen.free_starts if overtaken(seen, *start)] == []
    for row in granted:
        at, seq = row["at"].timestamp(), row["seq"]
        ahead = [w for w in seen.waits if w.seq < seq and w.since < at - PICK and min(w.until, w.offered) > at]
        assert ahead == [], (pids[row["pid"]], seq)


def overtaken(seen: Seen, begin: float, end: float, who: str) -> list[Wait]:
    """Who waited all the time while this start was decided, and had no place promised."""
    return [w for w in seen.waits if w.person != who and w.since < begin and min(w.until, w.offered) > end]


async def pid_of(hall: Hall, name: str) -> str:
    return tokens.pid((await hall.find(LAB)).secret, (await hall.person(name)).id)
