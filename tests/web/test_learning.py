"""The pages of learning and their forms as any browser sends them: by POST and 303, without JavaScript."""

import re
import threading
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from codehub import markdown
from codehub.command import operator
from codehub.courses import installation
from codehub.policy.model import Role
from codehub.sessions import blueprint
from tests.sessions.learning import CHECK, FULL, LEARN, RIGHT, Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site
from tests.web.test_dashboard import page, post

DAY = 86400


@pytest.fixture(autouse=True)
async def people(site: Site) -> None:
    for name in ("mina", "jun"):
        await site.services.people.create_user(operator(), name, Role.LEARNER)


@pytest.fixture
async def mina(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    async with site.browser("mina") as browser:
        yield browser


async def plan(browser: aiohttp.ClientSession, *blueprints: Any) -> Any:
    return await Learner(browser).plan(*blueprints)


async def start(browser: aiohttp.ClientSession, id_: str, **form: str) -> dict[str, str]:
    """Which run and fence the page has then."""
    status, path, said = await post(browser, f"/do/sessions/{id_}/start", **form)
    assert (status, path) == (303, f"/sessions/{id_}"), said
    return said


async def runs(browser: aiohttp.ClientSession, id_: str) -> list[Any]:
    found: list[Any] = (await Learner(browser).get(f"/sessions/{id_}/runs"))["items"]
    return found


async def test_the_same_form_sent_twice_is_one_run_and_one_fence(mina: aiohttp.ClientSession) -> None:
    id_ = (await plan(mina))["sessions"][0]["id"]
    found = re.search(r'name="key" value="([^"]+)"', await page(mina, f"/sessions/{id_}"))
    assert found
    first = await start(mina, id_, key=found[1])
    assert await start(mina, id_, key=found[1]) == first
    assert first["fence"] == "1"
    assert len(await runs(mina, id_)) == 1


async def test_a_page_that_lost_the_run_shows_what_was_sent_and_does_not_write(mina: aiohttp.ClientSession) -> None:
    id_ = (await plan(mina, CHECK))["sessions"][0]["id"]
    here = await start(mina, id_)
    await post(mina, f"/do/sessions/{id_}/complete", **here, index="0")
    there = await start(mina, id_)
    assert there["fence"] == "2"
    status, path, said = await post(mina, f"/do/sessions/{id_}/complete", **here, index="1", q0="b")
    assert (status, path, said) == (303, f"/sessions/{id_}", {**here, "problem": "RUN_TAKEN_OVER"})
    shown = await page(mina, f"/sessions/{id_}?run={here['run']}&fence={here['fence']}")
    assert "You went on with this in another tab or on another device." in shown
    assert re.search(r'value="b" checked', shown)
    assert (await runs(mina, id_))[0]["step_index"] == 1


async def test_answers_feedback_and_commands_come_only_after_they_were_checked(mina: aiohttp.ClientSession) -> None:
    id_ = (await plan(mina, FULL))["sessions"][0]["id"]
    here = await start(mina, id_)
    address = f"/sessions/{id_}?run={here['run']}&fence={here['fence']}"
    secrets = ("It begins at 0.", "secret-place", "Look again.")
    for index, fields in ((0, {}), (1, {"q0": "b"})):
        for path in (address, f"/sessions/{id_}", "/learn"):
            assert not [secret for secret in secrets if secret in await page(mina, path)]
        if index == 1:
            await post(mina, f"/do/sessions/{id_}/complete", **here, index="1", q0="a")
            assert "It begins at 0." in await page(mina, address)
        await post(mina, f"/do/sessions/{id_}/complete", **here, index=str(index), **fields)
    assert not [secret for secret in secrets if secret in await page(mina, address)]


async def test_a_check_with_open_questions_is_not_sent_and_counts_as_no_try(
    site: Site, mina: aiohttp.ClientSession
) -> None:
    id_ = (await plan(mina, CHECK))["sessions"][0]["id"]
    here = await start(mina, id_)
    await post(mina, f"/do/sessions/{id_}/complete", **here, index="0")
    for given in ({}, {"q0": " "}):
        sent = await post(mina, f"/do/sessions/{id_}/complete", **here, index="1", **given)
        assert sent == (303, f"/sessions/{id_}", {**here, "problem": "ANSWERS_MISSING"})
    shown = await page(mina, f"/sessions/{id_}?run={here['run']}&fence={here['fence']}&problem=ANSWERS_MISSING")
    assert "these questions have no answer: 1." in shown
    assert "Not right yet" not in shown
    async with site.services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM run_tries") == 0


async def test_what_ended_after_a_day_can_be_gone_on_with_or_begun_again(
    mina: aiohttp.ClientSession, clock: ManualClock
) -> None:
    ids = [session["id"] for session in (await plan(mina, CHECK, CHECK))["sessions"]]
    for id_ in ids:
        here = await start(mina, id_)
        await post(mina, f"/do/sessions/{id_}/complete", **here, index="0")
    await clock.advance(DAY + 60)
    for id_, choice, step in ((ids[0], "resume_from", 1), (ids[1], "anew", 0)):
        old = (await runs(mina, id_))[0]
        assert await start(mina, id_) == {}  # it asks first, on the session's page
        shown = await page(mina, f"/sessions/{id_}")
        assert "Go on from there" in shown
        assert "Start again from the beginning" in shown
        here = await start(mina, id_, **{choice: old["id"] if choice == "resume_from" else "yes"})
        found = await runs(mina, id_)
        assert [run["status"] for run in found] == ["ABANDONED", "RUNNING"]
        assert (found[1]["id"], found[1]["step_index"]) == (here["run"], step)


async def test_anothers_plan_session_and_run_are_not_there(site: Site, mina: aiohttp.ClientSession) -> None:
    made = await plan(mina, CHECK)
    id_ = made["sessions"][0]["id"]
    here = await start(mina, id_)
    async with site.browser("jun") as jun:
        for path in (f"/plans/{made['id']}", f"/sessions/{id_}", "/sessions/nothing"):
            await page(jun, path, status=404)
        own = (await plan(jun, CHECK))["sessions"][0]["id"]
        for target in (id_, own):
            for verb in ("complete", "workspace"):
                assert (await post(jun, f"/do/sessions/{target}/{verb}", **here, index="0"))[0] == 404
        for verb in ("start", "skip", "cancel"):
            assert (await post(jun, f"/do/sessions/{id_}/{verb}", sure="yes"))[0] == 404
    assert (await runs(mina, id_))[0]["step_index"] == 0


async def test_an_admin_sees_a_learners_session_and_does_not_work_through_it(
    site: Site, mina: aiohttp.ClientSession
) -> None:
    made = await plan(mina)
    async with site.browser("admin") as admin:
        assert "mina's plan" in await page(admin, f"/plans/{made['id']}")
        shown = await page(admin, f"/sessions/{made['sessions'][0]['id']}")
    assert "Only mina can work through it." in shown
    assert "/start" not in shown


async def test_skipping_asks_once_and_says_how_it_ended(mina: aiohttp.ClientSession) -> None:
    made = await plan(mina, LEARN, LEARN)
    first, second = (session["id"] for session in made["sessions"])
    await start(mina, first)
    assert (await post(mina, f"/do/sessions/{first}/skip"))[0] == 400
    assert await post(mina, f"/do/sessions/{first}/skip", sure="yes") == (303, f"/plans/{made['id']}", {})
    again = await post(mina, f"/do/sessions/{first}/cancel", sure="yes", then="session")
    assert again == (303, f"/sessions/{first}", {"at": first, "problem": "INVALID_TRANSITION"})
    assert "You skipped this session" in await page(mina, f"/sessions/{first}")
    await post(mina, f"/do/sessions/{second}/cancel", sure="yes")
    shown = await page(mina, f"/plans/{made['id']}")
    assert "0 of 2 completed · 1 skipped · 1 canceled" in shown
    assert "Abandoned: the session was skipped" in shown
    assert "Finished (1)" in await page(mina, "/learn")


async def test_shipped_courses_are_offered_first_and_taken_up_once(site: Site, mina: aiohttp.ClientSession) -> None:
    await installation.run(site.services.courses)
    shown = await page(mina, "/")
    ids = re.findall(r'action="/do/courses/([a-z0-9]+)/take"', shown)
    assert len(ids) == 2  # each in the reader's language only
    assert await post(mina, f"/do/courses/{ids[0]}/take", starts_on="soon") == (
        *(303, "/learn"),
        {"at": ids[0], "problem": "STARTS_ON"},
    )
    assert "That is not a date." in await page(mina, f"/learn?at={ids[0]}&problem=STARTS_ON")
    first = await post(mina, f"/do/courses/{ids[0]}/take", starts_on="2026-03-02")
    assert await post(mina, f"/do/courses/{ids[0]}/take", starts_on="2026-03-02") == first
    assert first[1].startswith("/plans/")
    assert re.findall(r'action="/do/courses/([a-z0-9]+)/take"', await page(mina, "/learn")) == ids[1:]
    assert "/take" not in await page(mina, "/")
    async with site.browser("jun", **{"Accept-Language": "ko"}) as jun:
        assert "처음 배우는 파이썬" in await page(jun, "/learn")


async def test_addresses_that_no_page_of_ours_has_are_read_all_the_same(mina: aiohttp.ClientSession) -> None:
    id_ = (await plan(mina, CHECK))["sessions"][0]["id"]
    here = await start(mina, id_)
    for query in (
        {"since": "9" * 5000},
        {"since": "٣"},
        {"step": "9" * 5000},
        {"step": "-1"},
        {"run": "'\"<script>", "fence": "9" * 5000},
        {"fence": "²"},
        {"problem": "<script>", "done": "{t}"},
    ):
        async with mina.get(f"/sessions/{id_}", params={**here, **query}) as answer:
            assert answer.status == 200, query
            assert "<script>" not in await answer.text()
    for form in ({}, {**here, "index": "9" * 5000}, {**here, "index": "7"}, {**here, "fence": "x"}):
        status, _, _ = await post(mina, f"/do/sessions/{id_}/complete", **form)
        assert status in {303, 404}, form
    await post(mina, f"/do/sessions/{id_}/start", key="\u00e9" * 300, resume_from="x" * 900)
    assert len(await runs(mina, id_)) == 1


async def test_a_course_that_says_much_is_shown_by_its_beginning(site: Site, mina: aiohttp.ClientSession) -> None:
    sessions = [{"key": "one", "title": "One", "day": 1, "blueprint": LEARN}]
    about = "\n\n".join(f"Paragraph {n}. {'word ' * 35}" for n in range(100))
    new = {"title": "Long", "language": "en", "description": about, "sessions": sessions}
    async with site.admin() as admin, admin.post("/api/v1/courses", json=new) as answer:
        assert answer.status == 201
    shown = await page(mina, "/learn")
    assert "Paragraph 1." in shown
    assert "Paragraph 90." not in shown


async def test_courses_say_their_language_who_wrote_them_and_how_many_sessions_they_have(
    site: Site, mina: aiohttp.ClientSession
) -> None:
    sessions = [{"key": "one", "title": "One", "day": 1, "blueprint": LEARN}]
    async with site.admin() as client:
        admin = Learner(client)
        for language, author in (("ko", "Kim"), ("en", None)):
            new = {"title": "Git", "language": language, "author": author, "sessions": sessions, "key": "git"}
            assert (await admin.ask("POST", "/courses", new))[0] == 201
    english = [card.partition("</li>")[0] for card in (await page(mina, "/learn")).split('data-key="course-')[1:]]
    assert ["English" in english[0], "한국어" in english[1]] == [True, True]  # the reader's own first
    assert "1 session " in re.sub(r"<|·", " ", english[0])
    assert "written by Kim" in english[1]
    assert "Start this course" in english[0]
    async with site.browser("jun", **{"Accept-Language": "ko"}) as jun:
        shown = await page(jun, "/learn")
        korean = [card.partition("</li>")[0] for card in shown.split('data-key="course-')[1:]]
    assert ["한국어" in korean[0], "English" in korean[1]] == [True, True]
    assert ("만든 사람: Kim" in korean[0], "워크스페이스" in "".join(korean)) == (True, False)


async def test_an_author_withdraws_a_course_on_the_page_and_offers_it_again(
    site: Site, mina: aiohttp.ClientSession
) -> None:
    await site.services.people.create_user(operator(), "kim", Role.TEACHER)
    sessions = [{"key": "one", "title": "One", "day": 1, "blueprint": LEARN}]
    async with site.browser("kim") as kim:
        _, made = await Learner(kim).ask("POST", "/courses", {"title": "Mine", "language": "en", "sessions": sessions})
        forms = {verb: f"/do/courses/{made['id']}/{verb}" for verb in ("withdraw", "offer", "take")}
        shown = await page(mina, "/learn")
        assert (forms["take"] in shown, forms["withdraw"] in shown) == (True, False)
        assert await post(mina, forms["withdraw"]) == (303, "/learn", {"at": made["id"], "problem": "FORBIDDEN"})
        await post(kim, forms["take"])
        shown = await page(kim, "/learn")
        assert (forms["take"] in shown, forms["withdraw"] in shown) == (False, True)
        assert await post(kim, forms["withdraw"]) == (303, "/learn", {})
        shown = await page(kim, "/learn")
        assert "Withdrawn courses (1)" in shown
        assert forms["offer"] in shown
        assert "Mine" not in await page(mina, "/learn")
        refused = (303, "/learn", {"at": made["id"], "problem": "COURSE_WITHDRAWN"})
        assert await post(mina, forms["take"]) == refused
        assert "This course is not offered any more." in await page(mina, "/learn?problem=COURSE_WITHDRAWN")
        assert await post(kim, forms["offer"]) == (303, "/learn", {})
    assert forms["take"] in await page(mina, "/learn")


async def test_markdown_and_blueprints_are_read_beside_the_loop(
    mina: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a large one takes a second, requests of others go on."""
    on_the_loop = dict[str, bool]()

    def noting(name: str, real: Any) -> Any:
        def called(*given: Any, **named: Any) -> Any:
            on_the_loop[name] = on_the_loop.get(name, False) or threading.current_thread() is threading.main_thread()
            return real(*given, **named)

        return called

    monkeypatch.setattr(markdown, "render", noting("render", markdown.render))
    monkeypatch.setattr(blueprint, "parse", noting("parse", blueprint.parse))
    id_ = (await plan(mina, FULL))["sessions"][0]["id"]
    run = await Learner(mina).started(id_)
    for index, state in enumerate([{}, RIGHT]):
        await page(mina, f"/sessions/{id_}")
        await Learner(mina).complete(run, index, state)
    await page(mina, f"/sessions/{id_}")
    assert on_the_loop == {"render": False, "parse": False}
