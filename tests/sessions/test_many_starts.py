"""One session started hundreds of times at once, from several processes, while their connections are cut: one run."""

import asyncio
import json
import pathlib
import random
from collections import Counter, defaultdict
from dataclasses import dataclass

import asyncpg
import pytest

from codehub.settings import Settings
from tests.sessions.learning import CHECK
from tests.sessions.processes import Insistent, Told, fleet

CUT = """
SELECT count(pg_terminate_backend(pid)) FROM (
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'codehub'
    ORDER BY random() LIMIT 2) AS chosen
"""
RUNS = """
SELECT r.status, r.id, r.fence, r.step_index, s.status AS session_status
FROM session_runs r JOIN sessions s ON s.id = r.session_id WHERE s.id = $1
"""
DICE = random.Random(20260302)


@dataclass
class Cutter:
    """Cuts connections of the platform at random, for as long as it is told to."""

    connection: asyncpg.Connection
    cut: int = 0

    async def run(self) -> None:
        while True:
            self.cut += await self.connection.fetchval(CUT)
            await asyncio.sleep(DICE.uniform(0, 0.1))


def keys(count: int) -> list[str | None]:
    """For so many starts: a third has none, a third one of their own, a third shares a few."""
    shared = max(2, count // 50)
    found = [(None, f"own-{n}", f"shared-{n % shared}")[n % 3] for n in range(count)]
    DICE.shuffle(found)
    return found


async def start_many(mina: Insistent, id_: str, wanted: list[str | None]) -> list[tuple[str | None, Told]]:
    answers = await asyncio.gather(*(mina.ask("POST", f"/sessions/{id_}/runs", key=key) for key in wanted))
    return list(zip(wanted, answers, strict=True))


def look_at(answers: list[tuple[str | None, Told]], run: asyncpg.Record) -> dict[str, Told]:
    """Everybody got the one run, each recovery with a fence of its own; returns what each key stands for."""
    assert {told.status for _, told in answers} <= {200, 201}
    assert {json.loads(told.body)["id"] for _, told in answers} == {run["id"]}
    by_key: defaultdict[str, list[Told]] = defaultdict(list)
    for key, told in answers:
        if key:
            by_key[key].append(told)
    for same in by_key.values():
        assert len({(told.status, told.body) for told in same}) == 1
        assert [told.replayed for told in same].count(False) <= 1
    # What was not replayed was done for this client alone: no two have the same fence, and only one has the first.
    fences = Counter(json.loads(told.body)["fence"] for _, told in answers if not told.replayed)
    assert max(fences.values()) == 1
    assert max(fences) <= run["fence"]
    assert sum(told.status == 201 for _, told in answers if not told.replayed) <= 1
    assert all((told.status == 201) == (json.loads(told.body)["fence"] == 1) for _, told in answers)
    return {key: same[0] for key, same in by_key.items()}


@pytest.mark.parametrize(
    ("count", "processes", "sessions"), [(60, 2, 1), pytest.param(500, 6, 2, marks=pytest.mark.soak)]
)
async def test_many_starts_at_once_from_many_processes_with_connections_cut_give_one_run(
    settings: Settings, tmp_path: pathlib.Path, database_url: str, count: int, processes: int, sessions: int
) -> None:
    watcher, other = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    async with fleet(settings, tmp_path, processes) as apis, apis.learner() as mina:
        for id_ in await mina.made(CHECK, sessions):
            cutter = Cutter(other)
            cutting = asyncio.create_task(cutter.run())
            wanted = [key and f"{id_}-{key}" for key in keys(count)]
            answers = await start_many(mina, id_, wanted)
            cutting.cancel()
            await asyncio.wait([cutting])
            assert cutting.cancelled()
            (run,) = await watcher.fetch(RUNS, id_)
            assert (run["status"], run["session_status"]) == ("RUNNING", "IN_PROGRESS")
            for key, told in look_at(answers, run).items():
                again = await mina.ask("POST", f"/sessions/{id_}/runs", key=key)
                assert (again.status, again.body, again.replayed) == (told.status, told.body, True)
            (after,) = await watcher.fetch(RUNS, id_)
            assert after == run  # replays took the run from nobody
            assert cutter.cut > 0
            tried = sum(told.tries for _, told in answers) - count
            print(
                f"{count} starts: {cutter.cut} connections cut, {tried} times told to come again, fence {run['fence']}"
            )
    await watcher.close()
    await other.close()
