"""Passkeys of a person: added in their own browser, listed, renamed, removed; the last way in stays."""

import asyncio
from typing import Any

import pytest

from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from tests.auth.helpers import deactivate, entries, everything_stored
from tests.passkeys.authenticator import PRESENT, Authenticator, decode
from tests.passkeys.conftest import HOST, Visitor, logged_in, stranger
from tests.virtual_time import ManualClock
from tests.web.server import ADMIN_TOKEN, Site, serving_with

CHROME = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36"


async def give_password(site: Site, name: str) -> None:
    """Another way in."""
    async with site.services.database.connection() as c:
        await c.execute("INSERT INTO passwords SELECT id, 'x', now(), 'test' FROM users WHERE name = $1", name)


async def test_a_passkey_is_added_and_listed(site: Site, mina: Visitor) -> None:
    assert await mina.passkeys() == []
    made = await mina.add(Authenticator(), label="내 노트북")
    assert made["label"] == "내 노트북"
    assert made["last_used_at"] is None
    assert made["blocked_at"] is None
    assert await mina.passkeys() == [made]
    entry = (await entries(site.services, "passkey.add"))[0]
    assert (entry.actor, entry.subject, entry.data["label"]) == ("mina", "mina", "내 노트북")


async def test_the_question_asks_for_a_passkey_that_needs_no_name_and_is_unlocked(mina: Visitor) -> None:
    options = (await mina.question())["options"]
    assert options["rp"] == {"name": "CodeHub", "id": "localhost"}
    assert options["authenticatorSelection"] == {
        "residentKey": "required",
        "requireResidentKey": True,
        "userVerification": "required",
    }
    assert options["attestation"] == "none"
    assert options["user"]["name"] == "mina"
    assert b"mina" not in decode(options["user"]["id"])  # an id that says nothing


async def test_a_device_is_told_of_the_passkeys_there_are(mina: Visitor) -> None:
    first = Authenticator()
    await mina.add(first)
    excluded = (await mina.question())["options"]["excludeCredentials"]
    assert [decode(found["id"]) for found in excluded] == [first.credential_id]


async def test_without_a_name_it_is_called_as_the_browser(site: Site) -> None:
    async with logged_in(site, "mina", **{"User-Agent": CHROME}) as mina:
        labels = [(await mina.add(Authenticator()))["label"] for _ in range(2)]
    assert labels == ["Chrome, Windows", "Chrome, Windows 2"]


@pytest.mark.parametrize("label", ["", " ", "x" * 101, "a\u202eb", 7])
async def test_a_name_that_cannot_be_read_is_refused(mina: Visitor, label: Any) -> None:
    made = await mina.add(Authenticator())
    for method, path, body in (
        ("PATCH", f"/users/mina/passkeys/{made['id']}", {"label": label}),
        ("POST", "/users/mina/passkeys", {"label": label, "credential": Authenticator().create(await mina.question())}),
    ):
        status, problem = await mina.ask(method, path, body)
        assert (status, problem["code"], problem["errors"][0]["field"]) == (400, "INVALID_REQUEST", "label")


async def test_a_passkey_is_renamed(site: Site, mina: Visitor) -> None:
    made = await mina.add(Authenticator())
    status, renamed = await mina.ask("PATCH", f"/users/mina/passkeys/{made['id']}", {"label": "Phone"})
    assert (status, renamed) == (200, {**made, "label": "Phone"})
    assert await mina.passkeys() == [renamed]
    assert [e.data["label"] for e in await entries(site.services, "passkey.rename")] == ["Phone"]


async def test_a_name_that_is_the_same_changes_nothing(site: Site, mina: Visitor) -> None:
    made = await mina.add(Authenticator(), label="Phone")
    assert (await mina.ask("PATCH", f"/users/mina/passkeys/{made['id']}", {"label": "Phone"}))[0] == 200
    assert await entries(site.services, "passkey.rename") == []


async def test_the_only_way_in_stays(site: Site, mina: Visitor) -> None:
    made = await mina.add(Authenticator())
    path = f"/users/mina/passkeys/{made['id']}"
    status, problem = await mina.ask("DELETE", path)
    assert (status, problem["code"]) == (409, "LAST_WAY_IN")
    await give_password(site, "mina")
    assert (await mina.ask("DELETE", path))[0] == 204
    assert await mina.passkeys() == []
    assert (await mina.ask("DELETE", path))[0] == 404
    assert len(await entries(site.services, "passkey.remove")) == 1


async def test_of_two_removed_at_once_one_stays(mina: Visitor) -> None:
    made = [await mina.add(Authenticator()) for _ in range(2)]
    removals = [mina.ask("DELETE", f"/users/mina/passkeys/{p['id']}") for p in made]
    assert sorted(status for status, _ in await asyncio.gather(*removals)) == [204, 409]
    assert len(await mina.passkeys()) == 1


async def test_only_so_many(settings: Settings, clock: ManualClock) -> None:
    async with serving_with(settings, clock, max_passkeys_per_user=2) as site:
        await site.services.people.create_user(operator(), "mina", Role.LEARNER)
        async with logged_in(site, "mina") as mina:
            first, third = Authenticator(), Authenticator()
            early = third.create(await mina.question())  # asked before the others are there
            for passkey in (first, Authenticator()):
                await mina.add(passkey)
            status, problem = await mina.ask("POST", "/users/mina/passkey-question")
            assert (status, problem["code"]) == (429, "PASSKEY_LIMIT")
            status, problem = await mina.ask("POST", "/users/mina/passkeys", {"credential": early})
            assert (status, problem["code"]) == (429, "PASSKEY_LIMIT")
            assert len(await mina.passkeys()) == 2


