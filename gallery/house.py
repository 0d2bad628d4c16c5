"""A platform that runs, and what is in it: two schools, each with a class on its way, workspaces in every state, lines.

Everything is made by the API, as people and programs make it. Only figures of the past, which nobody can make today,
are written into the database.
"""

import asyncio
import contextlib
import datetime as dt
import pathlib
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from tests.monitoring import figures
from tests.platform import Platform

from codehub.db import Database
from codehub.embedded.servers import reachable
from codehub.settings import load
from gallery.words import RIGHT, WORDS, WRONG, Words, course

PASSWORD = "a lamp over the river"  # noqa: S105
TEMPLATES = {
    # One that takes its time, for the page that waits for it; and one that cannot start.
    "learning": ("Machine learning", "머신 러닝", "For large models: takes a while to start.",
                 "큰 모델을 다룰 때 씁니다. 시작하는 데 시간이 조금 걸립니다.", 'command = ["sleep", "86400"]'),
    "chatbot": ("Chatbot kit", "챗봇 키트", "Talks to people, once its libraries are there.",
                "라이브러리를 설치하면 사람과 대화하는 프로그램을 만들 수 있습니다.",
                'command = ["python3", "-c", "import numpy_that_is_not_installed"]'),
}  # fmt: skip
SETTINGS = {
    "CODEHUB_MAX_RUNNING_PER_USER": "4",
    "CODEHUB_MAX_CREATIONS_PER_MINUTE": "0",
    "CODEHUB_DRAIN_SECONDS": "1",
    "COORDINATOR_ACTIVE_INTERVAL": "1",
}
ARCHIVES = 110_000  # bytes that the workspaces stored away here take: the past leads there
PATIENCE = 180.0  # seconds for a workspace to get where it is wanted


