"""A workspace's history as a time line, downloads in an error, and what asks before it stops something: by HTTP."""

import html
import re
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import pytest

from codehub.command import operator
from codehub.i18n.locales import Locale
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.web import history_view, texts
from codehub.web.history_view import Kind
from codehub.workspaces.admission import admitted
from codehub.workspaces.history import CODES
from codehub.workspaces.model import Desired, HistoryEntry
from codehub.workspaces.service import NewWorkspace
from tests.virtual_time import ManualClock
from tests.web.server import Site

MINA = Principal("mina", Role.LEARNER, ALL_SCOPES)
ERROR = {"reason": "StartFailed", "operation": "STARTING", "last_error": "exit 1"}


@pytest.fixture
async def lab(site: Site) -> str:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    await site.services.people.create_user(operator(), "jun", Role.LEARNER)
    made = admitted(await site.services.workspaces.create(MINA, NewWorkspace("Lab", "terminal", Desired.STANDBY)))
    return made.id


async def told(site: Site, id_: str, code: str, to_state: str | None = None, **data: Any) -> None:
    async with site.services.database.connection() as c:
        await c.execute(
            "INSERT INTO workspace_history (workspace_id, at, actor, code, data, to_state)"
            " VALUES ($1, $2, 'controller', $3, $4, $5)",
            *(id_, site.services.clock.now(), code, data, to_state),
        )


async def put(site: Site, id_: str, **state: Any) -> None:
    columns = ", ".join(f"{column} = ${place}" for place, column in enumerate(state, 2))
    async with site.services.database.connection() as c:
        await c.execute(f"UPDATE workspaces SET {columns} WHERE id = $1", id_, *state.values())


async def page(client: aiohttp.ClientSession, path: str, language: str = "en") -> str:
    async with client.get(path, headers={"accept": "text/html", "accept-language": language}) as answer:
        assert answer.status == 200, path
        return html.unescape(await answer.text())


