"""How fast are archives, beside `tar | zstd -T0` on the same tree? And does memory stay flat?

A developer runs it and reads the tables: one tree of few large files, one of 200,000 small ones. Rounds are
interleaved, so that a slow minute of the machine falls on both alike. Ours does more than tar: it brings the archive
to disk, reads it back and compares, and brings what it restores to disk. So tar is timed twice, before and after a
`sync`; the goal is 0.8 times the plain one.

Everything that is restored stays until the end: 7 rounds take 20 GB.

    python bench/archives.py [--rounds 7] [--only large|small|memory] [--five-gigabytes] [--where DIRECTORY]
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from codehub.archives import process, service
from codehub.archives.model import Quota, key_base, no_progress
from codehub.archives.objects import open_store

GOAL = 0.8
MEGABYTE = 1024 * 1024
QUOTA = Quota(bytes=10**13, inodes=10**8)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
BASE = key_base("bench", "op", 1)


def words(source: random.Random, count: int) -> bytes:
    """Text that compresses about as well as source code does."""
    vocabulary = [bytes(source.choices(b"abcdefghijklmnopqrstuvwxyz_", k=source.randint(2, 10))) for _ in range(3000)]
    return b" ".join(source.choices(vocabulary, k=count))


def grow_large(folder: Path, megabytes: int) -> None:
    """A few large files: a third text, a third noise, a third in between."""
    source = random.Random(1)
    text = words(source, 400_000)[:MEGABYTE]
    for index in range(6):
        with (folder / f"file{index}").open("wb") as file:
            for part in range(megabytes // 6):
                noise = source.randbytes(MEGABYTE)
                offset = source.randrange(MEGABYTE)
                mixed = text[offset : offset + MEGABYTE // 2] + noise[: MEGABYTE // 2]
                file.write((text[offset:] + text[:offset], noise, mixed)[(index + part) % 3])


def grow_small(folder: Path, count: int) -> None:
    """Like the modules that a package manager unpacks: forty a directory, mostly of a few kilobytes."""
    source = random.Random(2)
    text = words(source, 400_000)
    for first in range(0, count, 40):
        below = folder / f"package{first // 2000}" / f"lib{first // 40 % 50}"
        below.mkdir(parents=True)
        for number in range(first, min(first + 40, count)):
            size = int(min(60_000, source.lognormvariate(7.3, 1.2)))
            offset = source.randrange(len(text) - 60_000)
            (below / f"module_{number}.js").write_bytes(text[offset : offset + size])


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def shell(command: str, *arguments: Path) -> Callable[[], object]:
    return lambda: subprocess.run(["sh", "-c", command, "sh", *map(str, arguments)], check=True)


class Race:
    """One tree, archived and restored by both, over and over."""

    def __init__(self, home: Path, scratch: Path) -> None:
        self._home = home
        self._scratch = scratch
        self._theirs = scratch / "theirs.tar.zst"
        self._store = open_store(f"file://{scratch}/objects")
        self.seconds: dict[str, list[float]] = {}

    def run(self, number: int) -> None:
        """Who goes first changes every round."""
        pairs = [(self._tar_archives, self._we_archive), (self._tar_restores, self._we_restore)]
        for pair in pairs:
            for turn in pair if number % 2 else reversed(pair):
                turn()

    def _note(self, name: str, seconds: float) -> None:
        self.seconds.setdefault(name, []).append(seconds)

    def _tar_archives(self) -> None:
        command = shell('tar -cf - -C "$1" . | zstd -q -T0 -f -o "$2"', self._home, self._theirs)
        plain = timed(command)
        self._note("archive: tar | zstd -T0", plain)
        self._note("archive: tar | zstd -T0, sync", plain + timed(shell('sync "$1"', self._theirs)))

    def _we_archive(self) -> None:
        self._note("archive: packing alone", timed(lambda: uvloop.run(pack_to(self._home, self._scratch / "packed"))))
        uvloop.run(service.delete(self._store, f"{BASE}/home.tar.zst"))
        archive = timed(
            lambda: uvloop.run(service.archive(process.from_folder(self._home), self._store, BASE, now=NOW))
        )
        self._note("archive: ours, to disk and read back", archive)

    def _empty(self) -> Path:
        """A new one each time: removing 200,000 files keeps a disk busy long after it is said to be done."""
        back = Path(tempfile.mkdtemp(prefix="back", dir=self._scratch))
        os.sync()  # what others left to write is not ours to pay for
        return back

    def _tar_restores(self) -> None:
        back = self._empty()
        plain = timed(shell('zstd -q -dc "$1" | tar -xpf - -C "$2"', self._theirs, back))
        self._note("restore: zstd -d | tar", plain)
        self._note("restore: zstd -d | tar, sync", plain + timed(shell('sync -f "$1"', back)))

    def _we_restore(self) -> None:
        back = self._empty()
        restore = service.restore(self._store, f"{BASE}/home.tar.zst", process.into_folder(back, None, QUOTA), QUOTA)
        self._note("restore: ours, checked and to disk", timed(lambda: uvloop.run(restore)))


async def pack_to(home: Path, target: Path) -> None:
    async with process.packing(home, no_progress) as worker:
        with target.open("wb") as file:
            async for chunk in worker.output():
                file.write(chunk)


def show(title: str, size: int, seconds: dict[str, list[float]]) -> None:
    print(f"\n{title}: {size / MEGABYTE:.0f} MB, {len(next(iter(seconds.values())))} rounds")
    print(f"  {'':40} {'median':>8} {'spread':>15} {'MB/s':>7} {'of plain':>9} {'of synced':>9}")
    for name, values in seconds.items():
        job = name.split(":")[0]
        plain, synced = (next(v for n, v in seconds.items() if n.startswith(job) and n.endswith(end)) for end in ENDS)
        median = statistics.median(values)
        spread = f"{min(values):.2f}–{max(values):.2f} s"
        ratios = [statistics.median(a / b for a, b in zip(base, values, strict=True)) for base in (plain, synced)]
        rate = size / MEGABYTE / median
        print(f"  {name:40} {median:6.2f} s {spread:>15} {rate:7.0f} {ratios[0]:8.2f}× {ratios[1]:8.2f}×")


ENDS = (("-T0", "| tar"), ("sync",))


def race(title: str, rounds: int, where: Path | None, grow: Callable[[Path], None]) -> None:
    for scratch in scratch_folder(where):
        home = scratch / "home"
        home.mkdir()
        grow(home)
        size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
        contest = Race(home, scratch)
        for number in range(rounds + 1):
            contest.run(number)
            if number == 0:
                contest.seconds.clear()  # the first fills the caches
        show(title, size, contest.seconds)


def scratch_folder(where: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="codehub-bench-", dir=where))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def memory(sizes: list[int], where: Path | None) -> None:
    """Each size in a process of its own: the kernel keeps a peak for the life of a process."""
    print("\npeak memory, MB (the process that transfers, its worker)")
    for megabytes in sizes:
        for scratch in scratch_folder(where):
            (scratch / "home").mkdir()
            grow_large(scratch / "home", megabytes)
            peaks = {}
            for job in ("archive", "restore"):
                command = [sys.executable, __file__, "--measure", job, "--where", str(scratch)]
                peaks[job] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            shown = "   ".join(f"{job} {own:4.0f} + {worker:4.0f}" for job, (own, worker) in peaks.items())
            print(f"  {megabytes:6} MB   {shown}", flush=True)


def peak_of(pid: int | str) -> float:
    """The most that a process has had in memory; the kernel's `ru_maxrss` would count its parent's, too."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


