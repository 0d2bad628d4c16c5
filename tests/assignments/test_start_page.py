"""The start page says what one's classes have next."""

import re

from tests.assignments.given import a_taught_class, assigned
from tests.classes.test_classes import a_class
from tests.courses.writing import course, made, session
from tests.sessions.learning import Learner
from tests.web.server import Site


def shown(page: str) -> list[tuple[str, str]]:
    """The sessions below the heading, with where they are from."""
    part = page.partition('data-key="of-classes"')[2].partition("</section>")[0]
    return re.findall(
        r'<li>.*?<a href="/sessions/\w+"[^>]*>([^<]+)</a> <span class="soft under">([^<·]+) ·', part, re.DOTALL
    )


async def start_page(site: Site, name: str, **headers: str) -> str:
    async with site.browser(name, **headers) as browser, browser.get("/") as answer:
        return await answer.text()


async def test_what_a_class_has_next_is_below_where_one_stopped_with_its_day(
    site: Site, kim: Learner, mina: Learner
) -> None:
    first = await a_class(kim, "mina", title="Mondays")
    second = await a_class(kim, "mina", title="Fridays")
    for class_, key, day in ((first, "loops", "2026-03-02"), (second, "lists", "2026-03-06")):
        await assigned(kim, class_, await made(kim, course(session(key), session(f"{key}-2", 2), key=key)), day)
    page = await start_page(site, "mina")
    assert len(shown(page)) == 1  # the other one is above, as what to begin
    assert shown(page)[0][0] not in page.partition('data-key="going-on"')[2].partition("</section>")[0]
    own = await mina.plan()
    await mina.started(own["sessions"][0]["id"])
    page = await start_page(site, "mina")
    assert page.index('data-key="going-on"') < page.index('data-key="of-classes"')
    assert [found for _, found in shown(page)] == ["Mondays", "Fridays"]  # the earlier day first
    days = re.findall(r'<span class="(?:soft|late)">([^<]*)</span></li>', page)
    assert days == ["Planned for today", "Planned for 6 Mar"]
    assert "수업에서 다음에 할 것" in await start_page(site, "mina", **{"Accept-Language": "ko"})


async def test_a_class_that_is_over_a_course_that_has_ended_and_one_that_is_done_have_nothing_next(
    site: Site, kim: Learner, mina: Learner
) -> None:
    found, _ = await a_taught_class(kim, "mina")
    own = await mina.plan()
    await mina.started(own["sessions"][0]["id"])
    assert len(shown(await start_page(site, "mina"))) == 1
    await kim.ask("PATCH", f"/classes/{found['id']}", {"archived": True})
    assert shown(await start_page(site, "mina")) == []
    await kim.ask("PATCH", f"/classes/{found['id']}", {"archived": False})
    (given,) = (await kim.get(f"/classes/{found['id']}/assignments"))["items"]
    await kim.request("DELETE", f"/classes/{found['id']}/assignments/{given['id']}")
    assert shown(await start_page(site, "mina")) == []


async def test_who_left_the_class_and_its_teacher_have_nothing_next(site: Site, kim: Learner, mina: Learner) -> None:
    found, _ = await a_taught_class(kim, "mina")
    own = await mina.plan()
    await mina.started(own["sessions"][0]["id"])
    assert shown(await start_page(site, "kim")) == []
    await kim.request("DELETE", f"/classes/{found['id']}/members/mina")
    assert shown(await start_page(site, "mina")) == []
