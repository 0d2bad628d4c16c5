"""300 learners with open pages, over the real front door: how soon does a change reach those whom it concerns?

Two classes, of 200 and of 100. Each learner's page holds its event stream in another process and, when news comes,
asks for the page again as `static/codehub.js` does. Rounds alternate: one person's change, which reaches that person
alone; a course given to the class of 200, which reaches all of it; and a bare server that writes a line to as many
sockets, the limit.

    python bench/open_pages.py [--rounds 7]
"""

import argparse
import asyncio
import json
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import aiohttp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.platform import Platform, descendants, running

CLASSES = (200, 100)
TARGET_P99 = 1.0  # seconds, for the event
QUIET = 3.0  # seconds after a change
LONGEST = 60.0  # seconds, until the last page has to be there
LESSON = {"steps": ["LEARN", "COMPLETE"], "learningContent": ["# Hello"], "encouragement": "Done"}


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def memory(platform: Platform) -> dict[str, float]:
    """MB that are a role's own share, with its workers."""
    found: dict[str, float] = {}
    for name, pid in platform.children().items():
        role = next((role for role in ("api", "proxy") if role in name), None)
        for process in [pid, *descendants(pid)] if role else []:
            rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
            found[role or ""] = found.get(role or "", 0.0) + int(rollup.partition("\nPss:")[2].split()[0]) / 1024
    return found


