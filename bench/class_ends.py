"""A class ends: 60 workspaces are stored away at the same moment while 10 people wake theirs; beside quiet rounds.

A real platform on this machine with a small IDE. A quiet round wakes ten, a busy one does the same while sixty homes
are being packed; they alternate. Packers are counted as processes, many times a second; the coordinator's memory is
what the kernel says it has.

    python bench/class_ends.py [--rounds N] [--class N] [--megabytes N]
"""

import argparse
import asyncio
import contextlib
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field

import aiohttp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.platform import Platform, descendants
from tests.workspaces.ides import write_templates

from bench._platform import Api
from codehub.runtimes.layout import Layout
from codehub.settings import CoordinatorConfig

WAKES = 10
ALLOWED = 3.0  # times a quiet wake
WORKER = "codehub.archives.worker"
MANY = "1000000"
PAUSE = 0.05  # seconds between two looks at whether it is so


@dataclass
class Watch:
    """What was seen of the coordinator: packers at a time, and its memory in MB."""

    supervisor: int  # its process
    packers: list[int] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    async def look(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(0.05)

    def _look(self) -> None:
        workers = {pid: parent for pid, parent, command in _processes() if WORKER in command and '"pack"' in command}
        coordinators = set(descendants(self.supervisor))  # others on this machine may pack, too
        parents = coordinators - set(workers)  # a worker has a child that counts
        ours = {pid: parent for pid, parent in workers.items() if parent in parents}
        self.packers.append(len(ours))
        for parent in set(ours.values()):
            with contextlib.suppress(OSError, StopIteration):
                lines = pathlib.Path(f"/proc/{parent}/status").read_text(encoding="utf-8").splitlines()
                resident = next(line for line in lines if line.startswith("RssAnon"))
                self.memory.append(int(resident.split()[1]) / 1024)


def _processes() -> list[tuple[int, int, str]]:
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                found.append((int(entry.name), int(stat.rpartition(")")[2].split()[1]), command))
    return found


class Lesson(Api):
    def __init__(self, platform: Platform, client: aiohttp.ClientSession, megabytes: int) -> None:
        super().__init__(client)
        self._platform = platform
        self._megabytes = megabytes

    async def make(self, count: int) -> list[str]:
        made = [
            str((await self.ask("POST", "/workspaces", name="b", template="tiny", desired_state="STANDBY"))["id"])
            for _ in range(count)
        ]
        for id_ in made:
            await self.until(id_, "STANDBY", PAUSE)
            home = Layout(self._platform.data_dir).of(id_).home
            (home / "noise").write_bytes(os.urandom(self._megabytes * 500_000))
            (home / "text").write_bytes(b"def answer():\n    return 42\n" * (self._megabytes * 500_000 // 28))
        return made

    async def ask_all(self, ids: list[str], desired: str) -> None:
        await asyncio.gather(*(self.ask("PATCH", f"/workspaces/{id_}", desired_state=desired) for id_ in ids))

    async def wake(self, id_: str) -> float:
        begun = time.perf_counter()
        await self.ask("PATCH", f"/workspaces/{id_}", desired_state="RUNNING")
        await self.until(id_, "RUNNING", PAUSE)
        return time.perf_counter() - begun

    async def wake_one_after_the_other(self, ids: list[str]) -> list[float]:
        """As people come; each is put to sleep again at the end, so that the next round finds them as this one did."""
        seconds = [await self.wake(id_) for id_ in ids]
        await self.ask_all(ids, "STANDBY")
        for id_ in ids:
            await self.until(id_, "STANDBY", PAUSE)
        return seconds


async def race(platform: Platform, rounds: int, size: int, megabytes: int) -> int:
    assert platform.process
    quiet, busy, watch = [], [], Watch(platform.process.pid)
    bound = CoordinatorConfig().max_concurrent_packs
    async with platform.client() as client:
        lesson = Lesson(platform, client, megabytes)
        people = await lesson.make(WAKES)
        classes = [await lesson.make(size) for _ in range(rounds)]
        await lesson.wake_one_after_the_other(people)  # the first start of a day is no measure
        looking = asyncio.create_task(watch.look())
        took = []
        for class_ in classes:
            quiet += await lesson.wake_one_after_the_other(people)
            begun = time.perf_counter()
            await lesson.ask_all(class_, "ARCHIVED")
            busy += await lesson.wake_one_after_the_other(people)
            for id_ in class_:
                await lesson.until(id_, "ARCHIVED", pause=0.3)
            took.append(time.perf_counter() - begun)
        looking.cancel()
    ratio = statistics.median(busy) / statistics.median(quiet)
    first, last = watch.memory[0], statistics.median(watch.memory[-20:])
    print(f"{rounds} rounds, a class of {size}, homes of {megabytes} MB; {len(watch.packers)} looks")
    print(f"  wake, quiet       {statistics.median(quiet):6.2f} s   ({min(quiet):.2f}–{max(quiet):.2f})")
    print(f"  wake, class ends  {statistics.median(busy):6.2f} s   ({min(busy):.2f}–{max(busy):.2f})")
    print(f"  ratio             {ratio:6.2f}     (at most {ALLOWED:g})")
    print(f"  packers at a time {max(watch.packers):6}     (at most {bound})")
    most = max(watch.memory)
    print(f"  coordinator       {first:6.1f} MB at the first packer, {most:.1f} at most, {last:.1f} at the end")
    print(f"  all stored away after {statistics.median(took):.1f} s")
    return int(ratio > ALLOWED or max(watch.packers) > bound)


def main() -> int:
    parser = argparse.ArgumentParser(description="A class ends while others wake.")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--class", type=int, default=60, dest="size")
    parser.add_argument("--megabytes", type=int, default=6)
    given = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-"))
    folder.chmod(0o755)
    templates = str(write_templates(folder / "templates"))
    platform = Platform(
        folder / "data",
        CODEHUB_TEMPLATES_DIR=templates,
        CODEHUB_MAX_RUNNING_PER_USER="0",
        CODEHUB_MAX_WORKSPACES_PER_USER=MANY,
        CODEHUB_MAX_CHANGES_PER_MINUTE=MANY,
        CODEHUB_MAX_CREATIONS_PER_MINUTE=MANY,
    )
    try:
        platform.start()
        return asyncio.run(race(platform, given.rounds, given.size, given.megabytes))
    finally:
        platform.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
