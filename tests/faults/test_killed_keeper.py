"""kill -9 of the coordinator at every line of archiving, restoring, deleting and collecting: no byte is lost.

The lines are listed by a first run, as in `test_killed_coordinator`; the home holds one of everything and is compared
with its times, modes, attributes, links and holes.
"""

import pathlib

import pytest

from codehub.workspaces.model import Desired, Phase
from tests.faults.keeper_stage import KeeperStage, keeper_stage
from tests.faults.test_killed_coordinator import MINA
from tests.servers import TestServers


async def life(stage: KeeperStage) -> None:
    """Archived and back, twice; back to a restore point; trash and back; rubbish collected; purged."""
    id_, picture = await stage.asleep()
    await stage.want(id_, Desired.ARCHIVED, Phase.ARCHIVED)
    await stage.want(id_, Desired.STANDBY, Phase.STANDBY)
    await stage.same(id_, picture)
    second = await stage.want(id_, Desired.ARCHIVED, Phase.ARCHIVED)
    assert second.archive_key
    rubbish = stage.objects / id_ / "halfway" / "1"
    rubbish.mkdir(parents=True)
    (rubbish / "home.tar.zst").write_bytes(b"half")
    stray = stage.data_dir / "workspaces" / "homes" / "stray" / "volume"
    stray.mkdir(parents=True)
    (stray / "meta.json").write_text('{"generation": "g1"}')
    await stage.want(id_, Desired.STANDBY, Phase.STANDBY)
    await stage.patiently(lambda: stage.service.restore(MINA, id_, second.archive_key or ""))
    await stage.eventually(lambda: _gone_back(stage, id_))
    await stage.same(id_, picture)
    await stage.patiently(lambda: stage.service.delete(MINA, id_, purge=False))
    await stage.until(id_, Phase.DELETED)
    await stage.patiently(lambda: stage.service.undelete(MINA, id_))
    await stage.want(id_, Desired.STANDBY, Phase.STANDBY)
    await stage.same(id_, picture)
    await stage.eventually(lambda: _collected(rubbish, stray))
    await stage.patiently(lambda: stage.service.delete(MINA, id_, purge=True))
    await stage.until(id_, Phase.DELETED)
    await stage.eventually(lambda: _emptied(stage, id_))
    assert not stage.home(id_).parent.parent.exists()


async def _gone_back(stage: KeeperStage, id_: str) -> bool:
    w = await stage.settled(id_)
    return w.restore_from is None and w.phase is Phase.STANDBY


async def _collected(rubbish: pathlib.Path, stray: pathlib.Path) -> bool:
    return not rubbish.exists() and not stray.exists()


async def _emptied(stage: KeeperStage, id_: str) -> bool:
    w = await stage.service.get(MINA, id_)
    async with stage.database.connection() as c:  # as by the clock, only sooner
        await c.execute("SELECT pg_notify('codehub_requests', '')")
    return w.emptied_at is not None and not list((stage.objects / id_).glob("*/*/*"))


async def campaign(servers: TestServers, folder: pathlib.Path, runs: int | None) -> tuple[int, int, int]:
    listing = folder / "lines"
    async with keeper_stage(servers, folder / "listing") as stage:
        stage.launch("--list", str(listing))
        await life(stage)
    lines = listing.read_text().split()
    chosen = lines if runs is None else lines[len(lines) // (2 * runs) :: max(1, len(lines) // runs)][:runs]
    died = 0
    for number, line in enumerate(chosen, 1):
        async with keeper_stage(servers, folder / f"run-{number}", number) as stage:
            stage.launch(line)
            try:
                await life(stage)
            except BaseException as e:
                e.add_note(f"to die at {line}")
                raise
            assert stage.deaths <= 1, f"a coordinator died by itself (to die at {line})"
            died += stage.deaths
    return len(lines), len(chosen), died


async def test_a_coordinator_killed_while_it_keeps_files_is_followed_by_one_that_loses_none(
    servers: TestServers, data_dir: pathlib.Path
) -> None:
    lines, _, died = await campaign(servers, data_dir.parent, runs=2)
    assert lines > 200
    assert died >= 1  # a line that only a race reaches need not be met again


@pytest.mark.soak
async def test_a_coordinator_killed_at_every_line_of_keeping_files_loses_none(
    servers: TestServers, data_dir: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, runs, died = await campaign(servers, data_dir.parent, runs=None)
    with capsys.disabled():
        print(f"\nkilled at {died} of {runs} lines ({lines} listed): all converged, every home identical")
    assert runs == lines
    assert died >= 0.9 * runs
