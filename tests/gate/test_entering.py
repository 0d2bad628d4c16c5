"""Getting in, by a browser and by a token, and what those get who may not."""

import aiohttp
import pytest
from yarl import URL

from codehub.command import operator
from codehub.policy.model import Role
from tests.gate.lab import PAGE, Lab, problem


async def test_a_link_leads_the_owner_to_the_workspaces_own_origin(lab: Lab) -> None:
    w = await lab.running()
    async with lab.browser("admin") as browser, browser.get(f"{lab.url}/w/{w.id}/lab?x=1", headers=PAGE) as answer:
        assert answer.status == 200
        assert str(answer.url) == f"{lab.origin(w.id)}/w/{w.id}/lab?x=1"
        assert [hop.status for hop in answer.history] == [303] * 4
        assert (await answer.json())["path"].startswith("/")


async def test_the_platforms_secrets_stay_outside(lab: Lab) -> None:
    w = await lab.running()
    async with lab.browser("admin") as browser:
        await browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE)
        own = {"Cookie": "mine=1; codehub=stolen", "X-Forwarded-For": "6.6.6.6"}
        async with browser.get(f"{lab.origin(w.id)}/w/{w.id}/", headers=own) as answer:
            seen = (await answer.json())["headers"]
    assert "codehub" not in seen.get("Cookie", "")
    assert seen["X-Forwarded-For"] == "127.0.0.1"
    assert "Authorization" not in seen


async def test_nobody_is_sent_to_the_login_and_back_afterwards(lab: Lab) -> None:
    w = await lab.running()
    async with lab.browser() as browser:
        async with browser.get(f"{lab.url}/w/{w.id}/lab", headers=PAGE) as answer:
            assert answer.url.path == "/"
        link = await lab.services.people.make_login_link(operator(), "admin")
        async with browser.post(link.url(lab.url), headers=PAGE) as answer:
            assert answer.status == 200
            assert str(answer.url) == f"{lab.origin(w.id)}/w/{w.id}/lab"
    async with lab.browser() as browser:
        for url in (lab.url, lab.origin(w.id)):
            async with browser.get(f"{url}/w/{w.id}/api") as answer:
                assert await problem(answer) == (401, "UNAUTHENTICATED")


async def test_somebody_elses_is_not_there(lab: Lab) -> None:
    w = await lab.running()
    await lab.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with lab.browser("mina") as browser:
        for id_ in (w.id, "nothing", "NOT-A-LABEL"):
            async with browser.get(f"{lab.url}/w/{id_}/", headers=PAGE) as answer:
                assert answer.status == 404
    assert lab.ide.requests == []


async def test_a_bearer_is_served_in_place(lab: Lab) -> None:
    w = await lab.running()
    made = await lab.services.people.create_token(operator(), "admin", label="", scopes=None, days=None)
    bearer = {"Authorization": f"Bearer {made.secret}"}
    async with lab.browser() as client:
        for _ in range(2):  # asked for, and remembered
            async with client.get(f"{lab.url}/w/{w.id}/api", headers=bearer) as answer:
                assert answer.status == 200
                assert "Authorization" not in (await answer.json())["headers"]
        async with client.get(f"{lab.url}/w/{w.id}/api", headers={"Authorization": "Bearer chp_x_y"}) as answer:
            assert (await problem(answer))[0] == 401
        async with client.ws_connect(f"{lab.url}/w/{w.id}/ws", headers=bearer) as ws:
            await ws.send_str("hello")
            assert await ws.receive_str() == "hello"
            await lab.services.people.revoke_token(operator(), "admin", made.token.id)
            closed = await ws.receive(timeout=10)
            assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1008)


