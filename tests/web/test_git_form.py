"""A new workspace from a git address, by its form and by the API: what is taken, refused, shown, and asked again."""

import html
from datetime import datetime
from typing import Any

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.workspaces.repositories import sql
from tests.web.server import Site

URL = "https://git.example.org/team/project.git"
SECRET = "https://mina:hunter2@example.org/x.git"


async def call(client: aiohttp.ClientSession, method: str, path: str, status: int, **body: Any) -> Any:
    async with client.request(method, f"/api/v1{path}", json=body or None) as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()


async def page(client: aiohttp.ClientSession, path: str = "/", language: str = "en") -> str:
    async with client.get(path, headers={"accept": "text/html", "accept-language": language}) as answer:
        assert answer.status == 200
        return html.unescape(await answer.text())


async def send(client: aiohttp.ClientSession, path: str, **form: str) -> str:
    """Where the answer leads."""
    async with client.post(path, data=form, allow_redirects=False, headers={"accept": "text/html"}) as answer:
        assert answer.status == 303, await answer.text()
        return str(answer.headers["location"])


async def set_row(site: Site, id_: str, status: str, cause: str | None = None, said: str | None = None) -> None:
    """As the loop would have left it."""
    ended: datetime | None = site.services.clock.now() if status in {"DONE", "FAILED"} else None
    async with site.services.database.connection() as c:
        await c.execute(
            "UPDATE workspace_repositories SET status = $2, cause = $3, said = $4, ended_at = $5, attempts = 3"
            " WHERE workspace_id = $1",
            *(id_, status, cause, said, ended),
        )


async def running(site: Site, id_: str) -> None:
    async with site.services.database.connection() as c:
        await c.execute(
            "UPDATE workspaces SET observed_status = 'RUNNING', volume_generation = 'g' WHERE id = $1",
            id_,
        )


async def test_a_program_makes_one_and_is_told_how_it_goes(site: Site, admin: aiohttp.ClientSession) -> None:
    asked = {"name": "w", "template": "terminal", "git_url": URL, "git_branch": "main"}
    made = await call(admin, "POST", "/workspaces", 201, **asked)
    found = made["repository"]
    assert (found["url"], found["branch"], found["folder"], found["status"]) == (URL, "main", "project", "WAITING")
    history = (await call(admin, "GET", f"/workspaces/{made['id']}/history", 200))["items"]
    assert [line["code"] for line in history] == ["fetch_requested", "created"]
    assert history[0]["reason"] == f"admin asked for the git repository {URL}"
    await set_row(site, made["id"], "FAILED", "not_found", "fatal: no")
    again = await call(admin, "POST", f"/workspaces/{made['id']}/fetch", 202)
    assert (again["repository"]["status"], again["repository"]["attempts"]) == ("WAITING", 0)
    plain = await call(admin, "POST", "/workspaces", 201, name="v", template="terminal")
    assert plain["repository"] is None
    refused = await call(admin, "POST", f"/workspaces/{plain['id']}/fetch", 404)
    assert "without a git address" in refused["detail"]


async def test_what_is_under_way_is_not_begun_anew(site: Site, admin: aiohttp.ClientSession) -> None:
    made = await call(admin, "POST", "/workspaces", 201, name="w", template="terminal", git_url=URL)
    await set_row(site, made["id"], "RUNNING")
    again = await call(admin, "POST", f"/workspaces/{made['id']}/fetch", 202)
    assert (again["repository"]["status"], again["repository"]["attempts"]) == ("RUNNING", 3)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"git_url": SECRET}, "git_url"),
        ({"git_url": "ssh://example.org/x.git"}, "git_url"),
        ({"git_url": "https://example.org/" + "x" * 700}, "git_url"),
        ({"git_url": URL, "git_branch": "--upload-pack=x"}, "git_branch"),
        ({"git_branch": "main"}, "git_branch"),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_is_made(
    admin: aiohttp.ClientSession, body: dict[str, str], field: str
) -> None:
    refused = await call(admin, "POST", "/workspaces", 400, name="w", template="terminal", **body)
    assert refused["errors"][0]["field"] == field
    assert "hunter2" not in str(refused)
    assert (await call(admin, "GET", "/workspaces", 200))["items"] == []


