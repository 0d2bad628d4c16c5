"""Whatever requests, times, devices and broken connections come together: the product does what the model does.

Hypothesis makes up the runs. Each has sessions of its own in one database, so that nothing has to be emptied, and looks
only at what is its own, so that the last run costs what the first did. After every request the database is compared
with the model; where the connection broke, all of the request is there, or nothing; of two requests at once, one came
first.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from codehub.command import operator
from codehub.errors import CodeHubError, UnavailableError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.sessions import blueprint, idempotency
from codehub.sessions.service import MOST_SESSIONS, NewPlan, NewSession
from codehub.sessions.sweeper import Sweeper
from codehub.web.services import Services
from codehub.wiring.api import open_services
from tests.sessions import run_model as model
from tests.sessions.cutting import CuttingRelay, cutting
from tests.sessions.learning import CHECK, LEARN
from tests.sessions.run_model import RIGHT, Answer, Close, Complete, Lesson, Request, Start, World, Write
from tests.sessions.test_sweeper import House
from tests.virtual_time import ManualClock

T = TypeVar("T")
PEOPLE = ("mina", "jun")
KEYS = ("k", "l")
# Each run's own: two of one learner, so that a key can be used for another; one of another learner.
SESSIONS: dict[str, tuple[str, dict[str, Any]]] = {"a": ("mina", CHECK), "b": ("mina", LEARN), "c": ("jun", LEARN)}
LOOK = """
SELECT
    (SELECT json_agg(json_build_array(s.id, s.status, (
        SELECT json_agg(json_build_array(r.id, r.status, r.step_index, r.fence, r.last_activity_at, r.end_reason,
            r.predecessor_id,
            (WITH RECURSIVE chain AS (
                SELECT r.id, r.inherits_from, r.first_step, r.step_index AS until
                UNION ALL SELECT o.id, o.inherits_from, o.first_step, c.first_step
                FROM chain c JOIN session_runs o ON o.id = c.inherits_from)
             SELECT json_agg(k.state ORDER BY k.step_index) FROM chain c JOIN run_snapshots k
             ON k.run_id = c.id AND k.step_index >= c.first_step AND k.step_index < c.until),
            (SELECT json_agg(json_build_array(t.step_index, t.tries) ORDER BY t.step_index) FROM run_tries t
             WHERE t.run_id = r.id)) ORDER BY r.started_at)
        FROM session_runs r WHERE r.session_id = s.id))) FROM sessions s WHERE s.id = ANY ($1)) AS sessions,
    (SELECT json_agg(json_build_array(principal, key, status, created_at)) FROM idempotency_keys
     WHERE principal = ANY ($6) AND key = ANY ($2) AND created_at >= $3) AS keys,
    (SELECT json_agg(session_id) FROM (
        SELECT data ->> 'session_id' AS session_id FROM events WHERE id > $4
        UNION ALL SELECT data ->> 'session_id' FROM deferred_events WHERE id > $5) AS told) AS events
"""

LAST_EVENTS = "SELECT (SELECT coalesce(max(id), 0) FROM events), (SELECT coalesce(max(id), 0) FROM deferred_events)"


@dataclass
class Stage:
    """What all runs share."""

    clock: ManualClock
    straight: Services
    broken: Services  # by way of the relay
    relay: CuttingRelay
    sweeper: Sweeper
    people: dict[str, Principal]
    loop: asyncio.AbstractEventLoop
    numbers: Iterator[int] = field(default_factory=itertools.count)
    _unused: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in SESSIONS})

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """In the loop, while Hypothesis waits in its thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def oldest_key(self) -> datetime:
        """When a key was used that is just about to be forgotten."""
        return self.clock.now() - timedelta(seconds=self.straight.settings.sessions.idempotency_key_seconds)

    async def take(self, name: str) -> str:
        """A session that no run of the machine had before."""
        if not self._unused[name]:
            owner, lesson = SESSIONS[name]
            new = [NewSession("One", date(2026, 3, 2), blueprint.parse(lesson))] * MOST_SESSIONS
            plan = await self.straight.sessions.create_plan(self.people[owner], NewPlan("Plan", new))
            self._unused[name] = [s.id for s in plan.sessions]
        return self._unused[name].pop()


@contextlib.asynccontextmanager
async def staged(straight: Services, clock: ManualClock) -> AsyncIterator[Stage]:
    made = {name: await straight.people.create_user(operator(), name, Role.LEARNER) for name in PEOPLE}
    people = {name: Principal(name, Role.LEARNER, ALL_SCOPES, person.id) for name, person in made.items()}
    storage = straight.settings.storage
    async with cutting(str(storage.database_url)) as (url, relay):
        by_relay = replace(straight.settings, storage=replace(storage, database_url=url, database_pool_size=1))
        async with open_services(by_relay, clock) as broken:
            sweeper = await House(straight.database, clock).sweeper()
            yield Stage(clock, straight, broken, relay, sweeper, people, asyncio.get_running_loop())


