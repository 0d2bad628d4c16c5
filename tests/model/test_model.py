"""A small slice of `make model`: it holds, it is not blind, and its machine and database behave like the real ones."""

import itertools
import pathlib
import shutil
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from model.canonical import unpack
from model.database import NOW
from model.explore import Bounds, Explorer
from model.properties import Violation
from model.tables import NONE
from model.world import World

from codehub.db import Database
from codehub.reconciler.operations import Operations
from codehub.runtimes.base import RuntimeFailureError
from codehub.runtimes.layout import Layout
from codehub.runtimes.volumes import Volumes
from codehub.workspaces import idle_store, rules, store
from codehub.workspaces.model import Desired, Health, Observed, Operation, Phase, Workspace
from codehub.workspaces.store import sql
from model import doubles, mutants, mutations, naming, requests, scenarios, statements, world


def explored(faults: int, asked: int, *beginnings: int) -> Violation | None:
    return found_by(Explorer(Bounds(faults, asked)), *beginnings)


def found_by(explorer: Explorer, *beginnings: int) -> Violation | None:
    all_ = scenarios.beginnings()
    with doubles.driven():
        return explorer.run([all_[n] for n in beginnings] or all_)


def test_without_faults_everything_holds() -> None:
    assert explored(0, 2) is None


def test_with_one_fault_a_workspace_that_is_put_away_or_brought_back_holds() -> None:
    assert explored(1, 0) is None


@pytest.mark.soak
def test_with_one_fault_and_two_requests_everything_holds() -> None:
    assert explored(1, 2) is None


async def deletes_first(self: Any, w: Workspace) -> None:
    volume = await self._own_volume(w)
    if volume:
        await self._runtime.park_volume(w.id, volume.generation)
        await self._runtime.delete_volume(w.id, volume.generation)
        made = await self._archives.store(w, volume.generation, self._lease.epoch, self._runtime, self._progress(w))
        await self._transitions.commit_archive(w, made)


def test_a_home_that_is_deleted_before_it_is_archived_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Operations, "_archive", deletes_first)
    found = explored(0, 0)
    assert found
    assert found.problem == "the person's work is in no volume and in no archive that the row names"
    assert found.trace[-1].startswith("leader: delete_volume(o2-1)\n")
    assert "ARCHIVING" in "".join(found.trace)


def test_an_operation_that_always_fails_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_self: Any, _w: Workspace) -> None:
        raise RuntimeFailureError("always")

    monkeypatch.setattr(Operations, "_start", fails)
    found = explored(0, 0)
    assert found
    assert found.problem.startswith("an error, although nothing went wrong")


def test_an_operation_that_never_ends_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "is_complete", lambda _w, _seen: False)
    found = explored(0, 0)
    assert found
    assert found.problem == "it goes round in circles for ever"


def test_a_timer_that_overwrites_a_person_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rude = idle_store.sql.put_to_sleep.replace("AND w.idle_since = d.idle_since", "")
    monkeypatch.setitem(idle_store.sql._sql, "put_to_sleep", rude)
    found = explored(0, 2, 0)
    assert found
    assert found.problem == "a timer overwrites what a person asked for since it decided"


def test_a_tick_that_overlooks_a_changed_row_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = store.lock

    async def blind(*args: Any, **options: Any) -> Workspace | None:
        found = await lock(*args, **options)
        return found and replace(found, updated_at=NOW)

    monkeypatch.setattr(store, "lock", blind)
    found = explored(0, 0)
    assert found
    assert found.problem == "a tick acts on a row that changed since it looked"


# --- what the search spares itself leaves nothing out


def reached(*, plain: bool, faults: int, asked: int) -> set[tuple[Any, ...]]:
    """Rows, orders, machines and work of all states, under their own names, without what a plain search remembers."""
    explorer = Explorer(Bounds(faults, asked), plain=plain)
    assert found_by(explorer) is None
    assert explorer.unusual == set()
    tables, found = explorer.tables, set()
    for state in map(unpack, explorer.index):
        row, there = tables.rows.values[state.row], tables.worlds.values[state.world]
        order, work = tables.leaders.values[state.leader].order, tables.works.values[state.work]
        archives = tuple(a for a in there.archives if a.key == row.archive_key)
        seen = there._replace(archives=archives, staged=())
        parts = (row, seen, None if order == NONE else tables.orders.values[order], work)
        found.add((*naming.rename(parts, naming.canonical(list(naming.names(parts)))), state.timer))
    return found


