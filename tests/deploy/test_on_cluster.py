"""The chart on the cluster of `make cluster`: a class goes its whole way, then pods and servers are killed and versions
changed under load. Prints how long nobody was answered.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
from playwright.async_api import Locator, Page, expect

from tests.activity.test_hold_in_terminals import path_of_terminal, type_into
from tests.archives import trees
from tests.browser.conftest import IN_ONE_LOOP
from tests.browser.conftest import Lab as Visitors
from tests.browser.test_full_lab import all_get_a_place
from tests.browser.test_newcomers import (
    WORDS,
    a_class_is_made,
    a_learner_joins,
    lesson_in,
    questions_are_answered,
    somebody,
    texts_are_read,
    the_practice_is_done,
)
from tests.deploy.helm import render
from tests.deploy.lab import IMAGE, NAMESPACE, NEXT, ROLES, RUNNING_AT_ONCE, Front, Lab
from tests.deploy.requests import Requests
from tests.failover.load import Load
from tests.faults.test_killed_platform import everybody
from tests.runtimes.test_docker_platform import make, typed, until_phase, wish

pytestmark = [pytest.mark.cluster, IN_ONE_LOOP]
SECONDS = 900  # for anything here, on a machine that is busy with other things
ANSWERED_AGAIN = 10.0  # seconds: what we promise
CAPACITY = 10
PLACES = "SELECT count(*) FROM waiting_places WHERE event_id = '{}' AND state IN ('reserved', 'held')"


def test_the_server_takes_what_the_chart_renders(front: Front, lab: Lab) -> None:
    for one in render(namespace=NAMESPACE):
        lab.kubectl("apply", "--dry-run=server", "-f", "-", given=json.dumps(one))


async def test_three_of_each_are_ready_one_coordinator_leads_and_the_doctor_finds_nothing(
    front: Front, lab: Lab
) -> None:
    assert {role: len(lab.ready(role)) for role in ROLES} == dict.fromkeys(ROLES, 3)
    async with front.client() as client:
        async with client.get("/readyz") as answer:
            assert (await answer.json())["ready"]
        async with client.get("/api/v1/admin/loops") as answer:
            assert (await answer.json())["leader"].startswith("codehub-coordinator-")
    assert "/login/" in lab.kubectl("exec", "deploy/codehub-api", "--", "codehub", "user", "login-link", "admin")
    looked = lab.kubectl.try_("exec", "deploy/codehub-coordinator", "--", "codehub", "doctor", "--json").stdout
    checks = json.loads(looked)["checks"]
    assert [check for check in checks if check["level"] == "fail"] == []
    assert {"cluster", "rights"} <= {check["name"] for check in checks}


# --- a class


async def test_a_class_goes_from_the_code_on_the_wall_to_homes_that_come_back_from_their_archives(
    front: Front, lab: Lab, visitors: Visitors
) -> None:
    words = WORDS["en"]
    lesson, line = lesson_in("en")
    async with asyncio.timeout(SECONDS), somebody(visitors, words) as teacher, somebody(visitors, words) as learner:
        address, code = await a_class_is_made(teacher, await visitors.login_link("kim", "teacher"), words)
        await a_learner_joins(learner, address, code, words)
        await texts_are_read(learner, lesson, words)
        await questions_are_answered(learner, lesson.blueprint.check_questions, words)
        await the_practice_is_done(learner, line, words)
        await learner.goto("/")
        id_ = await only_workspace(front, "mina")
        await visitors.put_to_sleep(id_)
        await _opens_and_finds(learner, id_, "01-hello")  # it wakes
        await learner.goto("/")
        await visitors.put_to_sleep(id_)
        home = await asyncio.to_thread(trees.without_owner, lab.home_of(id_))
        assert b"01-hello/card.py" in home
        async with front.client() as admin:
            assert (await wish(admin, id_, "ARCHIVED"))["archive_key"]
            assert await asyncio.to_thread(lab.left_of, id_) == []
            await wish(admin, id_, "STANDBY")
        assert await asyncio.to_thread(trees.without_owner, lab.home_of(id_)) == home
        await _opens_and_finds(learner, id_, "01-hello")
        await learner.goto("/")
        await visitors.put_to_sleep(id_)


async def only_workspace(front: Front, owner: str) -> str:
    async with front.client() as admin, admin.get("/api/v1/workspaces", params={"owner": owner}) as answer:
        (found,) = (await answer.json())["items"]
        return str(found["id"])


async def _opens_and_finds(page: Page, id_: str, name: str) -> None:
    """In JupyterLab's list of files."""
    await page.goto(f"/open/{id_}", wait_until="commit")
    ide = page.frame_locator("#ide")
    await expect(ide.get_by_role("listitem").filter(has_text=name).first).to_be_visible(timeout=SECONDS * 1000)