class Sending:
    """The requests of one run of the machine, by the names of the model."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.prefix = str(next(stage.numbers))
        self.ids: dict[str, str] = {}  # of sessions and runs, by name
        self.names: dict[str, str] = {}
        self.before = (0, 0)  # the last event of other runs: published, and not yet
        self._texts: dict[tuple[str, str], str] = {}  # what a key was answered, byte for byte

    async def begin(self) -> None:
        for name in SESSIONS:
            self._name(name, await self.stage.take(name))
        async with self.stage.straight.database.connection() as c:
            await idempotency.prune(c, self.stage.oldest_key(), 1000)  # as the coordinator does
            published, waiting = (await c.fetch(LAST_EVENTS))[0].values()
            self.before = (published, waiting)

    def _name(self, name: str, id_: str) -> None:
        self.ids[name], self.names[id_] = id_, name

    async def send(self, request: Request, side: Services) -> tuple[Request, Any]:
        try:
            return request, await self._send(request, side)
        except CodeHubError as e:
            return request, e

    def _send(self, request: Request, side: Services) -> Awaitable[Any]:
        caller = self.stage.people[request.caller]
        match request:
            case Start(_, session, key, resume):
                named, old = key and f"{self.prefix}-{key}", resume and self.ids.get(resume, "nothing")
                return side.runs.start(caller, self.ids[session], key=named, resume_from=old)
            case Complete(_, run, index, fence, state):
                return side.runs.complete_step(caller, self.ids.get(run, "nothing"), index, fence, state)
            case Write(_, run, fence, abandons=True):
                return side.runs.abandon(caller, self.ids.get(run, "nothing"), fence, None)
            case Write(_, run, fence):
                return side.runs.record_activity(caller, self.ids.get(run, "nothing"), fence)
            case Close(_, session, "SKIPPED"):
                return side.sessions.skip(caller, self.ids[session])
            case Close(_, session):
                return side.sessions.cancel(caller, self.ids[session])

    def told(self, request: Request, said: Any) -> Answer:
        """An answer in the model's words."""
        if isinstance(said, CodeHubError):
            return Answer(said.status, said.code)
        match request:
            case Start(caller, _, key):
                if key:
                    self._compare_text((caller, key), said)
                return Answer(said.status, run=self._run(json.loads(said.body)), replayed=said.replayed)
            case Close():
                return Answer(200)
        return Answer(200, run=self._run({**vars(said), "status": str(said.status)}))

    def _run(self, run: dict[str, Any]) -> tuple[Any, ...]:
        names = ("status", "step_index", "step", "fence", "snapshot")
        before = run["predecessor_id"] and self.names[run["predecessor_id"]]
        return (self.names[run["id"]], *(run[name] for name in names), before)

    def _compare_text(self, key: tuple[str, str], said: Any) -> None:
        """Where the first answer was lost, the second one is what the third is compared with."""
        if said.replayed:
            assert said.body == self._texts.setdefault(key, said.body)
        else:
            self._texts[key] = said.body

    def forget_text(self, request: Request) -> None:
        """Its answer was stored and lost: what the key was answered with before, days ago, is no longer its answer."""
        if isinstance(request, Start) and request.key:
            self._texts.pop((request.caller, request.key), None)

    async def look(self) -> Any:
        """What is in the database, in the model's words."""
        ids = [self.ids[name] for name in SESSIONS]
        keys = [f"{self.prefix}-{key}" for key in KEYS]
        people = {person.id: name for name, person in self.stage.people.items()}
        async with self.stage.straight.database.connection() as c:
            row = await c.fetchrow(LOOK, ids, keys, self.stage.oldest_key(), *self.before, [*people])
        assert row
        found = {id_: (status, runs or []) for id_, status, runs in row["sessions"]}
        for name in SESSIONS:
            for number, run in enumerate(found[self.ids[name]][1]):
                self._name(f"{name}.{number}", run[0])
        lessons = {
            name: (status, [self._seen(run) for run in runs])
            for name, (status, runs) in ((name, found[self.ids[name]]) for name in SESSIONS)
        }
        kept = {
            (people[who], key.partition("-")[2], status, datetime.fromisoformat(at))
            for who, key, status, at in row["keys"] or []
        }
        events = sum(id_ in ids for id_ in row["events"] or [])
        return lessons, kept, events

    def _seen(self, run: list[Any]) -> tuple[Any, ...]:
        id_, status, step, fence, active, reason, before, states, tries = run
        named = before and self.names[before]
        at = datetime.fromisoformat(active)
        return (self.names[id_], status, step, fence, at, reason, named, states or [], tries or [])