@pytest.mark.parametrize(
    ("faults", "asked"),
    [(0, 2), (1, 0), *(pytest.param(*bounds, marks=pytest.mark.soak) for bounds in ((1, 1), (2, 0), (1, 2)))],
)
def test_a_search_that_spares_nothing_reaches_the_same(faults: int, asked: int) -> None:
    spared = reached(plain=False, faults=faults, asked=asked)
    assert spared == reached(plain=True, faults=faults, asked=asked)
    assert len(spared) > 50


def test_nothing_is_concluded_from_how_operations_end_when_they_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Operations._start

    async def looks_first(self: Any, w: Workspace) -> None:
        await self._runtime.container(w.id)  # which otherwise comes last, before nothing but looks
        await start(self, w)

    monkeypatch.setattr(Operations, "_start", looks_first)
    explorer = Explorer(Bounds(0, 0))
    assert found_by(explorer) is None
    assert explorer.unusual == {Operation.STARTING}


def test_what_is_renamed_stays_what_it_is() -> None:
    assert naming.rename((Operation.STARTING, "o1-2"), {"o1": "o3"}) == (Operation.STARTING, "o3-2")
    assert naming.rename(Operation.STARTING, {"o1": "o3"}) is Operation.STARTING


# --- the modelled machine is like the real one

VERBS: dict[str, tuple[str, ...]] = {
    "create": ("create_volume", "g1"),
    "create another": ("create_volume", "g2"),
    "place": ("place_volume", "g1", "g1", "key"),
    "unpack": ("staging", "g1"),
    "park": ("park_volume", "g1"),
    "park another": ("park_volume", "g2"),
    "unpark": ("unpark_volume", "g1", "g2"),
    "delete": ("delete_volume", "g1"),
    "delete another": ("delete_volume", "g2"),
}


def on_disk(volumes: Volumes, verb: str, args: tuple[str, ...], root: pathlib.Path) -> str:
    """What the real one says: refused, or not."""
    try:
        if verb == "place_volume":
            volumes.place("w", args[0], root / f"staging-{args[1]}", args[2])
        elif verb == "staging":
            volumes.staging("w", args[0])
        else:
            getattr(volumes, verb.removesuffix("_volume"))("w", *args)
    except RuntimeFailureError:
        return "raises"
    return "returns"


@pytest.mark.parametrize("first", VERBS)
def test_volumes_behave_in_the_model_as_on_disk(first: str, tmp_path: pathlib.Path) -> None:
    for number, names in enumerate(itertools.product([first], VERBS, VERBS)):
        layout = Layout(tmp_path / str(number))
        layout.homes.mkdir(parents=True)
        volumes, there = Volumes(layout, None), World()
        for name in names:
            verb, *args = VERBS[name]
            (said, _), there = world.perform(there, verb, tuple(args))
            assert on_disk(volumes, verb, tuple(args), layout.of("w").root) == said, names
            seen, _ = world.Verbs.volumes(there)
            real = volumes.look(["w"]).get("w")
            assert seen == (real and (real.generation, real.restored_from, real.parked, real.parked_generation)), names
        shutil.rmtree(tmp_path / str(number))


# --- the modelled database is like PostgreSQL

ROW = {
    "id": "w",
    "name": "w",
    "template": "t",
    "owner": "mina",
    **dict.fromkeys(("created_at", "updated_at", "phase_changed_at", "last_access_at", "desired_at"), NOW),
    "op_id": "op",
    "desired_by": "user",
    "volume_generation": "g",
}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "set_desired": ("w", "RUNNING", "user", NOW),
    "mark_deleted": ("w", NOW, False),
    "mark_undeleted": ("w", "STANDBY", "user", NOW),
    "mark_recovered": ("w", NOW, "w/op/1/home.tar.zst"),
    "begin": ("w", "DELETING", "op2", NOW, "here"),
    "observe": ("w", "STANDBY", "NONE", "OK", None, "g", True, None, NOW, NOW, "ARCHIVING", "op", 2, "here"),
    "commit_archive": ("w", "op", "w/op/1/home.tar.zst", NOW),
    "note_failure": ("w", "NONE", "ERROR", {"reason": "Timeout"}, 1, None, NOW),
    "clear_attention": ("w",),
    "due_to_run": (NOW, [], 10, "here"),
    "due_deleted": (NOW, [], 10, "here"),
    "due_to_sleep": (NOW, ["v"], 10, "here"),
    "find_many": (["w"],),
    "unreadable": (["w"], [], "here"),
    "sweep": ("", [], 10, "here"),
}
GENERATED = {"phase", "phase_changed_at", "idle_since", "error_info"}  # the last: text or value, by the driver
STATES = [
    {"observed_status": o, "health_status": h, "operation": op, "desired_state": d, "deleted_at": x, "attention_at": a}
    for (o, h, op), d, x, a in itertools.product(
        sorted(rules.COMBINATIONS), ("RUNNING", "STANDBY"), (None, NOW), (None, NOW)
    )
]


