"""Ways in that stay, that count and that end with others: the last one, those of before, those that others gave."""

import pytest

from codehub.command import operator
from codehub.policy.model import Role
from tests.auth.helpers import entries
from tests.web.server import Site
from tests.web.test_passwords import BOAT, HOME, LAMP, add, at, change, log_in, logged_in, me


@pytest.fixture(autouse=True)
async def mina(site: Site) -> None:
    await add(site, "mina", LAMP)


async def give_passkey(site: Site, belongs_to: str) -> None:
    """Whoever holds it: it is a row of a table."""
    async with site.services.database.transaction() as c:
        await c.execute(
            "INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count, label, belongs_to, created_at)"
            " SELECT $1, id, convert_to($1, 'UTF8'), '', 0, '', $2, now() FROM users WHERE name = 'mina'",
            belongs_to.partition(".")[0],
            belongs_to,
        )


async def test_ways_in_that_do_not_work_any_more_do_not_count(site: Site) -> None:
    """A login at a provider that the operator took away, a passkey of a name that the platform had before."""
    await give_passkey(site, "old.example.org")
    async with site.services.database.transaction() as c:
        await c.execute(
            "INSERT INTO identities (id, user_id, provider, issuer, subject, created_at)"
            " SELECT 'i', id, 'school', 'https://school', '1', now() FROM users WHERE name = 'mina'"
        )
    async with logged_in(site) as client:
        async with client.delete("/api/v1/users/mina/password", json={"current_password": LAMP}) as answer:
            problem = await answer.json()
            assert (answer.status, problem["code"]) == (409, "LAST_WAY_IN")
            assert "that works now" in problem["detail"]
        async with client.get("/account", headers={"Accept": "text/html"}) as answer:
            page = await answer.text()
        assert "It was made for old.example.org and does not work at this address." in page
        assert "You can no longer log in with this one here." in page
        assert "/do/account/remove-password" not in page
        # They are nobody's way in: nothing keeps them from being taken away.
        for path in ("passkeys/old", "identities/i"):
            async with client.delete(f"/api/v1/users/mina/{path}") as answer:
                assert answer.status == 204, path


async def test_the_last_way_in_is_kept(site: Site) -> None:
    async with logged_in(site) as client:
        path, current = "/api/v1/users/mina/password", {"current_password": LAMP}
        async with client.delete(path) as answer:
            assert answer.status == 400  # the current one is said first
        async with client.delete(path, json=current) as answer:
            assert (answer.status, (await answer.json())["code"]) == (409, "LAST_WAY_IN")
        await give_passkey(site, "localhost")
        async with client.delete(path, json=current) as answer:
            assert answer.status == 204
        async with client.delete(path) as answer:
            assert answer.status == 204  # once more, as by a double click
        assert await me(client) == "mina"
        assert (await log_in(client, "mina", LAMP))[0] == 401


async def test_a_changed_password_takes_an_unused_login_link_away(site: Site) -> None:
    """Whoever had the account in hand before may have made one, and nobody sees it."""
    async with logged_in(site) as client:
        async with client.post("/api/v1/users/mina/login-links") as answer:
            url = (await answer.json())["url"]
        assert (await change(client, "mina", password=BOAT, current_password=LAMP))[0] == 204
    async with site.client() as thief, thief.post(url, allow_redirects=False) as answer:
        assert answer.status == 410


async def test_a_password_that_a_teacher_set_is_no_way_into_a_teachers_or_an_admins_account(site: Site) -> None:
    await add(site, "kim", role=Role.TEACHER)
    for name, by in (("jun", "kim"), ("ana", "ana"), ("lee", "admin")):
        await add(site, name, LAMP)
        async with site.services.database.transaction() as c:
            await c.execute(
                "UPDATE passwords SET changed_by = b.id FROM users b, users u"
                " WHERE b.name = $1 AND u.name = $2 AND user_id = u.id",
                by,
                name,
            )
        await site.services.people.change_user(operator(), name, role=Role.ADMIN, active=None)
    async with at(site, HOME) as client:
        assert (await log_in(client, "jun", LAMP))[0] == 401
    for name in ("ana", "lee"):
        async with at(site, HOME) as client:
            assert (await log_in(client, name, LAMP))[0] == 200
    assert [e.subject for e in await entries(site.services, "password.remove")] == ["jun"]