def shown(world: World, now: datetime) -> Any:
    """The model's world as `Sending.look` would see it."""
    lessons = {
        name: (
            lesson.status,
            [
                (
                    *(a.name, a.status, a.step, a.fence, a.active_at, a.reason, a.predecessor),
                    *([dict(s) for s in a.states], [list(t) for t in a.tries]),
                )
                for a in lesson.attempts
            ],
        )
        for name, lesson in world.lessons.items()
    }
    keys = {
        (who, key, kept.answer.status, kept.at) for (who, key), kept in world.keys.items() if now - kept.at <= model.DAY
    }
    return lessons, keys, world.events


device = st.integers(0, 1)
sessions = st.sampled_from(["a", "a", "a", "a", "a", "b", "c"])
callers = st.sampled_from([*[None] * 14, *PEOPLE])  # None: whose it is
states = st.sampled_from(
    [None, None, None, None, {}, {"n": 1}, {"answers": {"loop-count": "a"}}]
)  # None: what is right
DETAILS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "start": (
        st.sampled_from([None, None, *KEYS]),
        st.sampled_from([None, None, None, -1, -2, -3, "other", "nothing"]),
    ),
    "step": (st.sampled_from([0, 0, 0, 0, 0, -1, -1, 1]), states),
    "write": (st.sampled_from([False, True]),),
    "close": (st.sampled_from(["SKIPPED", "CANCELED"]),),
}
KINDS = (*["start"] * 10, *["step"] * 16, *["write"] * 5, "close")
requests = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), sessions, callers, *DETAILS[kind]))
TIMES = (timedelta(seconds=1), timedelta(hours=13), model.DAY, model.DAY, model.DAY + timedelta(microseconds=1))


