"""`/account`, by HTTP as a browser without JavaScript uses it."""

import re

import aiohttp

from codehub.command import operator
from codehub.policy.model import Role
from tests.web.server import Site


async def page(client: aiohttp.ClientSession, path: str = "/account") -> str:
    async with client.get(path, headers={"accept": "text/html"}) as answer:
        assert answer.status == 200
        return await answer.text()


async def test_the_account_page_has_a_section_for_every_way_in(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as mina:
        text = await page(mina)
    assert 'id="providers"' not in text, "there are none here"
    for section in ("profile", "password", "passkeys"):
        assert f'<section class="card" id="{section}"' in text


async def test_a_person_who_is_not_logged_in_is_led_to_the_start_page(nobody: aiohttp.ClientSession) -> None:
    async with nobody.get("/account", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["location"]) == (303, "/")


async def test_what_was_refused_is_said_in_its_section_and_only_in_words_of_ours(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as mina:
        text = await page(mina, "/account?at=password&problem=LAST_WAY_IN&done=<b>")
        other = await page(mina, "/account?at=password&problem=<b>Call%20me")
    assert text.index("password-title") < text.index("This is your only way in") < text.index("passkeys-title")
    assert "<b>" not in text + other


async def send(client: aiohttp.ClientSession, verb: str, **form: str) -> str:
    """Where it leads."""
    async with client.post(f"/do/account/{verb}", data=form, allow_redirects=False) as answer:
        assert answer.status == 303
        return answer.headers["location"]


def hidden(text: str, name: str) -> list[str]:
    return re.findall(rf'name="{name}" value="([^"]*)"', text)


async def test_a_profile_is_changed_by_its_form(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as mina:
        form = {"display_name": " 김  미나 ", "language": "", "time_zone": "Asia/Seoul"}
        assert await send(mina, "profile", **form) == "/account?at=profile&done=profile#profile"
        assert 'value="김 미나"' in await page(mina)
        assert await send(mina, "profile", display_name="\u202e") == "/account?at=profile&problem=DISPLAY_NAME#profile"
        assert await send(mina, "profile", time_zone="Mars") == "/account?at=profile&problem=TIME_ZONE#profile"


async def test_one_device_is_ended_and_then_all_others(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    firefox = "Mozilla/5.0 (Windows NT 10.0; rv:128.0) Gecko/20100101 Firefox/128.0"
    async with (
        site.browser("mina") as here,
        site.browser("mina", **{"User-Agent": firefox}) as school,
        site.browser("mina") as third,
    ):
        text = await page(here)
        assert "Firefox on Windows" in text
        first = hidden(text[text.index('id="devices"') : text.index('id="tokens"')], "id")[0]
        for _ in range(2):  # a double click
            assert await send(here, "end-device", id=first) == "/account?at=devices&done=device#devices"
        ended = [client for client in (school, third) if not await logged_in(client)]
        assert len(ended) == 1
        assert await send(here, "end-other-devices") == "/account?at=devices&done=devices#devices"
        assert [await logged_in(client) for client in (here, school, third)] == [True, False, False]


async def logged_in(client: aiohttp.ClientSession) -> bool:
    async with client.get("/api/v1/me") as answer:
        return answer.status == 200


async def test_another_persons_device_and_token_are_not_there(site: Site) -> None:
    for name in ("mina", "jun"):
        await site.services.people.create_user(operator(), name, Role.LEARNER)
    async with site.browser("mina") as mina, site.browser("jun") as jun:
        async with mina.get("/api/v1/users/mina/sessions") as answer:
            (session,) = (await answer.json())["items"]
        token = (await site.token("mina")).split("_")[1]
        await send(jun, "end-device", id=session["id"])
        await send(jun, "revoke-token", id=token)
        assert await logged_in(mina)
        async with mina.get("/api/v1/users/mina/tokens") as answer:
            assert len((await answer.json())["items"]) == 1
        async with jun.delete("/api/v1/users/mina/sessions") as answer:
            assert answer.status == 404


async def test_a_token_is_made_by_a_form_shown_once_and_revoked(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as mina:
        (number,) = hidden(await page(mina), "once")
        form = {"label": "My script", "scope": "write", "days": "30", "once": number}
        both = [await send(mina, "make-token", **form) for _ in range(2)]
        assert both[0] == both[1]  # a double click
        text = await page(mina, both[0].partition("#")[0])
        (token,) = set(re.findall(r"chp_[A-Za-z0-9_-]+", text))
        assert "chp_" not in both[0]
        assert "chp_" not in await page(mina, both[0].partition("#")[0])
        async with site.client(token) as program, program.get("/api/v1/me") as answer:
            me = await answer.json()
            assert (me["name"], me["scopes"]) == ("mina", ["read", "write"])
        (id_,) = [id_ for id_ in hidden(await page(mina), "id") if id_ == token.split("_")[1]]
        for _ in range(2):
            assert await send(mina, "revoke-token", id=id_) == "/account?at=tokens&done=token#tokens"
        async with site.client(token) as program:
            assert not await logged_in(program)


async def test_a_token_gets_no_more_than_its_person_may(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as mina:
        assert 'value="admin"' not in await page(mina)
        forged = await send(mina, "make-token", label="x", scope="admin", days="30")
        assert forged == "/account?at=tokens&problem=FORBIDDEN#tokens"
        assert (
            await send(mina, "make-token", label="x", scope="read", days="9999")
            == "/account?at=tokens&problem=DAYS#tokens"
        )
        long = await send(mina, "make-token", label="x" * 101, scope="read", days="7")
        assert long == "/account?at=tokens&problem=LABEL#tokens"
        assert "no access token" in await page(mina)