async def watch_workers(peaks: list[float]) -> None:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    while True:
        for pid in children.read_text().split():  # noqa: ASYNC240 - it is memory, not a disk
            with contextlib.suppress(OSError):  # it has just ended
                peaks.append(peak_of(pid))
        await asyncio.sleep(0.02)


async def measure(job: str, scratch: Path) -> None:
    store = open_store(f"file://{scratch}/objects")
    workers: list[float] = []
    watching = asyncio.create_task(watch_workers(workers))
    if job == "archive":
        await service.archive(process.from_folder(scratch / "home"), store, BASE, now=NOW)
    else:
        (scratch / "back").mkdir()
        await service.restore(store, f"{BASE}/home.tar.zst", process.into_folder(scratch / "back", None, QUOTA), QUOTA)
    watching.cancel()
    print(json.dumps([peak_of("self"), max(workers)]))


def main() -> int:
    parser = argparse.ArgumentParser(description="Archives beside tar and zstd.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--megabytes", type=int, default=1200)
    parser.add_argument("--only", choices=["large", "small", "memory"])
    parser.add_argument("--five-gigabytes", action="store_true", help="measure memory up to 5 GB, which takes a while")
    parser.add_argument("--where", type=Path, help="the directory to work in; it decides the disk")
    parser.add_argument("--measure", choices=["archive", "restore"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        asyncio.run(measure(given.measure, given.where))
        return 0
    if not (shutil.which("tar") and shutil.which("zstd")):
        print("tar and zstd are what this is compared with; install them first")
        return 1
    if given.only in {None, "large"}:
        race("few large files", given.rounds, given.where, lambda home: grow_large(home, given.megabytes))
    if given.only in {None, "small"}:
        race(f"{given.files:,} small files", given.rounds, given.where, lambda home: grow_small(home, given.files))
    if given.only in {None, "memory"}:
        memory([100, 1000, 5000] if given.five_gigabytes else [100, 500, 1000], given.where)
    return 0


if __name__ == "__main__":
    sys.exit(main())
