"""What can go wrong around an archive, with real coordinators: the home or its archive is always whole."""

import asyncio
import os
import pathlib
import signal

import pytest

from codehub.runtimes.layout import Layout
from codehub.workspaces.admission import admitted
from codehub.workspaces.errors import DataLostError
from codehub.workspaces.model import Desired, Phase
from tests.archives import s3, trees
from tests.faults.dying_keeper import line_of
from tests.faults.keeper_stage import KeeperStage, keeper_stage
from tests.faults.test_killed_coordinator import MINA, PATIENCE
from tests.servers import TestServers

SMALL = 100_000  # bytes; the home's noise alone is three times that, and does not compress


async def relaunched(stage: KeeperStage) -> None:
    """Another coordinator in the place of the last one."""
    assert stage.process
    stage.process.kill()
    stage.process.wait()
    async with stage.database.connection() as c:
        await c.execute("UPDATE system_locks SET expires_at = '-infinity'")
    stage.launch()


async def test_a_full_disk_while_archiving_leaves_the_home_and_while_restoring_the_archive(
    servers: TestServers, data_dir: pathlib.Path
) -> None:
    async with keeper_stage(servers, data_dir.parent / "stage") as stage:
        stage.launch()
        id_, picture = await stage.asleep()
        stage.limit = SMALL  # as a disk that ends there
        await relaunched(stage)
        await stage.patiently(lambda: stage.service.request(MINA, id_, Desired.ARCHIVED))
        broken = await stage.until(id_, Phase.ERROR)
        assert broken.archive_key is None
        assert broken.error_info
        assert broken.error_info["operation"] == "ARCHIVING"
        stage.limit = None
        await relaunched(stage)
        admitted(await stage.service.recover(MINA, id_))
        archived = await stage.until(id_, Phase.ARCHIVED)

        stage.limit = SMALL
        await relaunched(stage)
        await stage.patiently(lambda: stage.service.request(MINA, id_, Desired.STANDBY))
        broken = await stage.until(id_, Phase.ERROR)
        assert broken.archive_key == archived.archive_key
        assert broken.error_info
        assert "the disk is full" in broken.error_info["last_error"]
        assert not stage.home(id_).exists()  # a half one is never startable
        stage.limit = None
        await relaunched(stage)
        admitted(await stage.service.recover(MINA, id_))
        await stage.until(id_, Phase.STANDBY)
        await stage.same(id_, picture)


async def test_an_s3_store_that_is_away_or_slow_loses_nothing(
    servers: TestServers, data_dir: pathlib.Path, s3_server: s3.S3Server
) -> None:
    async with keeper_stage(servers, data_dir.parent / "stage") as stage:
        (nobody,) = s3.free_ports(1)
        where = f"s3://{s3.BUCKET}/faults/{os.getpid()}"
        stage.set(CODEHUB_ARCHIVE_URL=where, **s3_server.environment(port=nobody))
        stage.launch()
        id_, picture = await stage.asleep()
        await stage.patiently(lambda: stage.service.request(MINA, id_, Desired.ARCHIVED))
        broken = await stage.until(id_, Phase.ERROR)
        assert broken.error_info
        assert "Unreachable" in broken.error_info["last_error"]
        async with s3.wire_to(s3_server) as wire:
            stage.set(**s3_server.environment(port=wire.port))
            wire.after(100_000, "hang")
            await relaunched(stage)
            admitted(await stage.service.recover(MINA, id_))
            await stage.patiently(lambda: stage.service.request(MINA, id_, Desired.ARCHIVED))
            async with asyncio.timeout(PATIENCE):
                while wire.carried < 100_000:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(1)  # in the middle of the upload, nothing moves
            wire.mend()
            await stage.until(id_, Phase.ARCHIVED)
            await stage.want(id_, Desired.STANDBY, Phase.STANDBY)
            await stage.same(id_, picture)


async def test_files_removed_behind_its_back_are_told_and_never_replaced_silently(
    servers: TestServers, data_dir: pathlib.Path
) -> None:
    async with keeper_stage(servers, data_dir.parent / "stage") as stage:
        stage.launch()
        id_, picture = await stage.asleep()
        await stage.want(id_, Desired.ARCHIVED, Phase.ARCHIVED)
        await stage.want(id_, Desired.STANDBY, Phase.STANDBY)
        (stage.home(id_) / "since then").write_text("not in any archive")
        trees.fell(Layout(stage.data_dir).of(id_).volume)
        lost = await stage.until(id_, Phase.ERROR)
        assert lost.error_info
        assert lost.error_info["reason"] == "DataLost"
        assert not stage.home(id_).exists()
        with pytest.raises(DataLostError, match="minutes old"):
            admitted(await stage.service.recover(MINA, id_))
        admitted(await stage.service.recover(MINA, id_, accept_loss=True))
        await stage.until(id_, Phase.STANDBY)
        await stage.same(id_, picture)