@pytest.mark.parametrize("name", ARGUMENTS)
async def test_statements_do_in_the_model_what_they_do_in_postgresql(name: str, database: Database) -> None:
    statement, args = sql.__getattr__(name), ARGUMENTS[name]
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
        for state in STATES[:: 1 if name in {"set_desired", "observe"} else 5]:
            row = {**ROW, **state, "archive_key": "w/old/1/home.tar.zst"}
            columns = ", ".join("owner_id" if name == "owner" else name for name in row)
            places = ", ".join(
                f"codehub_user_id(${n})" if name == "owner" else f"${n}" for n, name in enumerate(row, start=1)
            )
            await c.execute("DELETE FROM workspaces")
            await c.execute(f"INSERT INTO workspaces ({columns}) VALUES ({places})", *row.values())
            before = dict(await c.fetchrow("SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces") or {})
            real = await try_row(c, statement, args)
            found = statements.parse(statement).run(before, args)
            broken = found and any(statements.parse_condition(check)(found, ()) is False for check in checks())
            expected = "refused" if broken else found and {k: v for k, v in found.items() if k not in GENERATED}
            assert real == expected, state


async def try_row(c: Any, statement: str, args: tuple[Any, ...]) -> Any:
    try:
        record = await c.fetchrow(statement, *args)
    except asyncpg.CheckViolationError:
        return "refused"
    return None if record is None else {k: v for k, v in dict(record).items() if k not in GENERATED}


def checks() -> list[str]:
    from model.database import CHECKS  # noqa: PLC0415

    return CHECKS


def test_constraints_of_the_schema_are_understood() -> None:
    rejected = {
        (o, h, op)
        for o, h, op in itertools.product(Observed, Health, Operation)
        if any(
            statements.parse_condition(check)(
                {**vars(scenarios.beginnings()[3][0]), "observed_status": o, "health_status": h, "operation": op}, ()
            )
            is False
            for check in checks()
        )
    }
    everything = set(itertools.product(Observed, Health, Operation))
    assert everything - rejected == rules.COMBINATIONS


def test_a_timers_statement_about_many_is_understood_as_one_about_this() -> None:
    asleep = scenarios.beginnings()[1][0]
    assert requests.store_away(asleep).desired_state == "ARCHIVED"
    awake = replace(asleep, observed_status=Observed.RUNNING, phase=Phase.RUNNING, desired_state=Desired.RUNNING)
    assert requests.put_to_sleep(awake, moved=False).desired_by == "ttl"
    assert requests.put_to_sleep(awake, moved=True) == awake


# --- mutants


def test_mutants_are_many_and_each_has_a_name_of_its_own_and_compiles() -> None:
    found = mutations.every()
    assert len(found) > 200
    assert len({mutant.name for mutant in found}) == len(found)
    for mutant in found:
        compile(mutant.source, mutant.name, "exec")


def test_every_explained_survivor_is_a_mutant_that_exists() -> None:
    assert set(mutants.survivors()) <= {mutant.name for mutant in mutations.every()}


def test_a_mutant_is_noticed_in_a_process_of_its_own() -> None:
    name = "reconciler.operations._archive: `await self._runtime.delete_volume(w.id, volume.generation)` before"
    (mutant,) = [m for m in mutations.every() if m.name.startswith(name)]
    killer = mutants.end(mutants.start(mutant))
    assert killer
    assert killer.startswith("model: ")