async def test_on_a_workspaces_origin_there_is_nothing_but_the_workspace(lab: Lab) -> None:
    w, other = await lab.running(), await lab.running()
    async with lab.browser("admin") as browser:
        await browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE)
        here = lab.origin(w.id)
        for path in ("/api/v1/workspaces", "/metrics", "/login/x", "/healthz", f"/w/{other.id}/", "/w/"):
            async with browser.get(here + path) as answer:
                assert answer.status == 404, path
        async with browser.get(f"{here}/w/{other.id}/", headers=PAGE) as answer:
            assert answer.status == 404
        async with browser.get(here + "/", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, f"/w/{w.id}/")
        async with browser.get(f"{here}/static/codehub.css") as answer:
            assert answer.status == 200


async def test_a_ticket_works_once_in_one_browser_for_one_workspace(lab: Lab) -> None:
    w, other = await lab.running(), await lab.running()
    async with lab.browser("admin") as browser, lab.browser() as thief:
        url = f"{lab.origin(w.id)}/_codehub/begin"
        async with browser.get(url, allow_redirects=False) as begun:
            pass
        async with browser.get(begun.headers["Location"], allow_redirects=False) as handed:
            assert handed.status == 303
        ticket = handed.headers["Location"]
        for stolen in (ticket, ticket.replace(w.id, other.id)):
            async with thief.get(stolen, allow_redirects=False) as answer:
                assert answer.status == 400
        async with browser.get(ticket, allow_redirects=False) as answer:
            assert answer.status == 303
            passed = answer.cookies["codehub-pass"].value
        async with lab.browser() as again:
            state = browser.cookie_jar.filter_cookies(URL(url)).get("codehub-state")
            again.cookie_jar.update_cookies({"codehub-state": state.value if state else ""})
            async with again.get(ticket, allow_redirects=False) as answer:
                assert answer.status == 400
        # A pass for one is none for another.
        async with thief.get(f"{lab.origin(other.id)}/w/{other.id}/x", cookies={"codehub-pass": passed}) as answer:
            assert answer.status == 401


@pytest.mark.parametrize(
    "next_", ["//evil.example", "https://evil.example/", "/w/other/", "/api/v1/users", "/w/x\r\nA: b"]
)
async def test_the_way_in_leads_nowhere_else(lab: Lab, next_: str) -> None:
    w = await lab.running()
    begin = f"{lab.origin(w.id)}/_codehub/begin"
    async with lab.browser("admin") as browser, browser.get(begin, params={"next": next_}, headers=PAGE) as answer:
        assert str(answer.url) == f"{lab.origin(w.id)}/w/{w.id}/"


async def test_logging_out_ends_passes_and_open_sockets(lab: Lab) -> None:
    w = await lab.running()
    async with lab.browser("admin") as browser:
        await browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE)
        origin = {"Origin": lab.origin(w.id)}
        async with browser.ws_connect(f"{lab.origin(w.id)}/w/{w.id}/ws", headers=origin) as ws:
            await ws.send_str("hello")
            assert await ws.receive_str() == "hello"
            async with browser.post(f"{lab.url}/logout", allow_redirects=False) as answer:
                assert answer.status == 303
            closed = await ws.receive(timeout=10)
            assert (closed.type, closed.data, closed.extra) == (aiohttp.WSMsgType.CLOSE, 1008, "You are logged out.")
        async with browser.get(f"{lab.origin(w.id)}/w/{w.id}/api") as answer:
            assert answer.status == 401