async def test_what_was_edited_after_an_error_is_what_is_archived_next(
    servers: TestServers, data_dir: pathlib.Path
) -> None:
    """The archive of the attempt that failed is whole and committed: it must not be taken for the new one."""
    async with keeper_stage(servers, data_dir.parent / "stage") as stage:
        stage.launch(line_of("reconciler/operations.py", "if not await self._transitions.commit_archive(w, made):"))
        id_, _ = await stage.asleep()
        await stage.patiently(lambda: stage.service.request(MINA, id_, Desired.ARCHIVED))
        assert stage.process
        async with asyncio.timeout(PATIENCE):
            while stage.process.poll() is None:
                await asyncio.sleep(0.05)
        assert list((stage.objects / id_).glob("*/*/home.tar.zst.meta"))
        async with stage.database.connection() as c:  # as the controller writes it when it gives up
            await c.execute(
                "UPDATE workspaces SET operation = 'NONE', health_status = 'ERROR', desired_state = 'STANDBY', "
                'error_info = \'{"reason": "RetryExceeded", "operation": "ARCHIVING", "is_terminal": true, '
                '"error_count": 1, "last_error": "x", "occurred_at": "2026-01-01T00:00:00Z"}\' WHERE id = $1',
                id_,
            )
        await stage.tend()
        admitted(await stage.service.recover(MINA, id_))
        note = stage.home(id_) / "noise"
        await stage.eventually(lambda: _exists(note))  # it was packed where nothing starts, and is taken back
        await stage.until(id_, Phase.STANDBY)
        note.write_bytes(b"edited after the error")
        await stage.want(id_, Desired.ARCHIVED, Phase.ARCHIVED)
        await stage.want(id_, Desired.STANDBY, Phase.STANDBY)
        assert note.read_bytes() == b"edited after the error"


async def _exists(path: pathlib.Path) -> bool:
    return path.exists()


STOPS = {
    "in the middle of an upload": line_of("archives/service.py", 'step("data stored")'),
    "before it deletes what it archived": line_of("archives/service.py", 'step("meta stored")'),
    "in the middle of a delete": line_of("runtimes/volumes.py", "if meta and meta.generation == generation:"),
}


async def _said(stage: KeeperStage, words: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while words not in (stage.folder / "log").read_text():
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    "where",
    [
        "in the middle of a delete",
        pytest.param("in the middle of an upload", marks=pytest.mark.soak),
        pytest.param("before it deletes what it archived", marks=pytest.mark.soak),
    ],
)
async def test_a_leader_stopped_and_continued_destroys_nothing_that_came_after(
    servers: TestServers, data_dir: pathlib.Path, where: str
) -> None:
    async with keeper_stage(servers, data_dir.parent / "stage") as stage:
        stage.set(CODEHUB_MAX_RETRY="30")
        stage.launch("--stop", STOPS[where])
        id_, picture = await stage.asleep()
        stopped = stage.process
        assert stopped
        await stage.patiently(lambda: stage.service.request(MINA, id_, Desired.ARCHIVED))
        async with asyncio.timeout(PATIENCE):
            while pathlib.Path(f"/proc/{stopped.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                await asyncio.sleep(0.05)
        stage.launch()  # takes over when the lease has run out
        if where == "in the middle of a delete":  # it holds the workspace's lock, so that nobody can go on before it
            await _said(stage, '"epoch": 2')
            os.kill(stopped.pid, signal.SIGCONT)
        await stage.until(id_, Phase.ARCHIVED)
        await stage.want(id_, Desired.STANDBY, Phase.STANDBY)
        await stage.same(id_, picture)
        os.kill(stopped.pid, signal.SIGCONT)
        await _said(stage, "Leadership ended")
        assert (await stage.service.get(MINA, id_)).phase is Phase.STANDBY
        await stage.same(id_, picture)
        await stage.want(id_, Desired.ARCHIVED, Phase.ARCHIVED)
        await stage.want(id_, Desired.STANDBY, Phase.STANDBY)
        await stage.same(id_, picture)
