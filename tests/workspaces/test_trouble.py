"""IDEs that behave badly, on the real platform: each ends in a true state, with a reason that helps."""

import asyncio
import contextlib
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

from codehub.runtimes.layout import Layout
from tests.contracts.harness import processes_of
from tests.platform import Platform
from tests.runtimes.test_refusals import give_up_namespaces
from tests.workspaces.ides import write_templates
from tests.workspaces.test_lifecycle import (
    _purge_everything,
    api,
    ask_ide,
    create,
    first_pid,
    lab,
    until,
    visiting,
    want,
)

LOG_BYTES = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with lab(CODEHUB_MAX_RETRY="1") as started:
        yield started


def living(id_: str) -> list[int]:
    """Every process on this machine that belongs to this workspace."""
    return processes_of(f"CODEHUB_WORKSPACE_ID={id_}")


async def test_an_ide_that_goes_to_the_background_is_not_running_and_is_told_why(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client, "daemon")
        w = await until(client, id_, "ERROR")
        assert w["observed_status"] == "STANDBY"
        assert "exit code 0 (an IDE has to stay in the foreground" in w["error_info"]["last_error"]
        assert living(id_) == []


async def test_what_an_ide_sets_free_ends_with_it(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client, "spawner")
        await until(client, id_, "RUNNING")
        assert len(living(id_)) >= 2  # the IDE, and the grandchild that nobody waits for
        await want(client, id_, "STANDBY")
        assert living(id_) == []


@pytest.mark.parametrize("what", ["record", "volume"])
async def test_what_is_written_down_of_a_running_one_may_be_damaged_and_mended_and_it_runs_on(
    platform: Platform, what: str
) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        before, paths = await ask_ide(platform, id_), Layout(platform.data_dir).of(id_)
        damaged = paths.record if what == "record" else paths.volume / "meta.json"
        kept = damaged.read_bytes()
        damaged.write_bytes(b'{"generation": 1e999}')
        w = await until(client, id_, "ERROR")
        assert w["error_info"]["reason"] == f"{what.capitalize()}Unreadable"
        lines = (await api(client, "GET", f"/api/v1/workspaces/{id_}/history"))["items"]
        assert lines[0]["data"] == {"reason": w["error_info"]["reason"]}
        assert "cannot be read" in lines[0]["reason"]
        damaged.write_bytes(kept)
        await until(client, id_, "RUNNING")
        assert await ask_ide(platform, id_) == before  # the same process


async def test_a_home_at_its_quota_runs_on_wakes_again_and_can_be_emptied(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client, "greedy")
        await until(client, id_, "RUNNING")
        large = Layout(platform.data_dir).of(id_).home / "large"
        assert large.stat().st_size <= 8 << 20
        await want(client, id_, "STANDBY")
        await want(client, id_, "RUNNING")
        large.unlink()
        assert (await ask_ide(platform, id_)).split()[0].isdigit()


@pytest.mark.parametrize("template", ["chatty", pytest.param("flooding", marks=pytest.mark.soak)])
async def test_a_flood_of_log_stays_within_its_bound_and_the_ide_goes_on(platform: Platform, template: str) -> None:
    """Twenty megabytes every time, four hundred in `make soak`: its writer waits, so that takes minutes."""
    async with visiting(platform) as client:
        id_ = await create(client, template)
        await until(client, id_, "RUNNING")
        pid, text = first_pid(platform, id_), ""
        folder = Layout(platform.data_dir).of(id_).log
        async with asyncio.timeout(300):
            while "all is said\n" not in text:
                async with client.get(f"/api/v1/workspaces/{id_}/logs?tail_bytes=20000") as answer:
                    assert answer.status == 200
                    text = await answer.text()
                with contextlib.suppress(FileNotFoundError):  # one of them may just be put in the other's place
                    assert sum(path.stat().st_size for path in folder.iterdir()) <= LOG_BYTES
                await asyncio.sleep(0.1)
        assert first_pid(platform, id_) == pid
        assert (await ask_ide(platform, id_)).split()[0].isdigit()
        assert (await until(client, id_, "RUNNING"))["error_info"] is None


@pytest.fixture
def small_disk() -> Iterator[Platform | None]:
    """A platform whose homes lie on a disk of sixteen megabytes; only root can make one."""
    if os.geteuid() != 0:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="codehub-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        started = Platform(
            folder / "data",
            CODEHUB_TEMPLATES_DIR=str(write_templates(folder / "templates")),
            CODEHUB_MAX_RETRY="1",
            COORDINATOR_ACTIVE_INTERVAL="0.2",
        )
        started.prepare()
        homes = Layout(started.data_dir).root
        homes.mkdir(mode=0o711)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=0711", "none", homes], check=True)
        try:
            yield started.start()
        finally:
            _purge_everything(started)
            started.stop()
            started.end_workspaces()
            subprocess.run(["umount", "--lazy", homes], check=True)


async def test_a_full_disk_is_named_and_with_room_again_it_goes_on(small_disk: Platform | None) -> None:
    if small_disk is None:
        assert os.geteuid() != 0
        return
    async with visiting(small_disk) as client:
        id_ = await create(client, "hoarder")
        w = await until(client, id_, "ERROR")
        assert w["observed_status"] == "STANDBY"
        assert "No space left on device" in w["error_info"]["last_error"]
        assert living(id_) == []
        (Layout(small_disk.data_dir).of(id_).home / "everything").unlink()
        await api(client, "POST", f"/api/v1/workspaces/{id_}/recover")
        await until(client, id_, "RUNNING")


@pytest.fixture
def exposed(data_dir: pathlib.Path) -> Iterator[Platform]:
    """A platform on a machine where nothing can keep workspaces apart."""
    templates = write_templates(data_dir.parent / "templates")
    started = Platform(
        data_dir, CODEHUB_TEMPLATES_DIR=str(templates), CODEHUB_MAX_RETRY="0", COORDINATOR_ACTIVE_INTERVAL="0.2"
    )
    started.before = give_up_namespaces
    try:
        yield started.start()
    finally:
        _purge_everything(started)
        started.stop()
        started.end_workspaces()


async def test_without_isolation_a_learner_is_told_what_to_do_and_an_admin_may_start(exposed: Platform) -> None:
    async with visiting(exposed) as admin:
        await api(admin, "POST", "/api/v1/users", status=201, name="mina", role="learner")
        token = (await api(admin, "POST", "/api/v1/users/mina/tokens", status=201, scopes=None))["token"]
        async with exposed.client(token) as mina:
            refused = await until(mina, await create(mina), "ERROR")
        assert "so only admins may start one" in refused["error_info"]["last_error"]
        assert "CODEHUB_ISOLATION=none" in refused["error_info"]["last_error"]
        assert living(refused["id"]) == []
        await until(admin, await create(admin), "RUNNING")