async def test_a_socket_from_another_origins_page_is_refused(lab: Lab) -> None:
    w = await lab.running()
    async with lab.browser("admin") as browser:
        await browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE)
        for origin in ({"Origin": lab.origin("evil")}, {"Origin": "null"}, {"Origin": lab.url}, {}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await browser.ws_connect(f"{lab.origin(w.id)}/w/{w.id}/ws", headers=origin)
            assert refused.value.status == 403
        foreign = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
        async with browser.get(f"{lab.origin(w.id)}/w/{w.id}/api", headers=foreign) as answer:
            assert answer.status == 403


async def test_a_guest_comes_in_and_is_out_when_it_is_over(lab: Lab) -> None:
    w = await lab.running()
    await lab.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with lab.browser("admin") as owner, lab.browser("mina") as guest:
        shares = f"{lab.url}/api/v1/workspaces/{w.id}/shares"
        async with owner.post(shares, json={"user": "nobody-at-all"}) as answer:
            assert answer.status == 404
        async with owner.post(shares, json={"user": "admin"}) as answer:
            assert await problem(answer) == (409, "OWNS_IT_ALREADY")
        async with owner.post(shares, json={"user": "mina"}) as answer:
            assert answer.status == 204
        async with guest.get(f"{lab.url}/api/v1/workspaces?shared=true") as answer:
            assert [item["id"] for item in (await answer.json())["items"]] == [w.id]
        async with guest.get(shares) as answer:
            assert answer.status == 403  # a guest knows that it is there; with whom it is shared is the owner's to see
        for came in (False, True):
            async with owner.get(shares) as answer:
                (share,) = (await answer.json())["items"]
                assert (share["user"], share["opened_at"] is not None) == ("mina", came)
            async with guest.get(f"{lab.url}/w/{w.id}/", headers=PAGE) as answer:
                assert answer.status == 200
        origin = {"Origin": lab.origin(w.id)}
        await owner.get(f"{lab.url}/w/{w.id}/", headers=PAGE)
        socket = f"{lab.origin(w.id)}/w/{w.id}/ws"
        async with guest.ws_connect(socket, headers=origin) as theirs, owner.ws_connect(socket, headers=origin) as mine:
            async with owner.delete(f"{shares}/mina") as answer:
                assert answer.status == 204
            closed = await theirs.receive(timeout=10)
            assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1008)
            await mine.send_str("still here")
            assert await mine.receive_str() == "still here"
        async with guest.get(f"{lab.origin(w.id)}/w/{w.id}/api") as answer:
            assert answer.status == 404


async def test_a_stopped_workspaces_sockets_are_told(lab: Lab) -> None:
    w = await lab.running()
    async with lab.browser("admin") as browser:
        await browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE)
        headers = {"Origin": lab.origin(w.id)}
        async with browser.ws_connect(f"{lab.origin(w.id)}/w/{w.id}/ws", headers=headers) as ws:
            await lab.put(w, "STANDBY")
            closed = await ws.receive(timeout=10)
            assert (closed.data, closed.extra) == (1001, "The workspace was stopped.")


async def test_what_an_ide_may_not_say_is_dropped(lab: Lab) -> None:
    w = await lab.running()
    lab.ide.answer = {
        "Service-Worker-Allowed": "/",
        "Clear-Site-Data": '"*"',
        "Strict-Transport-Security": "max-age=1",
        "Set-Cookie": "codehub-pass=x; Domain=localhost",
        "X-Own": "kept",
    }
    async with lab.browser("admin") as browser:
        await browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE)
        for worker in ({}, {"Service-Worker": "script"}):
            async with browser.get(f"{lab.origin(w.id)}/w/{w.id}/sw.js", headers=worker) as answer:
                got = answer.headers
                assert got.get("Service-Worker-Allowed") == (f"/w/{w.id}/" if worker else None)
                assert not {"Clear-Site-Data", "Strict-Transport-Security", "Set-Cookie"} & set(got)
                assert got["X-Own"] == "kept"


async def test_a_link_in_the_sockets_place_leads_nowhere(lab: Lab) -> None:
    w = await lab.running()
    trap = lab.ide.path.parent / "trap.sock"
    trap.symlink_to(lab.ide.path)
    await lab.put(w, "RUNNING", address={"socket": str(trap), "host": None, "port": None}, desired_state="RUNNING")
    await lab.known(w, address={"socket": str(trap), "host": None, "port": None})
    async with lab.browser("admin") as browser:
        async with browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE) as answer:
            assert answer.status == 503
            assert "text/html" in answer.headers["Content-Type"]
        async with browser.get(f"{lab.origin(w.id)}/w/{w.id}/api") as answer:
            assert await problem(answer) == (502, "UPSTREAM_UNREACHABLE")
    assert lab.ide.requests == []