async def test_what_is_registered_is_not_registered_again(site: Site, mina: Visitor) -> None:
    passkey = Authenticator()
    await mina.add(passkey)
    async with logged_in(site, "jun") as jun:
        for visitor in (mina, jun):  # an answer that somebody stole does not move it to another account
            status, problem = await visitor.register(passkey)
            assert (status, problem["code"]) == (409, "PASSKEY_EXISTS")
        assert await jun.passkeys() == []


async def test_another_persons_passkeys_are_not_there(site: Site, mina: Visitor) -> None:
    made = await mina.add(Authenticator())
    async with logged_in(site, "jun") as jun:
        own = await jun.add(Authenticator())
        for method, path, body in (
            ("GET", "/users/mina/passkeys", None),
            ("POST", "/users/mina/passkey-question", None),
            ("POST", "/users/mina/passkeys", {"credential": Authenticator().create(await jun.question())}),
            ("PATCH", f"/users/mina/passkeys/{made['id']}", {"label": "x"}),
            ("DELETE", f"/users/mina/passkeys/{made['id']}", None),
            ("PATCH", f"/users/jun/passkeys/{made['id']}", {"label": "x"}),
            ("DELETE", f"/users/jun/passkeys/{made['id']}", None),
            ("DELETE", "/users/jun/passkeys/No-Label", None),
        ):
            assert (await jun.ask(method, path, body))[0] == 404, (method, path)
        assert await jun.passkeys() == [own]
    assert await mina.passkeys() == [made]


async def test_an_admin_sees_and_removes_but_cannot_add(site: Site, mina: Visitor) -> None:
    made = [await mina.add(Authenticator()) for _ in range(2)]
    async with site.client(ADMIN_TOKEN, Host=HOST) as client:
        admin = Visitor(client)
        assert len((await admin.ask("GET", "/users/mina/passkeys"))[1]["items"]) == 2
        assert (await admin.ask("POST", "/users/mina/passkey-question"))[0] == 404
        # Not even to the account that the token acts as: what is added is in a person's hand, at their browser.
        status, problem = await admin.ask("POST", "/users/admin/passkey-question")
        assert (status, problem["code"]) == (403, "FORBIDDEN")
        assert (await admin.ask("DELETE", f"/users/mina/passkeys/{made[0]['id']}"))[0] == 204
        assert (await admin.ask("DELETE", f"/users/mina/passkeys/{made[1]['id']}"))[0] == 409
    assert [e.actor for e in await entries(site.services, "passkey.remove")] == ["admin"]


async def test_a_token_adds_no_way_in(site: Site, mina: Visitor) -> None:
    credential = Authenticator().create(await mina.question())
    async with site.client(await site.token("mina"), Host=HOST) as client:
        program = Visitor(client, "mina")
        for path, body in (("passkey-question", None), ("passkeys", {"credential": credential})):
            status, problem = await program.ask("POST", f"/users/mina/{path}", body)
            assert (status, problem["code"]) == (403, "FORBIDDEN")
        assert await program.passkeys() == []


async def test_without_a_login_there_is_nothing_to_see(site: Site) -> None:
    async with stranger(site) as visitor:
        for method, path in (("GET", "s"), ("POST", "-question"), ("POST", "s"), ("DELETE", "s/x")):
            assert (await visitor.ask(method, f"/users/mina/passkey{path}"))[0] == 401


async def test_a_deactivated_person_adds_none(site: Site, mina: Visitor) -> None:
    credential = Authenticator().create(await mina.question())
    await deactivate(site.services, "mina")
    assert (await mina.ask("POST", "/users/mina/passkeys", {"credential": credential}))[0] == 401


async def test_a_passkey_that_was_not_unlocked_is_not_taken(mina: Visitor) -> None:
    status, problem = await mina.register(Authenticator(flags=PRESENT))
    assert (status, problem["code"]) == (401, "PASSKEY_REFUSED")
    assert await mina.passkeys() == []


async def test_a_list_of_passkeys_has_pages(mina: Visitor) -> None:
    made = sorted([await mina.add(Authenticator()) for _ in range(3)], key=lambda p: str(p["id"]))  # in one moment
    status, first = await mina.ask("GET", "/users/mina/passkeys?limit=2")
    assert (status, first["items"]) == (200, made[:2])
    _, rest = await mina.ask("GET", f"/users/mina/passkeys?limit=2&cursor={first['next_cursor']}")
    assert (rest["items"], rest["next_cursor"]) == (made[2:], None)


async def test_no_question_and_no_answer_is_kept(site: Site, mina: Visitor) -> None:
    question = await mina.question()
    passkey = Authenticator()
    credential = passkey.create(question)
    assert (await mina.ask("POST", "/users/mina/passkeys", {"credential": credential}))[0] == 201
    stored = await everything_stored(site.services)
    assert question["options"]["challenge"] not in stored
    assert credential["response"]["clientDataJSON"] not in stored
