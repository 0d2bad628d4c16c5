"""Everything a person can make has a number, and nobody is told who exists."""

import asyncio
import contextlib
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator

import aiohttp
import pytest

from codehub import names
from codehub.command import operator
from codehub.db.redis import open_redis
from codehub.errors import RateLimitError
from codehub.policy import rules
from codehub.policy.model import ALL_SCOPES, Principal, Role, Scope
from codehub.rates import Rates
from codehub.settings import Settings
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving_with

LAB = {"name": "Lab", "template": "terminal", "desired_state": "ARCHIVED"}
PEOPLE = {"mina": Role.LEARNER, "jun": Role.LEARNER, "bora": Role.TEACHER}


@pytest.fixture(autouse=True)
async def people(site: Site) -> None:
    for name, role in PEOPLE.items():
        await site.services.people.create_user(operator(), name, role)


@contextlib.asynccontextmanager
async def program(site: Site, name: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with site.client(await site.token(name)) as client:
        yield client


async def post(client: aiohttp.ClientSession, path: str, **body: object) -> tuple[int, str]:
    async with client.post(path, json=body) as answer:
        if answer.status < 300:
            return answer.status, ""
        return answer.status, (await answer.json())["code"] + (" later" if "Retry-After" in answer.headers else "")


async def flood(client: aiohttp.ClientSession, path: str, times: int, **body: object) -> Counter[tuple[int, str]]:
    at_once = asyncio.Semaphore(20)  # each is to be answered in time, also by a busy machine

    async def one() -> tuple[int, str]:
        async with at_once:
            return await post(client, path, **body)

    return Counter(await asyncio.gather(*(one() for _ in range(times))))


async def workspace(client: aiohttp.ClientSession) -> str:
    async with client.post("/api/v1/workspaces", json=LAB) as answer:
        assert answer.status == 201
        id_: str = (await answer.json())["id"]
        return id_


MANY = (429, "RATE_LIMIT later")


async def test_three_hundred_workspaces_in_a_moment_are_sixty_and_never_more_than_a_hundred(
    site: Site, clock: ManualClock
) -> None:
    async with program(site, "mina") as mina:
        assert await flood(mina, "/api/v1/workspaces", 300, **LAB) == {(201, ""): 60, MANY: 240}
        await clock.advance(60)
        tried = await flood(mina, "/api/v1/workspaces", 60, **LAB)
        assert tried == {(201, ""): 40, (429, "WORKSPACE_LIMIT"): 20}
        async with mina.get("/api/v1/workspaces?limit=1") as answer:
            id_ = (await answer.json())["items"][0]["id"]
        await clock.advance(60)
        await (await mina.delete(f"/api/v1/workspaces/{id_}")).read()  # into the trash, where it still counts
        async with mina.post("/api/v1/workspaces", json=LAB) as answer:
            problem = await answer.json()
            assert (problem["code"], problem["workspaces"], problem["in_trash"]) == ("WORKSPACE_LIMIT", 100, 1)
    async with site.admin() as admin:
        assert await flood(admin, "/api/v1/workspaces", 110, **LAB) == {(201, ""): 110}


def test_who_looks_after_others_may_have_more() -> None:
    learner, teacher, admin = (Principal("x", role, ALL_SCOPES) for role in (Role.LEARNER, Role.TEACHER, Role.ADMIN))
    assert [rules.allowance(who, 7) for who in (learner, teacher, admin)] == [7, 70, None]
    assert rules.allowance(Principal("x", Role.ADMIN, frozenset({Scope.READ, Scope.WRITE})), 7) == 70
    assert rules.allowance(learner, 0) is None


async def test_access_tokens_are_counted(site: Site, clock: ManualClock) -> None:
    path = "/api/v1/users/mina/tokens"
    async with program(site, "mina") as mina, site.admin() as admin:
        assert await flood(mina, path, 70) == {(201, ""): 49, (429, "TOKEN_LIMIT"): 11, MANY: 10}
        async with admin.post(path) as answer:
            made = (await answer.json())["id"]  # the fifty-first
        await clock.advance(60)
        await mina.delete(f"{path}/{made}")
        assert await post(mina, path) == (429, "TOKEN_LIMIT")
        await clock.advance(91 * 86400)  # what has expired does not count
    async with program(site, "mina") as mina:
        assert await post(mina, path) == (201, "")


async def test_streams_are_counted_and_their_places_come_back(settings: Settings, clock: ManualClock) -> None:
    async with serving_with(settings, clock, max_streams_per_user=3, max_streams=4) as site:
        site.services.hub.start()
        async with program(site, "mina") as mina, program(site, "jun") as jun, contextlib.AsyncExitStack() as stack:
            follow = f"/api/v1/workspaces/{await workspace(mina)}/logs/follow"
            opened = [await stack.enter_async_context(mina.get("/api/v1/events")) for _ in range(3)]
            assert [answer.status for answer in opened] == [200] * 3
            assert await status(mina, "/api/v1/events") == (429, "10")
            assert await status(mina, follow) == (429, "10")
            other = await stack.enter_async_context(jun.get("/api/v1/events"))
            assert other.status == 200
            assert await status(jun, "/api/v1/events") == (429, "10")  # this process has no more
            for answer in (*opened, other):
                answer.close()
            async with asyncio.timeout(20):
                while (await status(mina, "/api/v1/events"))[0] != 200:
                    await asyncio.sleep(0.05)
            for _ in range(10):
                async with mina.head("/api/v1/events") as answer:
                    assert answer.status == 200
        await site.services.hub.stop()


async def status(client: aiohttp.ClientSession, path: str) -> tuple[int, str | None]:
    async with client.get(path) as answer:
        return answer.status, answer.headers.get("Retry-After")


async def test_nobodys_dashboard_is_filled_unasked(site: Site, settings: Settings, clock: ManualClock) -> None:
    async with program(site, "mina") as mina, site.admin() as admin:
        paths = [f"/api/v1/workspaces/{await workspace(mina)}/shares" for _ in range(15)]
        answers = await asyncio.gather(*(post(mina, path, user="jun") for path in paths))
        assert Counter(answers) == {(204, ""): 10, (429, "SHARE_LIMIT"): 5}
        assert await post(mina, paths[answers.index((204, ""))], user="jun") == (204, "")  # as it was
        assert await post(admin, paths[answers.index((429, "SHARE_LIMIT"))], user="jun") == (204, "")
    async with serving_with(settings, clock, max_shares_per_workspace=4) as small, program(small, "mina") as mina:
        path = f"/api/v1/workspaces/{await workspace(mina)}/shares"
        tried = await asyncio.gather(*(post(mina, path, user=f"somebody-{n}") for n in range(8)))
        assert Counter(tried) == {(204, ""): 4, (429, "SHARE_LIMIT"): 4}


async def test_sharing_does_not_tell_a_learner_who_exists(site: Site) -> None:
    async with program(site, "mina") as mina:
        path = f"/api/v1/workspaces/{await workspace(mina)}/shares"
        await site.services.people.change_user(operator(), "jun", role=None, active=False)
        seen = set()
        for user in ("bora", "jun", "nobody-at-all"):
            async with mina.post(path, json={"user": user}) as answer:
                told = {k: v for k, v in answer.headers.items() if k not in {"X-Request-ID", "Date"}}
                seen.add((answer.status, await answer.text(), str(told)))
            async with mina.get(path) as answer:
                (line,) = (s for s in (await answer.json())["items"] if s.pop("user") == user)
                seen.add((0, str(line), ""))
            async with mina.delete(f"{path}/{user}") as answer:
                assert answer.status == 204
        assert len(seen) == 2  # one kind of answer, one kind of line
        assert await post(mina, path, user="No Name") == (404, "NOT_FOUND")
    async with program(site, "bora") as teacher:
        path = f"/api/v1/workspaces/{await workspace(teacher)}/shares"
        assert await post(teacher, path, user="nobody-at-all") == (404, "NOT_FOUND")
        assert await post(teacher, path, user="mina") == (204, "")


async def test_what_changes_nothing_is_not_history(site: Site) -> None:
    async with program(site, "mina") as mina:
        id_ = await workspace(mina)
        history = f"/api/v1/workspaces/{id_}/history"

        async def request(state: str) -> None:
            async with mina.patch(f"/api/v1/workspaces/{id_}", json={"desired_state": state}) as answer:
                assert answer.status in {200, 202}

        async def lines() -> int:
            async with mina.get(history) as answer:
                return len((await answer.json())["items"])

        assert await lines() == 1
        for _ in range(5):
            await request("ARCHIVED")
        assert await lines() == 1
        for _ in range(5):
            await request("RUNNING")
        assert await lines() == 2
        await request("STANDBY")
        assert await lines() == 3


async def test_changes_are_as_many_as_a_minute_allows_wherever_they_are_asked_for(
    settings: Settings, clock: ManualClock
) -> None:
    async with serving_with(settings, clock, max_changes_per_minute=12) as site, program(site, "mina") as mina:
        id_ = await workspace(mina)
        tried = [await rename(mina, f"/api/v1/workspaces/{id_}") for _ in range(13)]
        assert tried == [(200, None)] * 11 + [(429, "5")] * 2
        async with site.browser("mina") as browser, browser.post(f"/do/{id_}/rename", data={"name": "A"}) as answer:
            assert answer.status == 429
        await clock.advance(5)
        assert [await rename(mina, f"/api/v1/workspaces/{id_}") for _ in range(2)] == [(200, None), (429, "5")]
        async with mina.get(f"/api/v1/workspaces/{id_}") as answer:
            assert answer.status == 200


async def rename(client: aiohttp.ClientSession, path: str) -> tuple[int, str | None]:
    async with client.patch(path, json={"name": "Lab"}) as answer:
        return answer.status, answer.headers.get("Retry-After")


async def test_a_clock_that_was_set_back_stops_nobody(redis_url: str, clock: ManualClock) -> None:
    async with open_redis(redis_url) as client:
        rates = Rates(client, clock)
        await rates.spend("x", "mina", 60)
        clock.set_back(3600)
        for _ in range(60):
            await rates.spend("x", "mina", 60)
        with pytest.raises(RateLimitError) as refused:
            await rates.spend("x", "mina", 60)
        assert refused.value.retry_after == 1


async def test_without_redis_nobody_is_stopped(redis_url: str, clock: ManualClock) -> None:
    async with open_redis(redis_url) as client:
        rates = Rates(client, clock)
        await rates.spend("x", "mina", 1)
        with pytest.raises(RateLimitError) as refused:
            await rates.spend("x", "mina", 1)
        assert refused.value.retry_after == 60
        await rates.spend("x", "jun", 1)
        await rates.spend("y", "mina", 1)
    async with open_redis("redis://127.0.0.1:9") as away:
        for _ in range(3):
            await Rates(away, clock).spend("x", "mina", 1)


BAD = [
    "Lab\u202etxt.exe",
    "La\u200bb",
    "Lab\u2066",
    "\ufeffLab",
    "L\u0085ab",
    "\u3164",
    "a\u200db",
    "Lab\U000e0041",
    "a\u2028b",
    "\u2800",
    "Lab\u2800",
    "\ufe0f",
    "a\ufe0f",
    "葛\U000e0100",
    "a\u034fb",
    "a\u17b4b",
    "\u115f\u1160",
    "Lab\uffa0",
    "\u0301" * 40,
    "a" + "\u0301" * 6,
    "Lab\U0001d159",
]
BLANK = [" ", "\u00a0", "\u3000 ", "\u0301"]
GOOD = [
    "데이터 분석 기초",
    "ㄱㄴㄷ",
    "Übung №3 — α≤β",
    "👩‍💻 실습",
    "❤️‍🔥",
    "👩🏽‍🚀",
    "שלום",
    "नमस्ते",
    "1️⃣ ©️",
    "☎︎",
    "Lab\u00a03",
    "tiếng Việt",
    "ที่นี่",
]


@pytest.mark.parametrize("name", [*BAD, *BLANK])
async def test_names_that_look_like_others_are_refused(site: Site, name: str) -> None:
    async with program(site, "mina") as mina:
        id_ = await workspace(mina)
        tries = [
            ("POST", "/api/v1/workspaces", {**LAB, "name": name}, "name"),
            ("PATCH", f"/api/v1/workspaces/{id_}", {"name": name}, "name"),
            ("POST", "/api/v1/users/mina/tokens", {"label": name}, "label"),
        ]
        for method, path, body, field in tries:
            async with mina.request(method, path, json=body) as answer:
                problem = await answer.json()
                assert (answer.status, [e["field"] for e in problem["errors"]]) == (400, [field])
    form = {"name": name}
    async with site.browser("mina") as browser, browser.post(f"/do/{id_}/rename", data=form) as answer:
        # What would begin a new line is a space to a form, and spaces alone are no name.
        assert ("problem=NAME" in str(answer.url)) == (name.split() in ([name], []))


@pytest.mark.parametrize("owner", ["", "\x00", "mi\x00na", "m" * 64, 7])
async def test_an_owner_who_cannot_be_is_refused(site: Site, owner: object) -> None:
    async with site.admin() as admin, admin.post("/api/v1/workspaces", json={**LAB, "owner": owner}) as answer:
        assert (answer.status, [e["field"] for e in (await answer.json())["errors"]]) == (400, ["owner"])


@pytest.mark.parametrize("name", GOOD)
def test_names_in_any_language_are_fine(name: str) -> None:
    assert names.complaint(name) is None


async def test_letters_that_were_taken_apart_are_kept_whole(site: Site) -> None:
    """macOS does that to Korean; both look the same, and a name has at most a hundred letters either way."""
    whole = "데이터 분석 " * 14
    apart = unicodedata.normalize("NFD", whole)
    assert len(apart) > 100
    async with program(site, "mina") as mina:
        async with mina.post("/api/v1/workspaces", json={**LAB, "name": apart}) as answer:
            assert (answer.status, (await answer.json())["name"]) == (201, whole)
        async with mina.post("/api/v1/workspaces", json={**LAB, "name": whole + "데이터"}) as answer:
            assert answer.status == 400
        async with mina.post("/api/v1/users/mina/tokens", json={"label": apart}) as answer:
            assert (answer.status, (await answer.json())["label"]) == (201, whole)
    async with site.browser("mina") as browser:
        form = {"name": apart, "template": "terminal"}
        async with browser.post("/do/create", data=form, allow_redirects=False) as answer:
            assert answer.status == 303
        async with browser.get("/api/v1/workspaces") as answer:
            assert {w["name"].strip() for w in (await answer.json())["items"]} == {whole.strip()}