def write_templates(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (title, title_ko, about, about_ko, command) in TEMPLATES.items():
        (folder / f"{name}.toml").write_text(
            f'title = "{title}"\ndescription = "{about}"\nactivity_profile = "plain"\nready = "/"\n'
            f'[process]\n{command}\n[ko]\ntitle = "{title_ko}"\ndescription = "{about_ko}"\n',
            encoding="utf-8",
        )
    return folder


@dataclass
class Caller:
    """The API, as one person's program."""

    client: aiohttp.ClientSession

    async def __call__(self, method: str, path: str, *expected: int, **body: Any) -> Any:
        async with self.client.request(method, f"/api/v1{path}", json=body or None) as answer:
            said = None if answer.status == 204 else await answer.json()
            if answer.status not in (expected or (200, 201, 202, 204)):
                raise RuntimeError(f"{method} {path}: {answer.status} {said}")
            return said


@dataclass
class Cast:
    """One school: who plays in its pictures, and the ids that addresses are made of."""

    words: Words
    facts: dict[str, str] = field(default_factory=dict)

    def path(self, path: str) -> str:
        return path.format(**self.facts)


@dataclass
class House:
    platform: Platform
    casts: dict[str, Cast]
    stack: contextlib.AsyncExitStack

    async def caller(self, name: str | None = None) -> Caller:
        """Somebody's program; the operator's without a name."""
        admin = Caller(await self.stack.enter_async_context(self.platform.client()))
        if name is None:
            return admin
        token = (await admin("POST", f"/users/{name}/tokens", label="gallery"))["token"]
        return Caller(await self.stack.enter_async_context(self.platform.client(token)))

    async def login_link(self, name: str) -> str:
        said: str = (await (await self.caller())("POST", f"/users/{name}/login-links"))["url"]
        return said.replace("127.0.0.1", "localhost")


@contextlib.asynccontextmanager
async def opened(platform: Platform) -> AsyncIterator[House]:
    async with contextlib.AsyncExitStack() as stack:
        yield House(platform, {language: Cast(words) for language, words in WORDS.items()}, stack)


async def furnish(house: House) -> None:
    admin = await house.caller()
    for cast in house.casts.values():
        await open_class(house, cast, admin)
        await learn(house, cast)
        await make_workspaces(house, cast)
        await make_lines(house, cast)
        await make_others(house, cast, admin)
    await write_figures(house.platform.data_dir)


async def open_class(house: House, cast: Cast, admin: Caller) -> None:
    words, facts = cast.words, cast.facts
    for (name, called), role in ((words.teacher, "teacher"), (words.learner, "learner")):
        await admin("POST", "/users", name=name, role=role, display_name=called, password=PASSWORD)
    teacher = await house.caller(words.teacher[0])
    facts["class_id"] = (await teacher("POST", "/classes", title=words.class_title))["id"]
    people = f"/classes/{facts['class_id']}"
    for called in words.learners:
        await teacher("POST", f"{people}/people", display_name=called)
    await teacher("POST", f"{people}/members", name=words.learner[0])
    facts["code"] = (await teacher("POST", f"{people}/invitations", max_uses=30))["code"]
    facts["course_id"] = (await teacher("POST", "/courses", **course(words)))["id"]
    began = dt.datetime.now(dt.UTC).date() - dt.timedelta(days=6)
    given = {"course_id": facts["course_id"], "starts_on": began.isoformat()}
    await teacher("POST", f"{people}/assignments", **given)
    members = (await teacher("GET", f"{people}/members"))["items"]
    facts["learners"] = " ".join(m["name"] for m in members if m["role"] == "learner" and m["name"] != words.learner[0])


async def learn(house: House, cast: Cast) -> None:
    """Most are at the third evening, one is far ahead, one answers wrongly, two ask for help."""
    words = cast.words
    names = cast.facts["learners"].split()
    ahead = [3, 2, 2, 3, 2, 4, 2, 1, 2, 3, 2, 0, 2]
    for place, name in enumerate(names):
        learner = await house.caller(name)
        sessions = await its_sessions(learner, words.course_title)
        for session in sessions[: ahead[place]]:
            run = await learner("POST", f"/sessions/{session['id']}/runs")
            for index, state in enumerate(({}, RIGHT, {})):
                await complete(learner, run, index, state)
        if place % 5 == 4 or not ahead[place]:
            continue  # did not begin the next one yet
        run = await learner("POST", f"/sessions/{sessions[ahead[place]]['id']}/runs")
        if place % 3 == 1:
            await complete(learner, run, 0, {})
        if place == 7:
            await complete(learner, run, 0, {})
            for _ in range(3):
                await complete(learner, run, 1, WRONG, 422)
        if place in (2, 6):
            await learner("POST", f"/runs/{run['id']}/help", message=words.hands[place == 6])
        if place == 2:
            cast.facts["asking"] = name
            cast.facts["board_session"] = run["session_id"]


async def its_sessions(learner: Caller, title: str) -> list[dict[str, Any]]:
    plans = (await learner("GET", "/plans"))["items"]
    (plan,) = [one for one in plans if one["title"] == title]
    found: list[dict[str, Any]] = (await learner("GET", f"/plans/{plan['id']}"))["sessions"]
    return found


async def complete(learner: Caller, run: dict[str, Any], index: int, state: Any, *expected: int) -> None:
    path = f"/runs/{run['id']}/steps/{index}/complete"
    await learner("POST", path, *expected, fence=run["fence"], state=state)


async def make_workspaces(house: House, cast: Cast) -> None:
    learner = await house.caller(cast.words.learner[0])
    runs, asleep, stored, pending, wrong = cast.words.workspaces
    made = {
        "runs": (runs, "jupyterlab", "RUNNING"),
        "asleep": (asleep, "terminal", "RUNNING"),
        "stored": (stored, "terminal", "RUNNING"),
        "pending": (pending, "terminal", "STANDBY"),
        "wrong": (wrong, "chatbot", "RUNNING"),
        "slow": (cast.words.slow, "learning", "STANDBY"),
    }
    for key, (name, template, state) in made.items():
        said = await learner("POST", "/workspaces", name=name, template=template, desired_state=state)
        cast.facts[key] = said["id"]
    for key in ("runs", "asleep", "stored"):
        await arrive(learner, cast.facts[key], "RUNNING")
    await learner("PATCH", f"/workspaces/{cast.facts['asleep']}", desired_state="STANDBY")
    await learner("PATCH", f"/workspaces/{cast.facts['stored']}", desired_state="ARCHIVED")
    await arrive(learner, cast.facts["asleep"], "STANDBY")
    await arrive(learner, cast.facts["stored"], "ARCHIVED")
    await arrive(learner, cast.facts["wrong"], "ERROR")
    names = cast.facts["learners"].split()
    for name in names[:5]:
        one = await house.caller(name)
        await one("POST", "/workspaces", name=runs, template="terminal", desired_state="STANDBY")
    await learner("POST", f"/workspaces/{cast.facts['runs']}/shares", user=cast.words.teacher[0])


async def arrive(learner: Caller, id_: str, phase: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            said = await learner("GET", f"/workspaces/{id_}")
            if said["phase"] == phase and said["operation"] == "NONE":
                return
            await asyncio.sleep(0.2)


async def make_lines(house: House, cast: Cast) -> None:
    """One in which everybody waits, and one whose turn has come."""
    teacher = await house.caller(cast.words.teacher[0])
    full, free = cast.words.workshop, f"{cast.words.workshop}-2"
    cast.facts |= {"full": full, "free": free}
    await teacher("PUT", f"/queue/events/{full}", capacity=0)
    await teacher("PUT", f"/queue/events/{free}", capacity=3)


async def make_others(house: House, cast: Cast, admin: Caller) -> None:
    """Somebody who has nothing yet, and somebody all of whose names are long."""
    words = cast.words
    for name, called in (words.newcomer, words.longest):
        await admin("POST", "/users", name=name, role="teacher", display_name=called, password=PASSWORD)
    longest = await house.caller(words.longest[0])
    made = await longest("POST", "/workspaces", name=words.long_title, template="terminal", desired_state="STANDBY")
    cast.facts["long_workspace"] = made["id"]
    await longest(
        "POST", "/workspaces", name=words.long_title.replace(" ", "-"), template="terminal", desired_state="STANDBY"
    )
    cast.facts["long_class"] = (await longest("POST", "/classes", title=words.long_title))["id"]
    people = f"/classes/{cast.facts['long_class']}"
    await longest("POST", f"{people}/people", display_name=words.longest[1])
    await longest("POST", f"{people}/invitations", max_uses=30)
    days = {"weekdays": ["mon", "wed"], "time": "18:30", "time_zone": "Europe/Berlin"}
    await longest("POST", f"{people}/schedules", **days)
    given = {"course_id": cast.facts["course_id"], "starts_on": dt.datetime.now(dt.UTC).date().isoformat()}
    await longest("POST", f"{people}/assignments", **given)


async def stand_in_line(house: House, cast: Cast) -> None:
    """Who says nothing for minutes has left: right before the line is looked at."""
    admin = await house.caller()
    for name in cast.facts["learners"].split()[:7]:
        await admin("POST", "/queue/join", event_id=cast.facts["full"], user_id=name)


async def write_figures(data_dir: pathlib.Path) -> None:
    settings = load({"CODEHUB_DATA_DIR": str(data_dir)})
    async with reachable(settings) as urls:
        database = await Database.open(urls.database, size=2)
        try:
            free = shutil.disk_usage(data_dir).free
            await figures.furnish(database, dt.datetime.now(dt.UTC), archives=ARCHIVES, free=free)
        finally:
            await database.close()


async def prepare_lessons(learner: Caller, admin: Caller, cast: Cast) -> None:
    """Of the Python course that comes with the product: the first at its practice, the second at its questions."""
    found = (await admin("GET", "/courses?limit=50"))["items"]
    (course,) = [one for one in found if one["title"] == cast.words.shipped]
    sessions = (await learner("POST", f"/courses/{course['id']}/plans"))["sessions"]
    cast.facts |= {f"lesson{n}": one["id"] for n, one in enumerate(sessions, 1)}
    cast.facts |= {"shipped_id": course["id"], "plan_id": sessions[0]["plan_id"]}
    source = await admin("GET", f"/courses/{course['id']}/source")
    for place, steps in ((0, 2), (1, 1)):
        run = await learner("POST", f"/sessions/{sessions[place]['id']}/runs")
        for index in range(steps):
            state = {"answers": right_answers(source["sessions"][place])} if index else {}
            path = f"/runs/{run['id']}/steps/{index}/complete"
            await learner("POST", path, fence=run["fence"], state=state)


def right_answers(session: dict[str, Any]) -> dict[str, Any]:
    questions = session["blueprint"]["checkQuestions"]
    return {
        one["id"]: one["answer"][0] if one["kind"] == "text" and isinstance(one["answer"], list) else one["answer"]
        for one in questions
    }