class Machine(RuleBasedStateMachine):
    stage: Stage

    @initialize(key=st.sampled_from([None, "k"]))
    def begin(self, key: str | None) -> None:
        self.world = World({name: Lesson(owner, tuple(b["steps"])) for name, (owner, b) in SESSIONS.items()})
        self.sending = Sending(self.stage)
        self.pens: dict[tuple[int, str], tuple[str, int]] = {}  # what a device has of a session: a run and its fence
        self.stage.do(self.sending.begin())
        self._ask(0, Start("mina", "a", key))

    # --- what a device would send

    def _request(self, device: int, drawn: tuple[Any, ...]) -> Request:
        kind, session, caller, *rest = drawn
        lesson = self.world.lessons[session]
        caller = caller or lesson.owner
        if kind == "start":
            return Start(caller, session, rest[0], self._old(session, rest[1]))
        if kind == "close":
            return Close(caller, session, rest[0])
        run, fence = self.pens.get((device, session), (f"{session}.0", 1))
        if kind == "write":
            return Write(caller, run, fence, rest[0])
        found = self.world.find(run)
        attempt = found[2] if found else None
        index = max(0, (attempt.step if attempt else 0) + rest[0])
        if rest[1] is not None:
            return Complete(caller, run, index, fence, rest[1])
        # What is right at this place: the same again where it was saved, else what passes.
        saved = attempt.states[index] if attempt and index < len(attempt.states) else None
        is_check = index < len(lesson.steps) and lesson.steps[index] == "CHECK"
        return Complete(caller, run, index, fence, saved if saved is not None else RIGHT if is_check else {"n": index})

    def _old(self, session: str, chosen: Any) -> str | None:
        attempts = self.world.lessons[session].attempts
        if chosen == "other":
            other = "b.0" if session == "a" else "a.0"
            return other if self.world.find(other) else "nothing"
        if isinstance(chosen, int):
            return attempts[chosen].name if -chosen <= len(attempts) else None
        return chosen and str(chosen)

    def _remember(self, device: int, request: Request, answer: Answer) -> None:
        if isinstance(request, Start) and answer.run:
            self.pens[device, request.session] = (answer.run[0], answer.run[4])

    # --- what is done

    @rule(device=device, drawn=requests)
    def ask(self, device: int, drawn: tuple[Any, ...]) -> None:
        self._ask(device, self._request(device, drawn))

    def _ask(self, device: int, request: Request) -> None:
        expected, after = request.apply(self.world, self.stage.clock.now())
        _, said = self.stage.do(self.sending.send(request, self.stage.straight))
        self._compare(after)
        assert self.sending.told(request, said) == expected
        self._remember(device, request, expected)

    @rule(drawn=st.tuples(requests, requests))
    def ask_two_at_once(self, drawn: tuple[Any, Any]) -> None:
        """From both devices: the answers and the database are as if one had come after the other."""
        now, both = self.stage.clock.now(), [self._request(number, one) for number, one in enumerate(drawn)]
        answers = self.stage.do(self._at_once(both))
        seen = self.stage.do(self.sending.look())
        told = self._told(answers)
        for order in (both, both[::-1]):
            world, expected = self.world, {}
            for request in order:
                expected[id(request)], world = request.apply(world, now)
            if [expected[id(request)] for request in both] == told and seen == shown(world, now):
                break
        else:
            raise AssertionError((both, told, seen))
        self.world = world
        for number, (request, answer) in enumerate(zip(both, told, strict=True)):
            self._remember(number, request, answer)
        self._tick()

    def _told(self, answers: list[tuple[Request, Any]]) -> list[Answer]:
        """The first answer to a key before its replay, which would be compared with one from days ago otherwise."""
        in_turn = sorted(answers, key=lambda answer: getattr(answer[1], "replayed", False))
        told = {id(request): self.sending.told(request, said) for request, said in in_turn}
        return [told[id(request)] for request, _ in answers]

    async def _at_once(self, both: list[Request]) -> list[tuple[Request, Any]]:
        return await asyncio.gather(*(self.sending.send(request, self.stage.straight) for request in both))

    @rule(device=device, drawn=requests, point=st.integers(1, 6), answered=st.booleans())
    def ask_and_lose_the_connection(self, device: int, drawn: tuple[Any, ...], point: int, answered: bool) -> None:
        request = self._request(device, drawn)
        expected, after = request.apply(self.world, self.stage.clock.now())
        _, said = self.stage.do(self._cut(request, point, answered=answered))
        if not isinstance(said, UnavailableError):
            self._compare(after)
            assert self.sending.told(request, said) == expected
            self._remember(device, request, expected)
            return
        assert self.stage.relay.cut
        now, seen = self.stage.clock.now(), self.stage.do(self.sending.look())
        assert seen in (shown(self.world, now), shown(after, now))
        # A key whose answer was replayed, or a refusal: nothing was to be done, and it makes no difference.
        if seen == shown(after, now):
            if after.keys != self.world.keys:
                self.sending.forget_text(request)
            self.world = after
        self._tick()

    async def _cut(self, request: Request, point: int, *, answered: bool) -> tuple[Request, Any]:
        async with self.stage.broken.database.connection() as c:
            await c.fetchval("SELECT 1")  # whose connection is there before the count begins
        self.stage.relay.arm(point, answered=answered)
        try:
            return await self.sending.send(request, self.stage.broken)
        finally:
            self.stage.relay.disarm()

    @rule(by=st.sampled_from(TIMES), since=st.sampled_from(["activity", "key"]))
    def time_passes(self, by: timedelta, since: str) -> None:
        """By so much, or until it is exactly a day since the last activity, or since a key was used."""
        now = self.stage.clock.now()
        active = [a.active_at for lesson in self.world.lessons.values() if (a := lesson.running)]
        moments = active if since == "activity" else [kept.at for kept in self.world.keys.values()]
        ahead = [at + by for at in moments if at + by > now] if by >= model.DAY else []
        until = max(ahead, default=now + by)
        self.stage.do(self.stage.clock.jump((until - now).total_seconds()))

    @rule()
    def sweep(self) -> None:
        self.stage.do(self._sweep())
        self._compare(model.sweep(self.world, self.stage.clock.now()))

    async def _sweep(self) -> None:
        """All there are: what other runs left, too."""
        while (await self.stage.sweeper.tick()).again_in is not None:
            pass

    # --- what holds afterwards

    def _compare(self, after: World) -> None:
        now = self.stage.clock.now()
        assert self.stage.do(self.sending.look()) == shown(after, now)
        self.world = after
        self._tick()

    def _tick(self) -> None:
        """Two runs of a session do not begin at the same moment."""
        count = sum(len(lesson.attempts) for lesson in self.world.lessons.values())
        if count > getattr(self, "_attempts", 0):
            self.stage.do(self.stage.clock.jump(1))
        self._attempts = count


@pytest.mark.parametrize("runs", [40, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_sessions_do_what_the_model_does(services: Services, clock: ManualClock, runs: int) -> None:
    chosen = settings(
        max_examples=runs,
        stateful_step_count=25,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    async with staged(services, clock) as stage:
        machine = type("MachineOnStage", (Machine,), {"stage": stage})
        await asyncio.to_thread(run_state_machine_as_test, machine, settings=chosen)
