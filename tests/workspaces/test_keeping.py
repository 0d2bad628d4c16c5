"""What becomes of homes, on the real platform: restore points, downloads, the trash and `codehub gc`."""

import asyncio
import contextlib
import gzip
import io
import os
import pathlib
import subprocess
import tarfile
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
import zstandard

from codehub.runtimes.layout import Layout
from tests.archives.conftest import workers_on
from tests.platform import Platform, codehub
from tests.workspaces.test_lifecycle import api, create, lab, settled, until, visiting, want


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with lab(CODEHUB_ORPHAN_SECONDS="0", CODEHUB_MAX_DOWNLOADS="1") as started:
        yield started


def home_of(platform: Platform, id_: str) -> pathlib.Path:
    return Layout(platform.data_dir).of(id_).home


def write(platform: Platform, id_: str, name: str, content: bytes) -> None:
    path = home_of(platform, id_) / name
    path.write_bytes(content)
    owner = home_of(platform, id_).stat()
    os.chown(path, owner.st_uid, owner.st_gid)


def members(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        files = [info for info in tar if info.isfile()]
        return {info.name: tar.extractfile(info).read() for info in files}  # type: ignore[union-attr]


async def download(client: aiohttp.ClientSession, id_: str, **query: str) -> tuple[aiohttp.ClientResponse, bytes]:
    async with client.get(f"/api/v1/workspaces/{id_}/download", params=query) as answer:
        return answer, await answer.read()


@contextlib.asynccontextmanager
async def learner(platform: Platform, name: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with visiting(platform) as admin:
        await api(admin, "POST", "/api/v1/users", status=201, name=name)
        token = (await api(admin, "POST", f"/api/v1/users/{name}/tokens", status=201))["token"]
    async with platform.client(token) as client:
        yield client


def command(platform: Platform, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return codehub(*arguments, CODEHUB_DATA_DIR=str(platform.data_dir), CODEHUB_ORPHAN_SECONDS="0")


async def test_going_back_to_a_restore_point_keeps_what_was_there(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        keys = []
        for text in (b"monday", b"tuesday"):
            write(platform, id_, "note", text)
            keys.append((await want(client, id_, "ARCHIVED"))["archive_key"])
            await want(client, id_, "STANDBY")
        write(platform, id_, "note", b"wednesday")
        found = (await api(client, "GET", f"/api/v1/workspaces/{id_}/restore-points"))["items"]
        assert [(p["archive_key"], p["files"], p["current"]) for p in found] == [
            (keys[1], found[0]["files"], True),
            (keys[0], found[1]["files"], False),
        ]
        first = await api(client, "GET", f"/api/v1/workspaces/{id_}/restore-points?limit=1")
        rest = await api(client, "GET", f"/api/v1/workspaces/{id_}/restore-points?cursor={first['next_cursor']}")
        assert first["items"] + rest["items"] == found

        back = await api(client, "POST", f"/api/v1/workspaces/{id_}/restore", status=202, archive_key=keys[0])
        assert back["restore_from"] == keys[0]
        async with asyncio.timeout(60):
            while (await until(client, id_, "STANDBY"))["archive_key"] != keys[0]:
                await asyncio.sleep(0.05)
        assert (home_of(platform, id_) / "note").read_bytes() == b"monday"
        newest = (await api(client, "GET", f"/api/v1/workspaces/{id_}/restore-points"))["items"][0]["archive_key"]
        done = await asyncio.to_thread(command, platform, "workspace", "restore", id_, "1")
        assert done.returncode == 0, done.stderr
        assert (home_of(platform, id_) / "note").read_bytes() == b"wednesday"
        assert (await until(client, id_, "STANDBY"))["archive_key"] == newest

        shown = await asyncio.to_thread(command, platform, "workspace", "restore-points", id_)
        assert keys[1] in shown.stdout
        for wrong, status in (("no/such/1/home.tar.zst", 404), ("../../etc/passwd", 404), ("", 400)):
            await api(client, "POST", f"/api/v1/workspaces/{id_}/restore", status=status, archive_key=wrong)


async def test_a_home_is_downloaded_running_asleep_and_archived_and_is_the_same(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        content = os.urandom(3_000_000)
        write(platform, id_, "data.bin", content)
        for state in ("RUNNING", "STANDBY", "ARCHIVED"):
            if state != "RUNNING":
                await want(client, id_, state)
            answer, packed = await download(client, id_)
            assert answer.content_type == "application/gzip"
            assert answer.headers["content-disposition"].startswith('attachment; filename="lab-20')
            assert members(packed)["data.bin"] == content
            assert gzip.decompress(packed)
            answer, squeezed = await download(client, id_, format="tar.zst")
            assert answer.headers["content-disposition"].endswith(".tar.zst")
            plain = zstandard.ZstdDecompressor().decompressobj().decompress(squeezed)
            assert members(plain)["data.bin"] == content
        assert (await api(client, "GET", f"/api/v1/workspaces/{id_}"))["phase"] == "ARCHIVED"  # it was not started
        out = platform.data_dir.parent / "taken.tar.gz"
        done = await asyncio.to_thread(command, platform, "workspace", "download", id_, "-o", str(out))
        assert done.returncode == 0, done.stderr
        assert members(out.read_bytes())["data.bin"] == content
        async with client.head(f"/api/v1/workspaces/{id_}/download") as answer:
            assert (answer.status, await answer.read()) == (200, b"")
        audited = await api(client, "GET", "/api/v1/admin/audit?limit=20")
        assert "workspace.download" in {entry["action"] for entry in audited["items"]}


async def test_somebody_elses_home_is_not_there(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        await api(client, "POST", "/api/v1/users", status=201, name="jun", role="teacher")
        token = (await api(client, "POST", "/api/v1/users/jun/tokens", status=201))["token"]
    async with platform.client(token) as jun:
        for path in ("download", "restore-points"):
            await api(jun, "GET", f"/api/v1/workspaces/{id_}/{path}", status=404)
        key = f"{id_}/op/1/home.tar.zst"
        await api(jun, "POST", f"/api/v1/workspaces/{id_}/restore", status=404, archive_key=key)
    async with platform.client(None) as nobody:
        await api(nobody, "GET", f"/api/v1/workspaces/{id_}/download", status=401)


async def test_downloads_that_are_not_read_keep_nobody_from_downloading(platform: Platform) -> None:
    """One place to pack at is all there is here: whoever is slow gives it up, and goes on when they read again."""
    async with learner(platform, "slow") as client, learner(platform, "other") as other:
        id_, theirs = await create(client), await create(other)
        await until(client, id_, "RUNNING")
        await until(other, theirs, "RUNNING")
        noise = os.urandom(64_000_000)
        home, path = home_of(platform, id_), f"/api/v1/workspaces/{id_}/download?format=tar.zst"
        write(platform, id_, "noise", noise)
        write(platform, theirs, "note", b"x")
        stalled = [await client.get(path) for _ in range(2)]
        for answer in stalled:
            await answer.content.readexactly(100_000)
        full = await api(client, "GET", path, status=429)
        assert full["code"] == "DOWNLOAD_LIMIT"
        for _ in range(3):
            answer, packed = await download(other, theirs)
            assert (answer.status, members(packed)["note"]) == (200, b"x")
        assert len(workers_on(home)) == 2  # they wait, and have not been read into memory
        rest = await stalled[0].read()
        assert len(rest) > 63_000_000
        stalled[1].close()
        async with asyncio.timeout(20):
            while workers_on(home):
                await asyncio.sleep(0.05)
        async with asyncio.timeout(20):  # the places are free a moment later
            while (await download(client, id_, format="tar.zst"))[0].status != 200:
                await asyncio.sleep(0.1)


async def test_a_download_that_breaks_off_looks_broken(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        write(platform, id_, "noise", os.urandom(64_000_000))
        async with client.get(f"/api/v1/workspaces/{id_}/download?format=tar.zst") as answer:
            await answer.content.readexactly(100_000)
            for pid in workers_on(home_of(platform, id_)):
                os.kill(int(pid), 9)
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.read()


async def test_a_damaged_archive_is_not_handed_out_as_if_it_were_whole(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        write(platform, id_, "noise", os.urandom(5_000_000))
        key = (await want(client, id_, "ARCHIVED"))["archive_key"]
        stored = platform.data_dir / "archives" / key
        with stored.open("r+b") as file:
            file.seek(-1000, os.SEEK_END)
            file.write(b"damaged")
        for form in ("tar.zst", "tar.gz"):
            with pytest.raises(aiohttp.ClientPayloadError):
                await download(client, id_, format=form)
        await api(client, "PATCH", f"/api/v1/workspaces/{id_}", status=202, desired_state="STANDBY")
        w = await until(client, id_, "ERROR")
        assert w["error_info"]["reason"] == "ArchiveCorrupted"
        assert stored.exists()  # nothing was deleted


async def test_gc_says_what_it_would_do_and_then_does_it(platform: Platform) -> None:
    async with visiting(platform) as client:
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        for _ in range(4):
            await want(client, id_, "ARCHIVED")
            await want(client, id_, "STANDBY")
        left = platform.data_dir / "archives" / id_ / "halfway" / "1"
        left.mkdir(parents=True)
        (left / "home.tar.zst").write_bytes(b"half")
        stray = Layout(platform.data_dir).of("stray").volume
        stray.mkdir(parents=True)
        (stray / "meta.json").write_text('{"generation": "g1"}')
        told = await asyncio.to_thread(command, platform, "gc", "--dry-run")
        assert told.returncode == 0, told.stderr
        for words in ("it was never finished", "there are enough newer restore points", "no workspace has its id"):
            assert words in told.stdout
        assert left.exists()
        assert stray.exists()
        done = await asyncio.to_thread(command, platform, "gc")
        assert done.returncode == 0, done.stderr
        assert "collected" in done.stdout
        assert not left.exists()
        assert not stray.exists()
        assert len(list((platform.data_dir / "archives" / id_).glob("*/*/home.tar.zst"))) == 3
        again = await asyncio.to_thread(command, platform, "gc", "--dry-run")
        assert id_ not in again.stdout
        await settled(client, id_)
        await api(client, "DELETE", f"/api/v1/workspaces/{id_}", status=202)
        await until(client, id_, "DELETED")
        await api(client, "DELETE", f"/api/v1/workspaces/{id_}?purge=true", status=202)
        async with asyncio.timeout(30):
            while list((platform.data_dir / "archives" / id_).glob("*/*/home.tar.zst")):
                await asyncio.sleep(0.1)
        gone = await api(client, "POST", f"/api/v1/workspaces/{id_}/undelete", status=404)
        assert "nothing is left" in gone["detail"]
