"""Courses in another language than the page, and their end."""

import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role
from tests.sessions.learning import LEARN
from tests.web.server import Site
from tests.web.test_dashboard import page, post
from tests.web.test_learning import start


@pytest.fixture
async def mina(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as browser:
        yield browser


async def taken_up(site: Site, browser: aiohttp.ClientSession, language: str) -> str:
    """The plan of a course that is named as every other."""
    sessions = [{"key": key, "title": f"{key} in {language}", "day": 1, "blueprint": LEARN} for key in ("one", "two")]
    new = {"title": "Git", "key": "git", "language": language, "sessions": sessions}
    async with site.admin() as admin, admin.post("/api/v1/courses", json=new) as answer:
        assert answer.status == 201
        id_ = (await answer.json())["id"]
    _, path, _ = await post(browser, f"/do/courses/{id_}/take")
    return path


async def test_two_courses_of_one_name_are_told_apart_by_their_language(
    site: Site, mina: aiohttp.ClientSession
) -> None:
    english, korean = [await taken_up(site, mina, language) for language in ("en", "ko")]
    for path in ("/learn", korean):
        shown = await page(mina, path)
        assert re.search(r'class="soft">[^<]*· 한국어', shown), path
    assert not re.search(r'class="soft">[^<]*· 한국어', await page(mina, english))
    assert not re.search(r'class="soft">[^<]*· 한국어', await page(mina, f"{korean}?lang=ko"))


async def test_content_carries_the_language_it_is_in(site: Site, mina: aiohttp.ClientSession) -> None:
    shown = await page(mina, await taken_up(site, mina, "ko"))
    assert '<h1 lang="ko">Git</h1>' in shown
    found = re.search(r'href="/sessions/([a-z0-9]+)" lang="ko"', shown)
    assert found
    here = await start(mina, found[1])
    played = await page(mina, f"/sessions/{found[1]}?run={here['run']}&fence={here['fence']}")
    assert '<html lang="en">' in played
    assert '<h1 lang="ko">one in ko</h1>' in played
    assert '<div class="chunk md" tabindex="-1" lang="ko">' in played


async def test_the_end_of_a_course_says_what_was_learnt_and_what_could_be_next(
    site: Site, mina: aiohttp.ClientSession
) -> None:
    shown = await page(mina, await taken_up(site, mina, "en"))
    ids = re.findall(r'<h3><a href="/sessions/([a-z0-9]+)"', shown)
    for id_ in ids:
        here = await start(mina, id_)
        for index in ("0", "1"):
            await post(mina, f"/do/sessions/{id_}/complete", **here, index=index)
        ended = await page(mina, f"/sessions/{id_}")
        assert ("You have finished “Git”" in ended) is (id_ == ids[-1])
    assert "You completed 2 of 2 sessions." in ended
    assert all(f'href="/sessions/{id_}?read=yes"' in ended for id_ in ids)
    assert 'class="button" href="/learn"' in ended