def lines(text: str) -> list[str]:
    found = re.findall(r'<span class="told">(.*?)</li>', text, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", "", line).split()) for line in found]


async def test_it_says_what_it_was_for_how_long_and_why(site: Site, lab: str, clock: ManualClock) -> None:
    await told(site, lab, "started", "RUNNING", op_id="a")
    await clock.advance(3 * 3600)
    await told(site, lab, "idle_sleep", "STANDBY", idle_since=clock.now().isoformat(), seconds=600)
    await told(site, lab, "stopped", "STANDBY", op_id="b")
    await clock.advance(86400)
    await told(site, lab, "operation_given_up", "ERROR", operation="STARTING", reason="StartFailed", message="exit 1")
    await clock.advance(600)
    async with site.browser("mina") as mina:
        shown = await page(mina, f"/workspaces/{lab}")
        korean = await page(mina, f"/workspaces/{lab}", "ko")
    assert lines(shown) == [
        "▲ Starting did not work and was given up for 10 min so farexit 1",
        "☾ Asleep for 24 h",
        "· Put to sleep: nobody had typed for 10 min",
        "● Running for 3 h",
        "○ mina created it",
    ]
    assert [(b, w) for b, w in re.findall(r'<rect class="(\w+)" x="\d+" y="0" width="(\d+)"', shown)][1:3] == [
        ("running", "110"),
        ("asleep", "883"),
    ]
    assert "24시간 동안" in korean


async def test_a_long_history_is_narrowed_by_kind_and_paged(site: Site, lab: str, clock: ManualClock) -> None:
    for number in range(45):
        await clock.advance(60)
        await told(site, lab, "started", "RUNNING", op_id="a")
        if number % 15 == 0:
            await told(site, lab, "ide_ended", "STANDBY", exit_code=number, log_tail="<b>bang</b>")
    async with site.browser("mina") as mina:
        first = await page(mina, f"/workspaces/{lab}")
        (older,) = re.findall(r'href="(/workspaces/[^"]*before=[^"]*)"', first)
        second = await page(mina, older)
        trouble = await page(mina, f"/workspaces/{lab}?kind=trouble")
        nothing = await page(mina, f"/workspaces/{lab}?kind=people")
        odd = await page(mina, f"/workspaces/{lab}?kind=nonsense&before=nonsense")
        async with mina.get(f"/workspaces/{lab}?kind=trouble") as answer:
            assert "<b>bang" not in await answer.text()
    assert (len(lines(first)), len(lines(second)), len(lines(odd))) == (40, 9, 40)
    assert [re.findall(r"exit code (\d+)", line)[0] for line in lines(trouble)] == ["30", "15", "0"]
    assert "Nothing of this kind" in nothing


def test_every_code_is_of_one_kind_and_none_is_left_out() -> None:
    of = {kind: history_view.codes_of(kind) or frozenset() for kind in Kind}
    known = set(CODES) - {"operation_begun"}
    assert set().union(*of.values()) == known
    assert sum(len(codes) for codes in of.values()) == len(known)
    assert all(code in of[history_view.kind_of(code)] for code in known)


def test_what_follows_in_the_same_phase_makes_one_stretch_and_one_phase_makes_no_drawing() -> None:
    now = datetime.fromisoformat("2026-03-02T12:00:00+00:00")
    locale = Locale("en", None, texts.TEXTS["en"])

    def entry(number: int, hours: int, code: str, to_state: str) -> HistoryEntry:
        return HistoryEntry(number, "w", now - timedelta(hours=hours), "mina", code, {}, None, to_state, None)

    told = [entry(4, 1, "stopped", "STANDBY"), entry(3, 4, "observed", "RUNNING"), entry(2, 5, "started", "RUNNING")]
    drawn = history_view.strip(told, locale, now)
    assert drawn is not None
    assert [(s.badge, s.x, s.width) for s in drawn.stretches] == [("running", 0, 800), ("asleep", 800, 200)]
    assert history_view.strip(told[1:], locale, now) is None
    asked = entry(5, 1, "start_requested", "RUNNING")  # what was asked for is not what it was
    assert history_view.strip([asked, *told[1:]], locale, now) is None


@pytest.mark.parametrize(
    ("state", "offered"),
    [
        ({"observed_status": "STANDBY", "health_status": "ERROR", "error_info": ERROR}, True),
        ({"observed_status": "PENDING", "archive_key": "k", "health_status": "ERROR", "error_info": ERROR}, True),
        (
            {"observed_status": "PENDING", "health_status": "ERROR", "error_info": {**ERROR, "reason": "DataLost"}},
            False,
        ),
        ({"observed_status": "PENDING"}, False),
    ],
)
async def test_in_an_error_the_files_can_be_downloaded_where_they_are_there(
    site: Site, lab: str, state: dict[str, Any], offered: bool
) -> None:
    await put(site, lab, **state)
    async with site.browser("mina") as mina:
        assert (f"/api/v1/workspaces/{lab}/download" in await page(mina, f"/workspaces/{lab}")) is offered


async def test_going_back_asks_while_it_runs(site: Site, lab: str) -> None:
    await put(site, lab, observed_status="RUNNING", desired_state="RUNNING", archive_key="k", volume_generation="g")
    async with site.browser("mina") as mina:
        answers = []
        for sure in ({}, {"sure": "yes"}):
            form = {"archive_key": "k", "then": "page", **sure}
            async with mina.post(f"/do/{lab}/restore", data=form, allow_redirects=False) as answer:
                answers.append(answer.headers["location"])
        said = await page(mina, answers[0])
    assert "problem=RESTORE_SURE" in answers[0]
    assert "Say that it may be stopped" in said
    assert answers[1] == f"/workspaces/{lab}"


async def test_a_wrong_name_to_share_with_is_said_beside_the_field_and_kept(site: Site, lab: str) -> None:
    async with site.browser("mina") as mina:
        form = {"user": 'nobody"<b>', "then": "page"}
        async with mina.post(f"/do/{lab}/share", data=form, allow_redirects=False) as answer:
            where = answer.headers["location"]
        async with mina.get(where, headers={"accept": "text/html"}) as answer:
            text = await answer.text()
    section = text.partition('id="sharing"')[2].partition("</section>")[0]
    assert "There is no user of that name" in section
    assert "nobody&#34;&lt;b&gt;" in section
    assert text.count("There is no user of that name") == 1
