"""`/operator` and `/api/v1/admin/samples`, by HTTP as a browser without JavaScript and a program use them."""

import re
from datetime import timedelta

import aiohttp
import pytest

from codehub.command import operator
from codehub.i18n.locales import Locale, zone
from codehub.monitoring import rules
from codehub.policy.model import Role
from codehub.web import charts, operator_view, texts
from codehub.web.operator_view import RANGES
from tests.monitoring.figures import furnish
from tests.monitoring.test_rules import START, sample
from tests.web.server import Site


async def page(client: aiohttp.ClientSession, query: str = "") -> str:
    async with client.get(f"/operator{query}", headers={"accept": "text/html"}) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.text()


async def test_before_the_first_sample_it_says_when_there_will_be_one(site: Site) -> None:
    async with site.browser("admin") as client:
        text = await page(client)
        assert "The first come within a minute" in text
        assert "<figure" not in text
        assert 'href="/operator"' in text


@pytest.mark.parametrize(("chosen", "rows"), [("hour", 60), ("day", 96 - 12), ("week", 168 - 3), ("quarter", 92)])
async def test_each_range_has_its_charts_and_the_same_numbers_as_a_table(site: Site, chosen: str, rows: int) -> None:
    await furnish(site.services.database, site.services.clock.now())
    async with site.browser("admin") as client:
        text = await page(client, f"?range={chosen}")
    assert re.findall('data-key="chart-(\\w+)"', text) == list(operator_view.CHARTS)
    assert abs(len(re.findall(r'<tr data-key="\d', text)) - rows) <= 1
    assert len(re.findall(r'role="img" aria-label="[^"]+[0-9]', text)) == 7
    assert "style=" not in text


async def test_only_admins_see_it_and_only_they_are_shown_the_way(site: Site) -> None:
    for name, role in (("mina", Role.LEARNER), ("kim", Role.TEACHER)):
        await site.services.people.create_user(operator(), name, role)
        async with site.browser(name) as client:
            for path in ("/operator", "/operator?standby=15m", "/api/v1/admin/samples"):
                async with client.get(path) as answer:
                    assert answer.status == 403, path
            async with client.get("/api/v1/admin/ttl/what-if?standby_seconds=60") as answer:
                assert answer.status == 403
            async with client.get("/", headers={"accept": "text/html"}) as answer:
                assert 'href="/operator"' not in await answer.text()


async def test_what_if_is_answered_on_the_page_and_keeps_what_was_typed(site: Site) -> None:
    async with site.browser("admin") as client:
        text = await page(client, "?range=week&standby=1h30m&archive=&days=3")
        assert "Asleep after 1 h 30 min, stored away after 30 min" in text
        assert "people would have done the same" in text
        assert 'name="standby" value="1h30m"' in text
        assert 'name="range" value="week"' in text


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("standby=soon", ["standby"]),
        ("standby=15m&archive=2x&days=99", ["archive", "days"]),
        ("days=7&archive=2h", ["standby"]),
        ("standby=99999999999999999999d", ["standby"]),
        ("standby=31d", ["standby"]),
        ("standby=15m&days=%C2%B2", ["days"]),
        ("standby=%3Cb%3E%00", ["standby"]),
    ],
)
async def test_what_is_wrong_is_said_beside_its_field(site: Site, query: str, wrong: list[str]) -> None:
    async with site.browser("admin") as client:
        text = await page(client, f"?{query}")
    assert re.findall(r'id="wrong-(\w+)"', text) == wrong
    assert "<b>" not in text


async def test_a_program_reads_samples_page_by_page_newest_first(site: Site) -> None:
    await furnish(site.services.database, site.services.clock.now())
    seen: list[str] = []
    async with site.admin() as client:
        cursor: str | None = None
        while len(seen) < 150:
            query = {"resolution": "hour", "limit": "50"} | ({"cursor": cursor} if cursor else {})
            async with client.get("/api/v1/admin/samples", params=query) as answer:
                assert answer.status == 200
                found = await answer.json()
            seen += [item["at"] for item in found["items"]]
            cursor = found["next_cursor"]
        assert seen == sorted(set(seen), reverse=True)
        item = found["items"][0]
        assert item["minutes"] == 60
        assert set(item["workspaces"]) == {"RUNNING", "STANDBY", "ARCHIVED", "PENDING", "ERROR"}
        for wrong in ("resolution=second", "cursor=x", "limit=0"):
            async with client.get(f"/api/v1/admin/samples?{wrong}") as answer:
                assert (answer.status, answer.content_type) == (400, "application/problem+json")


# --- drawing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("highest", "whole", "top"),
    [(0, True, 2), (1, True, 2), (3, True, 5), (42, True, 50), (100, True, 100), (0.3, False, 0.5), (7e9, False, 1e10)],
)
def test_an_axis_ends_at_a_round_number(highest: float, whole: bool, top: float) -> None:
    assert charts.ceiling(highest, whole=whole) == pytest.approx(top)


def test_a_line_is_broken_where_samples_are_missing() -> None:
    axis = charts.Axis(START, START + timedelta(hours=1), timedelta(minutes=1), str)
    points = [(START + timedelta(minutes=n), 1.0) for n in (0, 1, 2, 30, 31)]
    drawn = charts.path(charts.Series("a", "A", points), axis, 2.0)
    assert (drawn.count("M"), drawn.count("L")) == (2, 3)
    assert charts.path(charts.Series("a", "A", [(START, None)]), axis, 2.0) == ""


def test_a_day_is_the_readers_own() -> None:
    seoul = Locale("ko", zone("Asia/Seoul"), texts.TEXTS["ko"])
    hours = [sample(60 * n, minutes=60, running=float(n)) for n in range(24)]  # from 18:00 there
    days = operator_view.prepared(hours, RANGES["quarter"], seoul)
    assert [(d.at.astimezone(seoul.zone).hour, d.minutes) for d in days] == [(0, 6 * 60), (0, 18 * 60)]


def test_every_range_can_be_made_of_what_is_kept() -> None:
    for found in RANGES.values():
        assert found.length <= rules.KEPT[found.resolution]
