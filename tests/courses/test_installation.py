"""Courses that come with the product are there after a start; a changed one is a new version; twice changes nothing."""

import asyncio
import pathlib
import shutil
from operator import itemgetter

import pytest

from codehub.courses import installation
from tests.courses.writing import course, session, shown, taken
from tests.sessions.learning import Learner
from tests.web.server import Site


@pytest.fixture
def shipped(tmp_path: pathlib.Path) -> pathlib.Path:
    """Two languages of one course, which a release may change."""
    example = pathlib.Path(str(installation.SHIPPED)).with_name("example")
    for language in ("en", "ko"):
        shutil.copytree(example / language, tmp_path / "hello" / language)
    return tmp_path


async def test_they_are_listed_for_everybody_and_taken_up(site: Site, mina: Learner) -> None:
    await installation.run(site.services.courses)
    found = (await mina.get("/courses"))["items"]
    assert {(c["key"], c["language"]) for c in found} >= {
        (name, language) for name in ("git", "python-for-beginners") for language in ("en", "ko")
    }
    assert {(c["owner"], c["shipped"], c["version"]) for c in found} == {(None, True, 1)}
    plan = await taken(mina, found[0]["id"], starts_on="2026-03-02")
    assert len(shown(plan)) == found[0]["session_count"]


async def test_two_processes_at_once_and_a_second_start_install_them_once(
    site: Site, mina: Learner, shipped: pathlib.Path
) -> None:
    courses = site.services.courses
    await asyncio.gather(*(installation.run(courses, shipped) for _ in range(4)))
    await installation.run(courses, shipped)
    found = (await mina.get("/courses"))["items"]
    assert sorted((c["language"], c["version"]) for c in found) == [("en", 1), ("ko", 1)]


async def test_a_changed_one_is_a_new_version_and_reaches_plans(
    site: Site, mina: Learner, shipped: pathlib.Path
) -> None:
    await installation.run(site.services.courses, shipped)
    english, korean = sorted((await mina.get("/courses"))["items"], key=itemgetter("language"))
    plan = await taken(mina, english["id"])
    file = shipped / "hello" / "en" / "01-hello" / "session.md"
    file.write_text(file.read_text("utf-8").replace("title: Say hello", "title: Greetings"), "utf-8")
    await installation.run(site.services.courses, shipped)
    versions = {c["id"]: c["version"] for c in (await mina.get("/courses"))["items"]}
    assert versions == {english["id"]: 2, korean["id"]: 1}
    assert (await mina.get(f"/plans/{plan['id']}"))["sessions"][0]["title"] == "Greetings"


async def test_one_that_cannot_be_read_does_not_keep_the_others_away(
    site: Site, mina: Learner, shipped: pathlib.Path
) -> None:
    (shipped / "hello" / "en" / "course.md").write_text("nothing", "utf-8")
    await installation.run(site.services.courses, shipped)
    assert [c["language"] for c in (await mina.get("/courses"))["items"]] == ["ko"]


async def test_nobody_changes_one_but_everybody_may_see_what_it_is(
    site: Site, admin: Learner, mina: Learner, shipped: pathlib.Path
) -> None:
    await installation.run(site.services.courses, shipped)
    id_ = (await mina.get("/courses?language=en"))["items"][0]["id"]
    status, problem = await admin.ask("PUT", f"/courses/{id_}", course(session("one")))
    assert (status, problem["code"]) == (409, "COURSE_SHIPPED")
    assert (await mina.ask("GET", f"/courses/{id_}/source"))[0] == 403
    assert (await admin.get(f"/courses/{id_}/source"))["key"] == "my-course"
    status, mine = await admin.ask("POST", "/courses", course(key="my-course"))
    assert status == 201, mine