async def test_another_persons_is_not_there_and_a_guest_does_not_fetch(site: Site) -> None:
    for name in ("mina", "jun", "guest"):
        await site.services.people.create_user(operator(), name, Role.LEARNER)
    tokens = {name: await site.token(name) for name in ("mina", "jun", "guest")}
    async with site.client(tokens["mina"]) as mina:
        made = await call(mina, "POST", "/workspaces", 201, name="w", template="terminal", git_url=URL)
        async with mina.post(f"/api/v1/workspaces/{made['id']}/shares", json={"user": "guest"}) as answer:
            assert answer.status == 204, await answer.text()
    async with site.client(tokens["jun"]) as jun:
        await call(jun, "POST", f"/workspaces/{made['id']}/fetch", 404)
        await call(jun, "POST", "/workspaces/NOT-AN-ID/fetch", 404)
    async with site.client(tokens["guest"]) as guest:
        await call(guest, "POST", f"/workspaces/{made['id']}/fetch", 403)
    async with site.client(tokens["mina"]) as mina:
        await call(mina, "DELETE", f"/workspaces/{made['id']}", 202)
        refused = await call(mina, "POST", f"/workspaces/{made['id']}/fetch", 409)
        assert refused["code"] == "WORKSPACE_DELETED"


async def test_the_form_makes_one_and_its_card_says_what_happens(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    mina = Principal("mina", Role.LEARNER, ALL_SCOPES)
    async with site.browser("mina") as browser:
        form = {"name": "w", "template": "terminal", "git_url": f"  {URL} ", "git_branch": "", "once": "1"}
        id_ = (await send(browser, "/do/create", **form)).removeprefix("/open/")
        w = await site.services.workspaces.get(mina, id_)
        assert (await site.services.repositories.of([w]))[id_].url == URL
        assert f"{URL} is fetched into ~/project once this workspace runs." in await page(browser)
        await running(site, id_)
        await set_row(site, id_, "RUNNING")
        for path in ("/", f"/workspaces/{id_}"):
            assert f"Fetching {URL} into ~/project …" in await page(browser, path)
        assert "가져오는 중…" in await page(browser, language="ko")
        await set_row(site, id_, "FAILED", "login", "fatal: <could> not read Username")
        shown = await page(browser)
        assert f"{URL} was not fetched: the server asks for a login" in shown
        assert "fatal: <could> not read Username" in shown
        assert "Your workspace works without it." in shown
        assert f'action="/do/{id_}/fetch"' in shown
        assert await send(browser, f"/do/{id_}/fetch") == "/"
        assert f"Fetching {URL}" in await page(browser)
        await set_row(site, id_, "DONE")
        assert URL not in await page(browser)
        assert f"{URL} was fetched into ~/project." in await page(browser, f"/workspaces/{id_}")


async def test_what_was_typed_comes_back_but_for_a_password(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as browser:
        for typed, problem, words in (
            ({"git_url": "http://example.org/x.git"}, "GIT_SCHEME", "must begin with https://"),
            ({"git_url": SECRET}, "GIT_CREDENTIALS", "holds a name or a password"),
            ({"git_url": SECRET, "name": ""}, "NAME", ""),
            ({"git_url": URL, "git_branch": "a b"}, "GIT_BRANCH", "not the name of a branch"),
        ):
            for action in ("/do/create", "/do/welcome/workspace"):
                where = await send(browser, action, **{"name": "w", "template": "terminal", **typed})
                assert f"problem={problem}" in where
                assert "hunter2" not in where
            shown = await page(
                browser, await send(browser, "/do/create", **{"name": "w", "template": "terminal", **typed})
            )
            assert words in shown
            assert ("" if typed["git_url"] is SECRET else f'value="{typed["git_url"]}"') in shown
        assert "hunter2" not in await page(browser)


async def test_a_change_of_it_is_told_to_those_who_look(site: Site, admin: aiohttp.ClientSession) -> None:
    made = await call(admin, "POST", "/workspaces", 201, name="w", template="terminal", git_url=URL)
    count = "SELECT count(*) FROM events WHERE kind = 'workspace_updated' AND subject = $1"
    async with site.services.database.connection() as c:
        before = await c.fetchval(count, made["id"])
    await set_row(site, made["id"], "RUNNING")
    await set_row(site, made["id"], "DONE")
    async with site.services.database.connection() as c:
        assert await c.fetchval(count, made["id"]) == before + 2
        assert await c.fetchval(sql.open) == 0