class Load:
    """The process with the pages."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, line: str) -> bytes:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line.encode() + b"\n")
        return await asyncio.wait_for(self._process.stdout.readline(), 240)

    async def mark(self) -> Any:
        return json.loads(await self.ask("mark"))

    async def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        await asyncio.wait_for(self._process.wait(), 30)


async def started(script: str) -> asyncio.subprocess.Process:
    pipe, path = asyncio.subprocess.PIPE, pathlib.Path(__file__).with_name(script)
    return await asyncio.create_subprocess_exec(sys.executable, str(path), stdin=pipe, stdout=pipe, limit=2**24)


class School:
    def __init__(self, admin: aiohttp.ClientSession) -> None:
        self._admin = admin
        self.classes: list[tuple[str, list[str]]] = []
        self.tokens: dict[str, str] = {}
        self.cookies: dict[str, str] = {}
        self.workspaces: dict[str, str] = {}

    async def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self._admin.request(method, f"/api/v1{path}", json=body, headers=headers) as answer:
            told = await answer.json()
            assert answer.status < 300, told
            return told

    async def open(self) -> None:
        await self.ask("POST", "/users", {"name": "teacher", "role": "teacher"})
        self.tokens["teacher"] = (await self.ask("POST", "/users/teacher/tokens", {}))["token"]
        for number, size in enumerate(CLASSES):
            class_id = (await self.ask("POST", "/classes", {"title": f"C{number}"}, self.tokens["teacher"]))["id"]
            names = [f"c{number}-{n}" for n in range(size)]
            for name in names:
                await self.ask("POST", "/users", {"name": name, "role": "learner"})
                self.tokens[name] = (await self.ask("POST", f"/users/{name}/tokens", {}))["token"]
                await self.ask("POST", f"/classes/{class_id}/members", {"name": name})
                self.cookies[name] = await self.log_in(name)
            self.classes.append((class_id, names))

    async def log_in(self, name: str) -> str:
        """By a link, as a person does."""
        link = (await self.ask("POST", f"/users/{name}/login-links"))["url"]
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as browser,
            browser.post(link, allow_redirects=False) as answer,
        ):
            return answer.headers["set-cookie"].partition(";")[0]

    async def change_one(self, person: str, number: int) -> None:
        if person not in self.workspaces:
            new = {"name": "lab", "template": "terminal", "desired_state": "ARCHIVED"}
            self.workspaces[person] = (await self.ask("POST", "/workspaces", new, self.tokens[person]))["id"]
        else:
            await self.ask("PATCH", f"/workspaces/{self.workspaces[person]}", {"name": f"lab {number}"})

    async def course(self, number: int) -> str:
        session = {"key": "one", "title": "One", "day": 1, "blueprint": LESSON}
        body = {"title": f"Course {number}", "language": "en", "sessions": [session]}
        made: str = (await self.ask("POST", "/courses", body))["id"]
        return made


class Figures:
    def __init__(self) -> None:
        self.rounds: dict[str, list[list[float]]] = {}  # what → seconds, of each round
        self.strangers = 0

    def add(self, what: str, begun: float, moments: Sequence[float]) -> None:
        self.rounds.setdefault(what, []).append([moment - begun for moment in moments])

    def show(self, what: str) -> float:
        """The p99 of all."""
        rounds = self.rounds[what]
        values = [value for one in rounds for value in one]
        tails = [percentile(one, 0.99) for one in rounds]
        p99 = percentile(values, 0.99)
        print(
            f"{what}: n {len(values)}, p50 {percentile(values, 0.5) * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms, "
            f"of rounds {statistics.median(tails) * 1e3:.0f} ({min(tails) * 1e3:.0f} to {max(tails) * 1e3:.0f}) ms"
        )
        return p99


async def until_all(load: Load, wanted: set[str]) -> tuple[dict[str, float], dict[str, float], int]:
    """When each had its first event, and its last page; and the events of others."""
    events: dict[str, float] = {}
    pages: dict[str, float] = {}
    strangers, deadline = 0, time.monotonic() + LONGEST
    while time.monotonic() < deadline and not (wanted <= events.keys() and wanted <= pages.keys()):
        await asyncio.sleep(0.3)
        found = await load.mark()
        strangers += len(found["events"].keys() - wanted)
        events = {**{person: times[0] for person, times in found["events"].items()}, **events}
        pages |= {person: times[-1] for person, times in found["pages"].items()}
    missing = wanted - (events.keys() & pages.keys())
    assert not missing, f"{len(missing)} were not reached"
    return {p: events[p] for p in wanted}, {p: pages[p] for p in wanted}, strangers


async def rounds(school: School, load: Load, peer: int, count: int) -> Figures:
    figures = Figures()
    (class_id, many), (_, few) = school.classes
    _, writer = await asyncio.open_connection("127.0.0.1", peer)
    for number in range(count + 1):  # the first warms up
        course = await school.course(number)
        persons = (many[number], few[number])
        for person in persons:
            await school.change_one(person, number)
        await asyncio.sleep(QUIET)
        await load.mark()
        into = figures if number else Figures()
        for person in persons:
            begun = time.monotonic()
            await school.change_one(person, number + 1)
            events, pages, others = await until_all(load, {person})
            into.add("one person's change, event", begun, list(events.values()))
            into.add("one person's change, new page", begun, list(pages.values()))
            into.strangers += others
        begun = time.monotonic()
        await school.ask("POST", f"/classes/{class_id}/assignments", {"course_id": course}, school.tokens["teacher"])
        into.add("the class of 200 gets a course, answer", begun, [time.monotonic()])
        events, pages, others = await until_all(load, set(many))
        into.add("the class of 200 gets a course, event", begun, list(events.values()))
        into.add("the class of 200 gets a course, new page", begun, list(pages.values()))
        into.strangers += others
        await asyncio.sleep(QUIET)
        await load.mark()
        begun = time.monotonic()
        writer.write(b"tell\n")
        await asyncio.sleep(QUIET)
        into.add("bare broadcast to 300 sockets", begun, (await load.mark())["peer"])
        print(f"round {number}", flush=True)
    return figures


async def run(platform: Platform, count: int) -> bool:
    async with platform.client() as admin:
        school = School(admin)
        await school.open()
        bare, pages = await started("_bare_broadcast.py"), await started("_open_pages.py")
        assert bare.stdout
        peer = int(await bare.stdout.readline())
        load, before = Load(pages), memory(platform)
        learners = list(school.cookies.items())
        port = int(platform.url.rpartition(":")[2])
        assert (await load.ask(json.dumps({"port": port, "peer": peer, "pages": learners}))).startswith(b"open")
        after = memory(platform)
        figures = await rounds(school, load, peer, count)
        await load.close()
        assert bare.stdin
        bare.stdin.close()
        await bare.wait()
    for role, held in after.items():
        print(f"{role}: {before[role]:.0f} MB, with {len(learners)} open pages {held:.0f} MB: ", end="")
        print(f"{(held - before[role]) * 1024 / len(learners):.0f} KB a page")
    tails = {what: figures.show(what) for what in figures.rounds}
    event = tails["the class of 200 gets a course, event"]
    print(f"event to the class / bare broadcast, p99: {event / tails['bare broadcast to 300 sockets']:.1f}")
    print(f"events that reached people whom they do not concern: {figures.strangers}")
    return not figures.strangers and max(tails[t] for t in tails if t.endswith("event")) < TARGET_P99


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    limits = {"CODEHUB_LOG_LEVEL": "warning", "CODEHUB_DRAIN_SECONDS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o755)
        with running(pathlib.Path(folder) / "data", first_start=True, **limits) as platform:
            well = asyncio.run(run(platform, options.rounds))
    print("as it should be" if well else "NOT as it should be")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