async def test_who_finds_no_place_waits_in_line_learns_meanwhile_and_gets_in_once(visitors: Visitors) -> None:
    async with asyncio.timeout(SECONDS):
        await all_get_a_place(visitors, places=RUNNING_AT_ONCE, people=5, browsers=1)


# --- losses


@contextlib.asynccontextmanager
async def a_workspace(front: Front) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """With a shell in it that remembers a number."""
    async with front.client() as client:
        id_ = await make(client, "terminal")
        await until_phase(client, id_, "RUNNING")
        await typed(front, "terminal", id_, "remembered=6006; head -c 3000000 /dev/urandom > noise")
        yield client, id_
        async with client.delete(f"/api/v1/workspaces/{id_}", params={"purge": "true"}) as answer:
            assert answer.status == 202


async def still_remembers(front: Front, id_: str) -> bool:
    """The very same shell does; what it printed before comes first."""
    async with front.client() as client:
        path = await path_of_terminal(client, "terminal", f"/w/{id_}/")
        async with asyncio.timeout(SECONDS), client.ws_connect(path, origin=front.url) as terminal:
            return "42042" in await type_into(terminal, "echo $((remembered * 7))\r", "42042")


@contextlib.asynccontextmanager
async def under_load(front: Front, lab: Lab, event: str) -> AsyncIterator[tuple[Requests, Load]]:
    """Afterwards nothing that was acknowledged is lost, and no place given twice."""
    async with (
        front.client() as client,
        client.put(f"/api/v1/queue/events/{event}", json={"capacity": CAPACITY}) as answer,
    ):
        assert answer.status in {200, 201}, await answer.text()
    requests, load = Requests(front, f"{event}-new"), Load(front, event)
    async with requests.running(), load.running():
        while len(load.created) < 5 or not load.admitted:
            await asyncio.sleep(0.1)
        yield requests, load
        while len(load.admitted) < CAPACITY:
            await asyncio.sleep(0.2)
        await asyncio.sleep(3)  # the others go on asking
    assert {*load.created, *requests.created} - await everybody(front) == set()
    assert len(set(load.admitted)) == len(load.admitted) == CAPACITY
    primary = lab.beside.postgres.first if lab.beside.postgres.first.process else lab.beside.postgres.second
    assert await primary.ask(PLACES.format(event)) == CAPACITY


