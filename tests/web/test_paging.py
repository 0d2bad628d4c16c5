"""Cursor pages: nothing lost, nothing twice, while the list grows; what is no cursor is 400."""

import re
from datetime import UTC, datetime
from typing import Any

import aiohttp
from hypothesis import given
from hypothesis import strategies as st

from codehub.command import operator
from codehub.http import paging
from codehub.policy.model import Role
from tests.web.server import Site


async def add_many(site: Site, names: list[str]) -> None:
    async with site.services.database.connection() as c:
        await c.execute(
            "INSERT INTO users (name, role, created_at) SELECT unnest($1::text[]), 'learner', $2",
            names,
            site.services.clock.now(),
        )


async def test_a_walk_through_a_list_that_grows_meets_everybody_once(site: Site, admin: aiohttp.ClientSession) -> None:
    before = [f"u-{number:03}" for number in range(0, 500, 2)]
    await add_many(site, before)
    met: list[str] = []
    cursor, step = None, 0
    while True:
        params = {"limit": "7", "role": "learner", **({"cursor": cursor} if cursor else {})}
        async with admin.get("/api/v1/users", params=params) as answer:
            page = await answer.json()
        assert len(page["items"]) <= 7
        met += [user["name"] for user in page["items"]]
        # Somebody comes in behind us and somebody ahead of us.
        await add_many(site, [f"u-{number:03}" for number in (2 * step + 1, 499 - 2 * step) if step < 20])
        cursor, step = page["next_cursor"], step + 1
        if cursor is None:
            break
    assert len(met) == len(set(met))
    assert met == sorted(met)
    assert set(met) >= set(before)


async def test_a_page_that_is_just_full_is_the_last(site: Site, admin: aiohttp.ClientSession) -> None:
    await add_many(site, [f"u-{number}" for number in range(6)])  # with the admin: seven
    async with admin.get("/api/v1/users?limit=7") as answer:
        page = await answer.json()
    assert (len(page["items"]), page["next_cursor"]) == (7, None)


async def test_tokens_sessions_and_audit_can_be_walked_one_by_one(site: Site, admin: aiohttp.ClientSession) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    for _ in range(3):
        await site.token("mina")
        async with site.browser("mina"):
            pass
    for path in ("/api/v1/users/mina/tokens", "/api/v1/users/mina/sessions", "/api/v1/admin/audit"):
        async with admin.get(path) as answer:
            whole = (await answer.json())["items"]
        assert len(whole) >= 3
        assert await walk(admin, path) == whole


async def walk(client: aiohttp.ClientSession, path: str) -> list[Any]:
    items: list[Any] = []
    cursor = None
    while True:
        async with client.get(path, params={"limit": "1", **({"cursor": cursor} if cursor else {})}) as answer:
            page = await answer.json()
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


GARBAGE = ["", "!", "Ä", "\0", "x\n", "A" * 501, "1" * 200, "1.", ".x", "1.2.3", "-1", "9" * 19 + ".x", "١٢"]
# What is a place in one list is nonsense in another.
SHAPES = {"users": "mina", "users/admin/tokens": "1.x", "users/admin/sessions": "1.x", "admin/audit": "1"}


async def test_what_is_no_cursor_is_400(admin: aiohttp.ClientSession) -> None:
    for path, good in SHAPES.items():
        others = [shape for shape in SHAPES.values() if "." in good or ("." in shape and shape != good)]
        for cursor in [*GARBAGE, *others]:
            if cursor == good or (path == "users" and cursor == "-1"):
                continue
            async with admin.get(f"/api/v1/{path}", params={"cursor": cursor}) as answer:
                assert answer.status == 400, (path, cursor)
                assert (await answer.json())["errors"][0]["field"] == "cursor"


async def test_a_place_far_outside_is_an_empty_page_or_the_first(admin: aiohttp.ClientSession) -> None:
    for path, cursor, items in (
        ("admin/audit", "0", 0),
        ("admin/audit", "9" * 18, 1),
        ("users", "zzz", 0),
        ("users/admin/tokens", "9" * 17 + ".x", 0),
    ):
        async with admin.get(f"/api/v1/{path}", params={"cursor": cursor}) as answer:
            assert len((await answer.json())["items"]) == items, path


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(5000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_moment_comes_back_to_the_microsecond_and_in_the_documented_shape(moment: datetime) -> None:
    cursor = paging.at(moment, "abc")
    assert paging.place(cursor) == (moment, "abc")
    assert re.fullmatch(r"[0-9]{1,17}\.[a-z0-9-]{1,63}", cursor)
