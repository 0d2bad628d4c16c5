"""A platform on which every text that a person can enter tries to become a part of the page.

Each begins with a word of its own, by which tests see that it was shown somewhere; what follows would end an
attribute, an element, a title or a script, and begin an element that no page of ours has.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from codehub.clock import Clock
from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from tests.courses.writing import course, made, session
from tests.sessions.learning import Learner
from tests.web.server import Site, serving_with

ELEMENT = "x-attack"
AGENT = "agent"  # the browser that a person says it is


def evil(kind: str) -> str:
    return f"{kind}\"'><{ELEMENT} onload=a()></title></script>"


QUESTION = {
    "id": "q",
    "kind": "single",
    "prompt": evil("prompt"),
    "choices": [{"id": "a", "text": evil("wrong")}, {"id": "b", "text": evil("right")}],
    "answer": "b",
    "feedback": {"a": evil("feedback")},
}
LESSON: dict[str, Any] = {
    "steps": ["LEARN", "CHECK", "COMPLETE"],
    "learningContent": [evil("reading"), f"[{evil('link')}](javascript:a())\n\n![{evil('picture')}](x:y)"],
    "checkQuestions": [
        QUESTION,
        {**QUESTION, "id": "t", "kind": "text", "choices": [], "answer": ["x"], "feedback": {}},
    ],
    "encouragement": evil("encouragement"),
}
# What is shown somewhere; a text that is not among these was not looked at.
KINDS = {
    *("template", "described", "workspace", "class", "teacher", "learner", "made", "course", "about", "lesson"),
    *("prompt", "wrong", "right", "reading", "hand", "said", "token", "passkey", "person", "typed"),
}


@dataclass(frozen=True)
class World:
    site: Site
    ids: Mapping[str, str]  # by what they are of

    @contextlib.asynccontextmanager
    async def everybody(self) -> AsyncIterator[dict[str, aiohttp.ClientSession]]:
        """Browsers that are logged in, by name; and nobody's."""
        async with contextlib.AsyncExitStack() as stack:
            browsers = {"nobody": await stack.enter_async_context(self.site.client())}
            for name in ("admin", "kim", "mina"):
                browsers[name] = await stack.enter_async_context(self.site.browser(name, **{"User-Agent": evil(AGENT)}))
            yield browsers


def write_template(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    quoted = [f"'''{evil(kind)}'''" for kind in ("template", "described")]
    text = f'title = {quoted[0]}\ndescription = {quoted[1]}\n[process]\ncommand = ["true", "{{socket}}"]\n'
    (folder / "evil.toml").write_text(text)
    return folder


@contextlib.asynccontextmanager
async def hostile_world(settings: Settings, clock: Clock, folder: pathlib.Path, **changes: Any) -> AsyncIterator[World]:
    runtime = dataclasses.replace(settings.runtime, templates_dir=write_template(folder / "hostile"))
    settings = dataclasses.replace(settings, runtime=runtime)
    async with serving_with(settings, clock, **changes) as site:
        people = site.services.people
        for name, role in (("kim", Role.TEACHER), ("mina", Role.LEARNER), ("jun", Role.LEARNER)):
            await people.create_user(operator(), name, role)
        async with contextlib.AsyncExitStack() as stack:
            kim, mina, jun, admin = [
                Learner(await stack.enter_async_context(site.client(await site.token(name, label=evil("token")))))
                for name in ("kim", "mina", "jun", "admin")
            ]
            ids = await _taught(kim, mina, jun, admin)
            ids |= await _kept(site, mina)
        yield World(site, ids)


async def _ok(who: Learner, method: str, path: str, body: object = None) -> Any:
    status, found = await who.ask(method, path, body)
    assert status < 300, (path, found)
    return found


async def _taught(kim: Learner, mina: Learner, jun: Learner, admin: Learner) -> dict[str, str]:
    """A class with a course, of which a learner has begun and asks."""
    for who, name, called in ((kim, "kim", "teacher"), (mina, "mina", "learner"), (admin, "jun", "person")):
        await _ok(who, "PATCH", f"/users/{name}", {"display_name": evil(called)})
    class_id = (await _ok(kim, "POST", "/classes", {"title": evil("class")}))["id"]
    for name in ("mina", "jun"):
        await _ok(kim, "POST", f"/classes/{class_id}/members", {"name": name})
    person = await _ok(kim, "POST", f"/classes/{class_id}/people", {"display_name": evil("made")})
    invitation = await _ok(kim, "POST", f"/classes/{class_id}/invitations")
    lesson = {**session("one", title=evil("lesson")), "blueprint": LESSON}
    more = {"description": evil("about"), "author": evil("author"), "title": evil("course")}
    written = await made(kim, course(lesson, session("two", title=evil("second")), **more))
    await _ok(kim, "POST", f"/classes/{class_id}/assignments", {"course_id": written["id"]})
    plan, run, hand = await _asks(mina, evil("asked"))
    await mina.complete(run, 0)
    await mina.complete(run, 1, {"answers": {"q": "a", "t": evil("typed")}})
    await _ok(kim, "POST", f"/classes/{class_id}/hands/{hand['id']}/answer", {"message": evil("said")})
    await _asks(jun, evil("hand"))
    return {
        "class": class_id,
        "person": person["name"],
        "code": invitation["code"],
        "course": written["id"],
        "plan": plan["id"],
        "session": run["session_id"],
        "run": run["id"],
        "fence": str(run["fence"]),
        "hand": hand["id"],
    }


async def _asks(learner: Learner, message: str) -> tuple[Any, Any, Any]:
    """Their plan, the run of its first session, and their hand."""
    (plan,) = (await learner.get("/plans"))["items"]
    run = await learner.started((await learner.get(f"/plans/{plan['id']}"))["sessions"][0]["id"])
    return plan, run, await _ok(learner, "POST", f"/runs/{run['id']}/help", {"message": message})


async def _kept(site: Site, mina: Learner) -> dict[str, str]:
    """Workspaces, one of them shared; a line; a passkey, as a browser would have made it."""
    new = {"name": evil("workspace"), "template": "evil", "desired_state": "STANDBY"}
    workspace = (await _ok(mina, "POST", "/workspaces", new))["id"]
    await _ok(mina, "POST", f"/workspaces/{workspace}/shares", {"user": "kim"})
    async with site.admin() as client:
        await _ok(Learner(client), "PUT", "/queue/events/exam", {"capacity": 1})
    async with site.services.database.connection() as c:
        running = "UPDATE workspaces SET observed_status = 'RUNNING', desired_state = 'RUNNING' WHERE id = $1"
        await c.execute(running, workspace)  # as far as pages know: nothing here starts one
        await c.execute(
            "INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count, label, belongs_to, created_at)"
            " SELECT 'passkey1', id, 'c', 'p', 0, $1, '127.0.0.1', now() FROM users WHERE name = 'mina'",
            evil("passkey"),
        )
    return {"workspace": workspace, "event": "exam"}