def processes_of(uid: str) -> list[int]:
    """Of a pod, as this host sees them."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"pod{uid}" in (folder / "cgroup").read_text():
                found.append(int(folder.name))
    return found


def kill(lab: Lab, pod: str) -> None:
    """All of its processes with -9, and then the cluster forgets it: as a machine that has lost its power."""
    seen = lab.kubectl.get("pod", pod)
    assert seen
    victims = processes_of(seen["metadata"]["uid"])
    assert victims
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    lab.kubectl("delete", "pod", pod, "--grace-period=0", "--force")


async def until_ready(lab: Lab, role: str, victim: str) -> None:
    while len(await asyncio.to_thread(lab.ready, role) - {victim}) < 3:
        await asyncio.sleep(1)


@pytest.mark.parametrize("role", ROLES)
async def test_each_pod_of_a_role_is_killed_and_nobody_loses_anything(front: Front, lab: Lab, role: str) -> None:
    silences = []
    async with asyncio.timeout(SECONDS), a_workspace(front) as (_, id_):
        before = lab.pod_of(id_)
        async with under_load(front, lab, f"lost-{role}") as (requests, _load):
            for victim in sorted(lab.ready(role)):
                begun = time.monotonic()
                await asyncio.to_thread(kill, lab, victim)
                await until_ready(lab, role, victim)
                silences.append(requests.longest_silence(begun))
        assert lab.pod_of(id_) == before
        assert await still_remembers(front, id_)
    print(f"\n{role}: each pod killed, nobody was answered for at most {_said(silences)}; {dict(requests.outcomes)}")
    assert max(silences) < ANSWERED_AGAIN


async def test_each_kind_of_server_is_lost_and_nobody_loses_anything(front: Front, lab: Lab) -> None:
    silences = {}
    async with asyncio.timeout(SECONDS), a_workspace(front) as (client, id_):
        before = lab.pod_of(id_)
        async with under_load(front, lab, "lost-servers") as (requests, load):
            for name, lose in {
                "Valkey": asyncio.to_thread(lab.beside.valkey.primary_of(f"{{{load.event}}}").kill),
                "PostgreSQL": lab.beside.postgres.fail_over(),
                "S3": asyncio.to_thread(lab.beside.store.kill),
            }.items():
                begun = time.monotonic()
                await lose
                await asyncio.sleep(20)
                silences[name] = requests.longest_silence(begun)
        assert lab.pod_of(id_) == before
        assert await still_remembers(front, id_)
        await _archived_once_the_store_is_back(client, lab, id_)
    print(f"\neach kind of server lost, nobody was answered for at most {silences}; {dict(requests.outcomes)}")
    assert max(silences.values()) < ANSWERED_AGAIN


async def _archived_once_the_store_is_back(client: aiohttp.ClientSession, lab: Lab, id_: str) -> None:
    await wish(client, id_, "STANDBY")
    home = await asyncio.to_thread(trees.without_owner, lab.home_of(id_))
    async with client.patch(f"/api/v1/workspaces/{id_}", json={"desired_state": "ARCHIVED"}) as answer:
        assert answer.status in {200, 202}
    await asyncio.sleep(5)
    await asyncio.to_thread(lab.beside.store.start)
    await _whatever_it_takes(client, id_, "ARCHIVED")
    assert await asyncio.to_thread(lab.left_of, id_) == []
    await wish(client, id_, "STANDBY")
    assert await asyncio.to_thread(trees.without_owner, lab.home_of(id_)) == home


async def _whatever_it_takes(client: aiohttp.ClientSession, id_: str, phase: str) -> None:
    """Also by hand, where it was given up meanwhile."""
    while True:
        async with client.get(f"/api/v1/workspaces/{id_}") as answer:
            found = await answer.json()
        if (found["phase"], found["operation"]) == (phase, "NONE"):
            return
        if found["phase"] == "ERROR":
            async with client.post(f"/api/v1/workspaces/{id_}/recover") as answer:
                assert answer.status < 500
        await asyncio.sleep(0.5)


def _said(seconds: list[float]) -> str:
    return ", ".join(f"{one:.1f} s" for one in seconds)


# --- versions


async def test_an_upgrade_and_the_way_back_fail_no_request_and_connections_come_back(
    front: Front, lab: Lab, visitors: Visitors
) -> None:
    async with (
        asyncio.timeout(2 * SECONDS),
        a_workspace(front) as (_, id_),
        visitors.somebody("admin", role="admin") as browser,
    ):
        page = await browser.new_page()
        await terminal_is_shown(page, id_)
        before = lab.pod_of(id_)
        for change in ("upgrade", "rollback"):
            pods = {role: lab.ready(role) for role in ROLES}
            requests = Requests(front, change)
            async with requests.running():
                if change == "upgrade":
                    await asyncio.to_thread(lab.upgrade, image={"repository": IMAGE, "tag": NEXT})
                else:
                    await asyncio.to_thread(lab.roll_back)
            for role in ROLES:
                assert not lab.ready(role) & pods[role]
            print(f"\n{change}: {dict(requests.outcomes)}")
            assert set(requests.outcomes) == {"GET 200", "POST 201"}, requests.outcomes
            assert lab.pod_of(id_) == before
            await terminal_answers(page)


async def terminal_is_shown(page: Page, id_: str) -> None:
    await page.goto(f"/open/{id_}", wait_until="commit")
    await expect(_screen(page)).to_contain_text("remembered", timeout=SECONDS * 1000)


async def terminal_answers(page: Page) -> None:
    """In the same page, which has not been loaded again, from the same shell."""
    # What is typed while it is not connected is lost, so it is typed until it arrives.
    async with asyncio.timeout(SECONDS):
        while "42042" not in await _screen(page).inner_text():
            await page.frame_locator("#ide").locator("textarea").first.focus()
            await page.keyboard.type("echo $((remembered * 7))\n")
            await asyncio.sleep(2)
        while "42042" in await _screen(page).inner_text():
            await page.keyboard.type("clear\n")
            await asyncio.sleep(2)


def _screen(page: Page) -> Locator:
    return page.frame_locator("#ide").locator(".xterm-rows")
